//! Creates the cloud resources that are missing in an account (`sparks setup`). Existing ones are not changed, except for the
//! settings that a worker needs.

pub(crate) mod bucket;
pub(crate) mod face_collection;
pub(crate) mod queues;
pub(crate) mod tables;
pub(crate) mod topics;

use std::fmt;

use aws_sdk_sqs::types::QueueAttributeName;

pub(crate) use self::bucket::notifications;
use self::{queues::QueueSpec, tables::TableSpec};
use crate::{
    Connection, Tables,
    error::AwsError,
    names::{bucket_arn, is_fifo},
    resource_policy::policy_allowing,
    sns::find_topic,
};

/// Creates missing resources; with `dry_run` it only reports them.
pub struct Setup {
    connection: Connection,
    dry_run: bool,
    reports: Vec<ResourceReport>,
}

/// The result of setup for one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceReport {
    /// The resource, such as `queue sparks-work`.
    pub resource: String,
    /// The status of the resource.
    pub status: ResourceStatus,
}

/// The status of a resource after setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceStatus {
    /// It existed before.
    Exists,
    /// It was created.
    Created,
    /// It does not exist, and the dry run did not create it.
    Missing,
    /// It must be created by hand.
    Manual,
}

impl ResourceStatus {
    /// Returns the value in JSON output, which scripts read.
    pub fn json_value(self) -> &'static str {
        match self {
            Self::Exists => "there",
            Self::Created => "made",
            Self::Missing => "missing",
            Self::Manual => "yours",
        }
    }
}

impl fmt::Display for ResourceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Exists => "exists",
            Self::Created => "created",
            Self::Missing => "missing",
            Self::Manual => "manual",
        })
    }
}

/// The names of all cloud resources that a worker needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudResources {
    /// The tables.
    pub tables: Tables,
    /// The bucket.
    pub bucket: String,
    /// The key prefixes for which the bucket sends event notifications.
    pub prefixes: Vec<String>,
    /// The work queue.
    pub work: String,
    /// The standard queue for delayed copies, beside a FIFO work queue.
    pub waiting: Option<String>,
    /// The dead-letter queue.
    pub dead: String,
    /// The topic between bucket and work queue; without it the bucket notifies the queue itself. Unused if the queue is FIFO.
    pub uploads_topic: Option<String>,
    /// The topics that the worker publishes to.
    pub notification_topics: Vec<String>,
    /// The visibility timeout of the work queue.
    pub visibility_timeout_seconds: u64,
    /// Receives without a settlement after which a message becomes a dead letter (`maxReceiveCount` of the redrive policy).
    pub max_crashes: u32,
}

/// The target of a bucket's event notifications, by ARN.
pub(crate) enum NotificationTarget {
    Queue(String),
    Topic(String),
}

/// A resource that could not be read or created.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up {resource}: {cause}")]
pub struct SetupError {
    resource: String,
    cause: String,
}

impl SetupError {
    fn new(resource: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self { resource: resource.into(), cause: cause.to_string() }
    }
}

impl Setup {
    /// Creates a setup over this connection.
    pub fn new(connection: &Connection, dry_run: bool) -> Self {
        Self { connection: connection.clone(), dry_run, reports: Vec::new() }
    }

    /// Returns the reports so far, in order.
    pub fn into_reports(self) -> Vec<ResourceReport> {
        self.reports
    }

    /// Sets up all resources except the Rekognition collection.
    pub async fn all(&mut self, resources: &CloudResources) -> Result<(), SetupError> {
        self.tables(&resources.tables).await?;
        let work = self.queues(resources).await?;
        for topic in &resources.notification_topics {
            self.topic(topic).await?;
        }
        let bucket_exists = self.bucket(&resources.bucket).await?;
        if is_fifo(&resources.work) {
            // S3 supports neither FIFO queues nor FIFO topics as targets, and a FIFO queue cannot subscribe to a standard
            // topic.
            let (bucket, queue) = (&resources.bucket, &resources.work);
            let action = format!("send them to EventBridge and add a rule with target queue {queue}");
            let resource = format!("event notifications of bucket {bucket}: {action} (S3 cannot notify a FIFO queue)");
            self.report(&resource, ResourceStatus::Manual);
            return Ok(());
        }
        let target = match &resources.uploads_topic {
            Some(topic) => self.topic(topic).await?.map(NotificationTarget::Topic),
            None => work.as_ref().map(|(_, arn)| NotificationTarget::Queue(arn.clone())),
        };
        let source = bucket_arn(self.connection.region().as_deref(), &resources.bucket);
        match (&target, &work) {
            (Some(NotificationTarget::Topic(topic)), Some((url, queue))) => {
                self.publish_permission(topic, &source).await?;
                self.send_permission(url, queue, "sns.amazonaws.com", topic).await?;
                self.subscription(topic, queue).await?;
            }
            (Some(NotificationTarget::Queue(queue)), Some((url, _))) => {
                self.send_permission(url, queue, "s3.amazonaws.com", &source).await?;
            }
            _ => {}
        }
        self.notifications(resources, target.filter(|_| bucket_exists).as_ref()).await
    }

