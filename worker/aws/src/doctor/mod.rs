//! Checks an account as a worker would use it (`sparks doctor`), without changing anything.
//!
//! The expected resources are defined in [`crate::setup`]. A check that needs a permission which a worker does not need gives a
//! warning if access is denied, not a failure.

mod bucket;
mod clock;
mod face_collection;
mod identity;
mod log_level;
mod notifications;
mod permissions;
mod persons;
mod queues;
mod tables;
mod topics;

use sparks_engine::Finding;

use crate::{CloudResources, Connection, error::AwsError};

/// Checks an account.
pub struct Doctor {
    connection: Connection,
    /// Failed attempts after which the worker itself moves a message to the dead letters.
    max_attempts: u32,
    findings: Vec<Finding>,
}

/// The remedy for a missing resource.
const RUN_SETUP: &str = "create it with `sparks setup`";
/// The observation for a missing resource.
const MISSING: &str = "does not exist";

impl Doctor {
    /// The number of times that [`Self::examine`] reports progress.
    pub const STEPS: u64 = 10;

    /// Creates a doctor over this connection. After `max_attempts` failed attempts the worker itself moves a message to the
    /// dead letters.
    pub fn new(connection: &Connection, max_attempts: u32) -> Self {
        Self { connection: connection.clone(), max_attempts, findings: Vec::new() }
    }

    /// Checks all resources that a worker needs. Calls `next` before each step with its name.
    pub async fn examine(mut self, resources: &CloudResources, mut next: impl FnMut(&'static str)) -> Vec<Finding> {
        next("credentials");
        if !self.identity().await {
            return self.findings;
        }
        next("clock");
        self.clock(&resources.bucket).await;
        next("tables");
        let tables_exist = self.tables(&resources.tables).await;
        next("queues");
        let queues = self.queues(resources).await;
        next("topics");
        self.topics(&resources.notification_topics).await;
        next("bucket");
        let bucket_exists = self.bucket(&resources.bucket).await;
        next("event notifications");
        if let (true, Some(work)) = (bucket_exists, &queues.work) {
            self.notifications(resources, work).await;
        }
        next("permissions");
        if tables_exist {
            self.table_permissions(&resources.tables).await;
        }
        if bucket_exists {
            self.object_permissions(resources).await;
        }
        self.queue_permissions(&queues).await;
        next("persons");
        if tables_exist {
            self.persons(&resources.tables).await;
        }
        next("reader level");
        if tables_exist {
            self.log_level(&resources.tables).await;
        }
        self.findings
    }

    /// Returns the findings so far.
    pub fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    fn note(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn ok(&mut self, subject: impl Into<String>, observation: impl ToString) {
        self.note(Finding::ok(subject, observation));
    }

    fn warn(&mut self, subject: impl Into<String>, observation: impl ToString, remedy: impl Into<String>) {
        self.note(Finding::warn(subject, observation, remedy));
    }

    fn fail(&mut self, subject: impl Into<String>, observation: impl ToString, remedy: impl Into<String>) {
        self.note(Finding::fail(subject, observation, remedy));
    }

    /// Records a check that failed. Denied access is a warning: a worker runs without this permission.
    fn unchecked(&mut self, subject: impl Into<String>, error: &AwsError, action: &str) {
        if error.is_access_denied() {
            let remedy =
                format!("to check it, use credentials with {action} (OperatorPolicy in docker/cloudformation)");
            self.warn(subject, format!("not checked: access denied: {error}"), remedy);
        } else {
            self.fail(subject, error, "check that the service can be reached: network, aws.region, aws.endpoint");
        }
    }
}
