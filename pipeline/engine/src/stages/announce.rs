//! Telling others what has been decided.

use serde_json::{Value, json};
use sparks_domain::{Event, PhotoProcessed, Recorded, Timestamp, Verdict};

use crate::{Failure, Notice, Pipeline, Topic};

/// A photo whose pictures are ready, and since when.
pub(super) struct Finished<'a> {
    pub photo: &'a PhotoProcessed,
    pub when: Timestamp,
}

impl Pipeline {
    /// Publishes these events, and that a photo's pictures are ready. A repeat has the same names.
    pub(super) async fn announce(&self, recorded: &[Recorded], finished: Option<Finished<'_>>) -> Result<(), Failure> {
        let mut told = Vec::new();
        if self.rules.announcements.events {
            told.extend(recorded.iter().flat_map(notices));
        }
        if self.rules.announcements.thumbnails {
            told.extend(finished.map(|finished| thumbnails(&finished, &self.rules.bucket)));
        }
        if !told.is_empty() {
            self.ports.publisher.publish(&told).await?;
        }
        Ok(())
    }

    /// Publishes these events, if anybody is to be told. Nobody waits for it: the log has them, whoever hears of it.
    pub(crate) async fn tell(&self, recorded: &[Recorded]) {
        if let Err(error) = self.announce(recorded, None).await {
            tracing::warn!(%error, "others were not told");
        }
    }
}

/// Logs what was recorded beside the outcome of a message, so that a line leads to each event.
pub(super) fn log(recorded: &[Recorded]) {
    for Recorded { id, event, seq, .. } in recorded {
        tracing::info!(event = %id, event_type = event.event_type(), seq = seq.0, "committed");
    }
}

/// What the platform waits for: the message that its own thumbnail maker sends.
fn thumbnails(Finished { photo, when }: &Finished<'_>, bucket: &str) -> Notice {
    let (large, medium) = (&photo.variants.large.key, &photo.variants.medium.key);
    Notice {
        topic: Topic::ThumbnailCompleted,
        event_type: "thumbnail-completed".into(),
        // Never from the clock: a repeat is a repeat.
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

/// The event as others read it, and one notice for each person whom it is the first to show.
pub(crate) fn notices(recorded: &Recorded) -> Vec<Notice> {
    let subject = recorded.event.image().map_or_else(|| "persons".to_owned(), ToString::to_string);
    let notice = |event_type: &str, id: String, data: Value| Notice {
        topic: Topic::Events,
        event_type: event_type.to_owned(),
        deduplication: id.clone(),
        group: subject.clone(),
        body: json!({
            "eventId": id,
            "eventType": event_type,
            "occurredAt": recorded.when,
            "actor": recorded.actor,
            "data": data,
        }),
    };
    // Numbers are told person by person, from the photo that shows them.
    if matches!(recorded.event, Event::PersonsAllocated(_)) {
        return Vec::new();
    }
    let data = serde_json::from_str(&recorded.event.to_data()).unwrap_or_default();
    let mut notices = vec![notice(recorded.event.event_type(), recorded.id.to_string(), data)];
    let (image, first, faces) = match &recorded.event {
        Event::PhotoProcessed(photo) => (&photo.image_id, photo.first_face, photo.faces.as_slice()),
        Event::ProfileProcessed(profile) => (&profile.image_id, profile.first_face, profile.face.as_slice()),
        _ => return notices,
    };
    notices.extend((first..).zip(faces).filter_map(|(n, face)| match face.verdict {
        Verdict::Founded(person) => {
            let data = json!({ "personId": person, "face": format!("{image}#{n}"), "photoEvent": recorded.id });
            Some(notice("PersonAllocated", format!("{}/{person}", recorded.id), data))
        }
        _ => None,
    }));
    notices
}
