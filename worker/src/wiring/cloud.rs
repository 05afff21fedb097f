//! The cloud backend: connection, resources, and what `sparks setup` and `sparks doctor` need.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use sparks_aws::{
    AwsConfig, AwsPlatformClient, CloudResources, Connection, DynamoStore, Endpoints, QueueUrls, S3Objects, Setup,
    SnsPublisher, SqsQueue, Tables, Timing, Topics,
};
use sparks_config::Settings;
use sparks_domain::object_keys;

use super::optional;
use crate::backend::Backend;

/// Opens the tables, queues, topics and bucket that the settings name; `sparks setup` creates them.
pub(super) async fn open(settings: &Settings) -> anyhow::Result<Backend> {
    let (aws, connection) = (&settings.aws, connection(settings).await);
    let lanes = u16::try_from(aws.lanes).unwrap_or(u16::MAX);
    let store = DynamoStore::open(&connection, tables(settings), lanes).await.context("failed to open the tables")?;
    let dead = SqsQueue::url(&connection, &aws.dead_letter_queue).await?;
    let waiting = match optional(&aws.waiting_queue) {
        Some(waiting) => Some(SqsQueue::url(&connection, &waiting).await?),
        None => None,
    };
    let queues = QueueUrls { work: SqsQueue::url(&connection, &aws.queue).await?, waiting, dead };
    let timing = Timing {
        visibility_timeout: Duration::from_secs(settings.queue.visibility_timeout_seconds),
        poll: Duration::from_secs(aws.poll_seconds),
    };
    let topics = Topics {
        thumbnail_completed: topic(&connection, &aws.thumbnails_topic).await?,
        events: topic(&connection, &aws.events_topic).await?,
    };
    let queue = Arc::new(SqsQueue::new(&connection, queues, timing, settings.queue.max_crashes));
    let uploads = optional(&aws.uploads_topic);
    let platform = AwsPlatformClient::new(&connection, &settings.bucket, &aws.table, &aws.queue, uploads.as_deref());
    let store = Arc::new(store);
    Ok(Backend {
        workers: Arc::clone(&store) as Arc<_>,
        store,
        objects: Arc::new(S3Objects::new(&connection, &settings.bucket)),
        platform: Arc::new(platform),
        dead_letters: Arc::clone(&queue) as Arc<_>,
        queue,
        publisher: Arc::new(SnsPublisher::new(&connection, topics)),
        location: format!("table {}", aws.table),
        folder: None,
    })
}

/// Resolves the name of a topic to its ARN; `None` if the setting is empty.
async fn topic(connection: &Connection, name: &str) -> anyhow::Result<Option<String>> {
    match optional(name) {
        Some(name) => Ok(Some(SnsPublisher::arn(connection, &name).await?)),
        None => Ok(None),
    }
}

/// Connects to AWS, or to the endpoints in the settings.
pub(super) async fn connection(settings: &Settings) -> Connection {
    let aws = &settings.aws;
    let config = AwsConfig {
        region: optional(&aws.region),
        endpoint: optional(&aws.endpoint),
        endpoints: Endpoints {
            dynamodb: optional(&aws.endpoints.dynamodb),
            s3: optional(&aws.endpoints.s3),
            sqs: optional(&aws.endpoints.sqs),
            sns: optional(&aws.endpoints.sns),
            rekognition: optional(&aws.endpoints.rekognition),
            ssm: optional(&aws.endpoints.ssm),
            sts: optional(&aws.endpoints.sts),
        },
        keys: None,
    };
    Connection::open(&config).await
}

fn tables(settings: &Settings) -> Tables {
    let aws = &settings.aws;
    Tables { platform: aws.table.clone(), log: aws.log_table.clone(), faces: aws.faces_table.clone() }
}

/// Returns what creates missing cloud resources, and the resources it creates.
pub async fn setup(settings: &Settings, dry_run: bool) -> (Setup, CloudResources) {
    (Setup::new(&connection(settings).await, dry_run), resources(settings))
}

/// Returns what checks the cloud resources, and the resources it checks.
pub async fn doctor(settings: &Settings) -> (sparks_aws::Doctor, CloudResources) {
    let doctor = sparks_aws::Doctor::new(&connection(settings).await, settings.queue.max_attempts);
    (doctor, resources(settings))
}

/// Returns the names of all cloud resources.
fn resources(settings: &Settings) -> CloudResources {
    let aws = &settings.aws;
    CloudResources {
        tables: tables(settings),
        bucket: settings.bucket.clone(),
        prefixes: [object_keys::ORIGINALS].into_iter().chain(object_keys::PROFILES).map(str::to_owned).collect(),
        work: aws.queue.clone(),
        waiting: optional(&aws.waiting_queue),
        dead: aws.dead_letter_queue.clone(),
        uploads_topic: optional(&aws.uploads_topic),
        notification_topics: [&aws.thumbnails_topic, &aws.events_topic]
            .into_iter()
            .filter_map(|name| optional(name))
            .collect(),
        visibility_timeout_seconds: settings.queue.visibility_timeout_seconds,
        max_crashes: settings.queue.max_crashes,
    }
}
