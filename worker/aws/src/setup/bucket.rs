//! The bucket, and whom it tells of new objects.

use aws_sdk_s3::{
    Client,
    types::{
        BucketLocationConstraint, CreateBucketConfiguration, Event, FilterRule, FilterRuleName,
        NotificationConfiguration, NotificationConfigurationFilter, QueueConfiguration, S3KeyFilter,
        TopicConfiguration,
    },
};

use super::Listener;
use crate::{
    notified::covers,
    trouble::{Trouble, once_seen, patiently},
};

/// Whether the bucket is there.
pub(crate) async fn exists(client: &Client, bucket: &str) -> Result<bool, Trouble> {
    match patiently(|| client.head_bucket().bucket(bucket).send()).await {
        Ok(_) => Ok(true),
        Err(trouble) if trouble.status == Some(404) => Ok(false),
        Err(trouble) => Err(trouble),
    }
}

/// Makes the bucket, in the region that we are in.
pub(crate) async fn create(client: &Client, bucket: &str) -> Result<(), Trouble> {
    let region = client.config().region().map(ToString::to_string).filter(|region| region != "us-east-1");
    let place = region.map(|region| {
        let place = BucketLocationConstraint::from(region.as_str());
        CreateBucketConfiguration::builder().location_constraint(place).build()
    });
    let create = client.create_bucket().bucket(bucket).set_create_bucket_configuration(place);
    patiently(|| create.clone().send()).await?;
    Ok(())
}

/// What the bucket tells to whom.
pub(crate) async fn notifications(client: &Client, bucket: &str) -> Result<NotificationConfiguration, Trouble> {
    let get = || client.get_bucket_notification_configuration().bucket(bucket).send();
    let found = patiently(get).await?;
    Ok(NotificationConfiguration::builder()
        .set_queue_configurations(found.queue_configurations)
        .set_topic_configurations(found.topic_configurations)
        .set_lambda_function_configurations(found.lambda_function_configurations)
        .set_event_bridge_configuration(found.event_bridge_configuration)
        .build())
}

/// What a bucket tells that tells nobody.
pub(crate) fn nothing() -> NotificationConfiguration {
    NotificationConfiguration::builder().build()
}

/// Whether the listener hears of objects that begin like this.
pub(crate) fn tells(found: &NotificationConfiguration, listener: &Listener, prefix: &str) -> bool {
    match listener {
        Listener::Queue(arn) => {
            let mut known = found.queue_configurations().iter().filter(|known| known.queue_arn() == arn);
            known.any(|known| covers(known.filter(), known.events(), prefix))
        }
        Listener::Topic(arn) => {
            let mut known = found.topic_configurations().iter().filter(|known| known.topic_arn() == arn);
            known.any(|known| covers(known.filter(), known.events(), prefix))
        }
    }
}

/// From now on the listener hears of objects that begin like this, and everybody else of what they heard before.
pub(crate) async fn tell(
    client: &Client,
    bucket: &str,
    found: &NotificationConfiguration,
    listener: &Listener,
    prefix: &str,
) -> Result<NotificationConfiguration, Trouble> {
    let rule = FilterRule::builder().name(FilterRuleName::Prefix).value(prefix).build();
    let filter = NotificationConfigurationFilter::builder().key(S3KeyFilter::builder().filter_rules(rule).build());
    let events = [Event::from("s3:ObjectCreated:*"), Event::from("s3:ObjectRemoved:*")].to_vec();
    let id = format!("sparks-{}", prefix.trim_end_matches('/'));
    let mut wanted = found.clone();
    match listener {
        Listener::Queue(arn) => {
            let queue = QueueConfiguration::builder().id(id).queue_arn(arn).set_events(Some(events));
            let queue = queue.filter(filter.build()).build().map_err(refused)?;
            wanted.queue_configurations.get_or_insert_default().push(queue);
        }
        Listener::Topic(arn) => {
            let topic = TopicConfiguration::builder().id(id).topic_arn(arn).set_events(Some(events));
            let topic = topic.filter(filter.build()).build().map_err(refused)?;
            wanted.topic_configurations.get_or_insert_default().push(topic);
        }
    }
    let put = || {
        let put = client.put_bucket_notification_configuration().bucket(bucket);
        put.notification_configuration(wanted.clone()).send()
    };
    // S3 tries whether it may tell them, and a permission takes a while to be known.
    let is_early = |trouble: &Trouble| trouble.is(&["InvalidArgument"]) && trouble.words.contains("destination");
    once_seen(put, is_early).await?;
    Ok(wanted)
}

fn refused(error: aws_sdk_s3::error::BuildError) -> Trouble {
    Trouble { code: None, status: None, words: error.to_string() }
}
