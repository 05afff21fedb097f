//! Looking at an account as a worker would use it, without leaving a trace.
//!
//! What is to be there is said once, in [`crate::setup`]; here it is compared. What only an operator may see, and whoever asks
//! may not, is a warning: a worker needs it to be so, not to see it.

mod bucket;
mod clock;
mod collection;
mod identity;
mod permissions;
mod persons;
mod policy;
mod queues;
mod tables;
mod topics;
mod uploads;

use sparks_engine::Finding;

use crate::{Connection, Estate, trouble::Trouble};

/// Examines an account.
pub struct Doctor {
    connection: Connection,
    /// Failed attempts after which the worker itself gives a message up.
    max_receives: u32,
    findings: Vec<Finding>,
}

/// What helps where something is missing.
const SET_UP: &str = "`sparks setup` makes it";

impl Doctor {
    /// The steps of an examination.
    pub const STEPS: u64 = 9;

    /// Looks over this connection. After so many failed attempts the worker itself gives a message up.
    pub fn new(connection: &Connection, max_receives: u32) -> Self {
        Self { connection: connection.clone(), max_receives, findings: Vec::new() }
    }

    /// Everything that a worker needs. Says after each step what it is about to look at next.
    pub async fn examine(mut self, estate: &Estate, mut next: impl FnMut(&'static str)) -> Vec<Finding> {
        next("who we are");
        if !self.identity().await {
            return self.findings;
        }
        next("clock");
        self.clock(&estate.bucket).await;
        next("tables");
        let tables_are_there = self.tables(&estate.tables).await;
        next("queues");
        let queues = self.queues(estate).await;
        next("topics");
        self.topics(&estate.notices).await;
        next("bucket");
        let bucket_is_there = self.bucket(&estate.bucket).await;
        next("uploads");
        if let (true, Some(work)) = (bucket_is_there, &queues.work) {
            self.uploads(estate, work).await;
        }
        next("permissions");
        if tables_are_there {
            self.table_permissions(&estate.tables).await;
        }
        if bucket_is_there {
            self.object_permissions(estate).await;
        }
        self.queue_permissions(&queues).await;
        next("persons");
        if tables_are_there {
            self.persons(&estate.tables).await;
        }
        self.findings
    }

    /// What was found so far.
    pub fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    fn note(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn ok(&mut self, what: impl Into<String>, seen: impl ToString) {
        self.note(Finding::ok(what, seen));
    }

    fn warn(&mut self, what: impl Into<String>, seen: impl ToString, remedy: impl Into<String>) {
        self.note(Finding::warn(what, seen, remedy));
    }

    fn fail(&mut self, what: impl Into<String>, seen: impl ToString, remedy: impl Into<String>) {
        self.note(Finding::fail(what, seen, remedy));
    }

    /// Something that could not be looked at. What a worker does not need to see is no reason that it should not work.
    fn unseen(&mut self, what: impl Into<String>, trouble: &Trouble, action: &str) {
        if trouble.is_forbidden() {
            let remedy = format!("to see it, ask as somebody with {action} (OperatorPolicy in docker/cloudformation)");
            self.warn(what, format!("not looked at: {trouble}"), remedy);
        } else {
            self.fail(what, trouble, "see that the service can be reached: network, aws.region, aws.endpoint");
        }
    }
}