    /// Sets up the three tables.
    pub async fn tables(&mut self, tables: &Tables) -> Result<(), SetupError> {
        let client = self.connection.dynamodb();
        for (name, spec) in tables::table_specs(tables) {
            let resource = format!("table {name}");
            let found = tables::describe(&client, name).await.map_err(failed(&resource))?;
            self.ensure(&resource, found.is_some(), async || tables::create(&client, name, &spec).await).await?;
            let indexes = found.as_ref().map(tables::index_names);
            self.indexes(&client, name, &spec, indexes.as_deref()).await?;
            if spec.expires {
                let (resource, is_on) = (format!("TTL of {resource}"), tables::expires(&client, name).await);
                self.ensure(&resource, is_on, async || tables::enable_expiry(&client, name).await).await?;
            }
            if spec.recoverable {
                let resource = format!("point-in-time recovery of {resource}");
                let is_on = tables::is_recoverable(&client, name).await;
                self.ensure(&resource, is_on, async || tables::enable_point_in_time_recovery(&client, name).await)
                    .await?;
            }
        }
        Ok(())
    }

    /// Adds missing global indexes one by one: DynamoDB creates one index of a table at a time.
    async fn indexes(
        &mut self,
        client: &aws_sdk_dynamodb::Client,
        name: &str,
        spec: &TableSpec,
        found: Option<&[String]>,
    ) -> Result<(), SetupError> {
        let Some(found) = found else { return Ok(()) };
        let exists = |index: &str| found.iter().any(|known| known == index);
        if let Some(index) = spec.local.iter().find(|index| !exists(index)) {
            let cause = "DynamoDB cannot add a local index to an existing table; create the table again";
            return Err(SetupError::new(format!("index {index} of table {name}"), cause));
        }
        for index in &spec.global {
            let resource = format!("index {} of table {name}", index.name);
            let add = async || tables::add_index(client, name, index).await;
            self.ensure(&resource, exists(index.name), add).await?;
        }
        Ok(())
    }

    /// Sets up the queues, the dead-letter queue first. Returns URL and ARN of the work queue.
    pub async fn queues(&mut self, resources: &CloudResources) -> Result<Option<(String, String)>, SetupError> {
        let dead = self.queue(QueueSpec::new(&resources.dead).with_max_retention()).await?;
        if let Some(waiting) = &resources.waiting {
            self.queue(
                QueueSpec::new(waiting)
                    .with_visibility_timeout(resources.visibility_timeout_seconds)
                    .with_max_retention(),
            )
            .await?;
        }
        let work = QueueSpec::new(&resources.work)
            .with_visibility_timeout(resources.visibility_timeout_seconds)
            .with_max_retention()
            .with_content_deduplication();
        self.queue(match &dead {
            // SQS requires the dead-letter queue to be of the same type, standard or FIFO.
            Some((_, arn)) if is_fifo(arn) == is_fifo(&work.name) => work.with_redrive(arn, resources.max_crashes),
            _ => work,
        })
        .await
    }

    async fn queue(&mut self, spec: QueueSpec) -> Result<Option<(String, String)>, SetupError> {
        let (client, resource) = (self.connection.sqs(), format!("queue {}", spec.name));
        let found = queues::find(&client, &spec.name).await.map_err(failed(&resource))?;
        let created = self.ensure(&resource, found.is_some(), async || queues::create(&client, &spec).await).await?;
        let queue = found.or(created);
        // An existing queue gets these attributes if it lacks them.
        for (about, name) in [
            ("redrive policy", QueueAttributeName::RedrivePolicy),
            ("content-based deduplication", QueueAttributeName::ContentBasedDeduplication),
        ] {
            let (Some((url, _)), Some(value)) = (&queue, spec.attributes.get(&name)) else { continue };
            let resource = format!("{about} of {resource}");
            let known = queues::attribute(&client, url, name.clone()).await.map_err(failed(&resource))?;
            let set = async || queues::set_attribute(&client, url, name, value).await;
            self.ensure(&resource, known.is_some_and(|known| known != "false"), set).await?;
        }
        Ok(queue)
    }

