//! Notifications about committed events.

use serde_json::{Value, json};
use sparks_domain::{Event, PhotoProcessed, RecordedEvent, Timestamp, Verdict};

use crate::{Failure, Notification, Pipeline, Topic};

/// Publishes notifications.
pub(crate) struct Notifier<'a>(pub &'a Pipeline);

/// A photo whose variants are stored.
pub(crate) struct StoredVariants<'a> {
    pub photo: &'a PhotoProcessed,
    pub when: Timestamp,
}

impl Notifier<'_> {
    /// Publishes these events and, where given, that the variants of a photo are stored. A repeat has the same deduplication IDs.
    pub async fn publish(&self, events: &[RecordedEvent], variants: Option<StoredVariants<'_>>) -> Result<(), Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let mut notifications = Vec::new();
        if config.publish.events {
            notifications.extend(events.iter().flat_map(event_notifications));
        }
        if config.publish.thumbnails {
            notifications.extend(variants.map(|variants| thumbnail_completed(&variants, &config.bucket)));
        }
        if !notifications.is_empty() {
            ports.publisher.publish(&notifications).await?;
        }
        Ok(())
    }

    /// Publishes these events at most once: a failure is logged and not retried, because the log has the events.
    pub async fn publish_once(&self, events: &[RecordedEvent]) {
        if let Err(error) = self.publish(events, None).await {
            tracing::warn!(%error, "failed to publish events");
        }
    }
}

/// Returns the message that the platform's thumbnail function sends.
fn thumbnail_completed(StoredVariants { photo, when }: &StoredVariants<'_>, bucket: &str) -> Notification {
    let (large, medium) = (&photo.variants.large.key, &photo.variants.medium.key);
    Notification {
        topic: Topic::ThumbnailCompleted,
        event_type: "thumbnail-completed".into(),
        // Not from the clock, so that a repeat has the same ID.
        deduplication: format!("{}-{}", photo.image_id, photo.source.version),
        group: bucket.to_owned(),
        body: json!({
            "bucketName": bucket,
            "originalObjectKey": photo.source.key,
            "processedImages": [{ "key": large, "suffix": "large" }, { "key": medium, "suffix": "medium" }],
            "fileNameWithoutExt": photo.image_id,
            "largeImageKey": large,
            "mediumImageKey": medium,
            "timestamp": when,
        }),
    }
}

/// Returns the notification of the event, and one `PersonAllocated` for each person that it shows first.
pub(crate) fn event_notifications(recorded: &RecordedEvent) -> Vec<Notification> {
    let group = recorded.event.image().map_or_else(|| "persons".to_owned(), ToString::to_string);
    let notification = |event_type: &str, id: String, data: Value| Notification {
        topic: Topic::Events,
        event_type: event_type.to_owned(),
        deduplication: id.clone(),
        group: group.clone(),
        body: json!({
            "eventId": id,
            "eventType": event_type,
            "occurredAt": recorded.when,
            "actor": recorded.actor,
            "data": data,
        }),
    };
    // Published person by person with the photo that shows them.
    if matches!(recorded.event, Event::PersonsAllocated(_)) {
        return Vec::new();
    }
    let data = serde_json::from_str(&recorded.event.to_data()).unwrap_or_default();
    let mut notifications = vec![notification(recorded.event.event_type(), recorded.id.to_string(), data)];
    let (image, first, faces) = match &recorded.event {
        Event::PhotoProcessed(photo) => (&photo.image_id, photo.first_face, photo.faces.as_slice()),
        Event::ProfileProcessed(profile) => (&profile.image_id, profile.first_face, profile.face.as_slice()),
        _ => return notifications,
    };
    notifications.extend((first..).zip(faces).filter_map(|(n, face)| match face.verdict {
        Verdict::NewPerson(person) => {
            let data = json!({ "personId": person, "face": format!("{image}#{n}"), "photoEvent": recorded.id });
            Some(notification("PersonAllocated", format!("{}/{person}", recorded.id), data))
        }
        _ => None,
    }));
    notifications
}
