//! The bucket and its event notifications.

use aws_sdk_s3::{
    Client,
    types::{
        BucketLocationConstraint, CreateBucketConfiguration, Event, FilterRule, FilterRuleName,
        NotificationConfiguration, NotificationConfigurationFilter, QueueConfiguration, S3KeyFilter,
        TopicConfiguration,
    },
};

use super::NotificationTarget;
use crate::{
    bucket_notifications::covers,
    error::AwsError,
    retry::{retry_until_visible, with_retry},
};

/// Returns whether the bucket exists.
pub(crate) async fn exists(client: &Client, bucket: &str) -> Result<bool, AwsError> {
    match with_retry(|| client.head_bucket().bucket(bucket).send()).await {
        Ok(_) => Ok(true),
        Err(error) if error.status == Some(404) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates the bucket in the region of the client.
pub(crate) async fn create(client: &Client, bucket: &str) -> Result<(), AwsError> {
    let region = client.config().region().map(ToString::to_string).filter(|region| region != "us-east-1");
    // S3 rejects us-east-1 as a location constraint: it is the default.
    let location = region.map(|region| {
        let location = BucketLocationConstraint::from(region.as_str());
        CreateBucketConfiguration::builder().location_constraint(location).build()
    });
    let create = client.create_bucket().bucket(bucket).set_create_bucket_configuration(location);
    with_retry(|| create.clone().send()).await?;
    Ok(())
}

/// Returns the event notifications of the bucket.
pub(crate) async fn notifications(client: &Client, bucket: &str) -> Result<NotificationConfiguration, AwsError> {
    let get = || client.get_bucket_notification_configuration().bucket(bucket).send();
    let found = with_retry(get).await?;
    Ok(NotificationConfiguration::builder()
        .set_queue_configurations(found.queue_configurations)
        .set_topic_configurations(found.topic_configurations)
        .set_lambda_function_configurations(found.lambda_function_configurations)
        .set_event_bridge_configuration(found.event_bridge_configuration)
        .build())
}

/// Returns an empty notification configuration.
pub(crate) fn no_notifications() -> NotificationConfiguration {
    NotificationConfiguration::builder().build()
}

/// Returns whether the target is notified of all new objects with this key prefix.
pub(crate) fn has_notification(found: &NotificationConfiguration, target: &NotificationTarget, prefix: &str) -> bool {
    match target {
        NotificationTarget::Queue(arn) => {
            let mut known = found.queue_configurations().iter().filter(|known| known.queue_arn() == arn);
            known.any(|known| covers(known.filter(), known.events(), prefix))
        }
        NotificationTarget::Topic(arn) => {
            let mut known = found.topic_configurations().iter().filter(|known| known.topic_arn() == arn);
            known.any(|known| covers(known.filter(), known.events(), prefix))
        }
    }
}

/// Adds a notification of objects with this key prefix to the existing ones: S3 replaces the whole configuration.
pub(crate) async fn add_notification(
    client: &Client,
    bucket: &str,
    found: &NotificationConfiguration,
    target: &NotificationTarget,
    prefix: &str,
) -> Result<NotificationConfiguration, AwsError> {
    let rule = FilterRule::builder().name(FilterRuleName::Prefix).value(prefix).build();
    let filter = NotificationConfigurationFilter::builder().key(S3KeyFilter::builder().filter_rules(rule).build());
    let events = [Event::from("s3:ObjectCreated:*"), Event::from("s3:ObjectRemoved:*")].to_vec();
    let id = format!("sparks-{}", prefix.trim_end_matches('/'));
    let mut wanted = found.clone();
    match target {
        NotificationTarget::Queue(arn) => {
            let queue = QueueConfiguration::builder().id(id).queue_arn(arn).set_events(Some(events));
            let queue = queue.filter(filter.build()).build()?;
            wanted.queue_configurations.get_or_insert_default().push(queue);
        }
        NotificationTarget::Topic(arn) => {
            let topic = TopicConfiguration::builder().id(id).topic_arn(arn).set_events(Some(events));
            let topic = topic.filter(filter.build()).build()?;
            wanted.topic_configurations.get_or_insert_default().push(topic);
        }
    }
    let put = || {
        let put = client.put_bucket_notification_configuration().bucket(bucket);
        put.notification_configuration(wanted.clone()).send()
    };
    // S3 validates that it may send to the target, and a new permission takes a while to take effect.
    let is_not_visible_yet =
        |error: &AwsError| error.has_code(&["InvalidArgument"]) && error.message.contains("destination");
    retry_until_visible(put, is_not_visible_yet).await?;
    Ok(wanted)
}