    /// Sets up the topic. Returns its ARN.
    async fn topic(&mut self, name: &str) -> Result<Option<String>, SetupError> {
        let name = name.rsplit(':').next().unwrap_or(name);
        let (client, resource) = (self.connection.sns(), format!("topic {name}"));
        let found = find_topic(&client, name).await.map_err(failed(&resource))?;
        let created = self.ensure(&resource, found.is_some(), async || topics::create(&client, name).await).await?;
        Ok(found.or(created))
    }

    async fn subscription(&mut self, topic: &str, queue: &str) -> Result<(), SetupError> {
        let (client, resource) = (self.connection.sns(), format!("subscription of {queue} to {topic}"));
        let is_subscribed = topics::is_subscribed(&client, topic, queue).await.map_err(failed(&resource))?;
        self.ensure(&resource, is_subscribed, async || topics::subscribe(&client, topic, queue).await).await.map(drop)
    }

    /// Allows the bucket to publish to the topic.
    async fn publish_permission(&mut self, topic: &str, source: &str) -> Result<(), SetupError> {
        let (client, resource) = (self.connection.sns(), format!("permission of {source} to publish to {topic}"));
        let policy = topics::policy(&client, topic).await.map_err(failed(&resource))?;
        let wanted = policy_allowing(policy.as_deref(), "sns:Publish", topic, "s3.amazonaws.com", source);
        let allow = async || topics::set_policy(&client, topic, wanted.as_deref().unwrap_or_default()).await;
        self.ensure(&resource, wanted.is_none(), allow).await.map(drop)
    }

    /// Allows this source to send to the queue.
    async fn send_permission(&mut self, url: &str, queue: &str, service: &str, source: &str) -> Result<(), SetupError> {
        let (client, resource) = (self.connection.sqs(), format!("permission of {source} to send to {queue}"));
        let policy = queues::attribute(&client, url, QueueAttributeName::Policy).await.map_err(failed(&resource))?;
        let wanted = policy_allowing(policy.as_deref(), "sqs:SendMessage", queue, service, source);
        let policy = wanted.as_deref().unwrap_or_default();
        let allow = async || queues::set_attribute(&client, url, QueueAttributeName::Policy, policy).await;
        self.ensure(&resource, wanted.is_none(), allow).await.map(drop)
    }

    /// Sets up the bucket. Returns whether it exists now.
    pub async fn bucket(&mut self, name: &str) -> Result<bool, SetupError> {
        let (client, resource) = (self.connection.s3(), format!("bucket {name}"));
        let exists = bucket::exists(&client, name).await.map_err(failed(&resource))?;
        self.ensure(&resource, exists, async || bucket::create(&client, name).await).await?;
        Ok(exists || !self.dry_run)
    }

    /// Sets up the event notifications of the bucket.
    async fn notifications(
        &mut self,
        resources: &CloudResources,
        target: Option<&NotificationTarget>,
    ) -> Result<(), SetupError> {
        let (client, about) = (self.connection.s3(), format!("event notifications of bucket {}", resources.bucket));
        let mut known = match target {
            Some(_) => bucket::notifications(&client, &resources.bucket).await.map_err(failed(&about))?,
            None => bucket::no_notifications(),
        };
        for prefix in &resources.prefixes {
            let resource = format!("event notification for {prefix} in bucket {}", resources.bucket);
            let Some(target) = target else {
                self.report(&resource, ResourceStatus::Missing);
                continue;
            };
            let exists = bucket::has_notification(&known, target, prefix);
            let add = async || {
                known = bucket::add_notification(&client, &resources.bucket, &known, target, prefix).await?;
                Ok(())
            };
            self.ensure(&resource, exists, add).await?;
        }
        Ok(())
    }

    /// Creates the resource unless it exists or this is a dry run. Returns what `create` returns: a lookup right after the
    /// creation may not find it (eventual consistency).
    async fn ensure<T>(
        &mut self,
        resource: &str,
        exists: bool,
        create: impl AsyncFnOnce() -> Result<T, AwsError>,
    ) -> Result<Option<T>, SetupError> {
        let (created, status) = match (exists, self.dry_run) {
            (true, _) => (None, ResourceStatus::Exists),
            (false, true) => (None, ResourceStatus::Missing),
            (false, false) => (Some(create().await.map_err(failed(resource))?), ResourceStatus::Created),
        };
        self.report(resource, status);
        Ok(created)
    }

    fn report(&mut self, resource: &str, status: ResourceStatus) {
        self.reports.push(ResourceReport { resource: resource.to_owned(), status });
    }
}

fn failed(resource: &str) -> impl Fn(AwsError) -> SetupError {
    let resource = resource.to_owned();
    move |error| SetupError::new(resource.clone(), error)
}
