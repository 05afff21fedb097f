//! The sender executes the plan: photos concurrently, the steps of a photo in order, and within the rate.

use std::sync::Mutex;

use async_trait::async_trait;
use sparks_domain::{Attributes, Key};
use sparks_engine::{Delivery, MessageId, ObjectsError, QueueDepth, QueueError, Settlement, StoreError, SystemClock};
use tokio::{
    sync::Barrier,
    time::{MissedTickBehavior, interval, timeout},
};

use super::*;
use crate::LoadSpec;

/// A platform and queue that record the beginning and end of every call.
#[derive(Default)]
struct Recorder {
    calls: Mutex<Vec<(Instant, String)>>,
    /// Uploads wait here for each other.
    barrier: Option<Barrier>,
}

impl Recorder {
    fn record(&self, what: &str) {
        self.calls.lock().unwrap().push((Instant::now(), what.to_owned()));
    }

    async fn record_call(&self, what: &str) {
        self.record(&format!("begins {what}"));
        match &self.barrier {
            Some(barrier) if what.starts_with("file") => {
                barrier.wait().await;
            }
            _ => tokio::time::sleep(Duration::from_millis(fastrand::u64(0..3))).await,
        }
        self.record(&format!("ends {what}"));
    }

    /// Returns the calls whose text contains the name, without the name.
    fn calls_of(&self, name: &str) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(_, what)| what.contains(name)).map(|(_, what)| what.replace(name, "")).collect()
    }
}

#[async_trait]
impl PlatformClient for Recorder {
    async fn put_original(&self, key: &str, _: Vec<u8>, _: Content) -> Result<String, ObjectsError> {
        let name = key.trim_start_matches("originals/").trim_end_matches(".jpg");
        self.record_call(&format!("file {name}")).await;
        Ok("version".into())
    }

    async fn create_row(&self, key: &Key, _: &Attributes) -> Result<bool, StoreError> {
        self.record_call(&format!("row {}", key.pk)).await;
        Ok(true)
    }

    async fn has_upload_notifications(&self) -> Result<bool, ObjectsError> {
        Ok(true)
    }
}

#[async_trait]
impl Queue for Recorder {
    async fn send(&self, _: &str, name: &str) -> Result<MessageId, QueueError> {
        let [_, image, which] = name.split('/').collect::<Vec<_>>()[..] else { panic!("{name}") };
        self.record_call(&format!("{which} {image}")).await;
        Ok(MessageId(name.into()))
    }

    async fn receive(&self, _: usize) -> Result<Vec<Delivery>, QueueError> {
        unreachable!("a sender receives nothing")
    }

    async fn extend(&self, _: &Delivery) -> Result<(), QueueError> {
        unreachable!("a sender has no lease")
    }

    async fn settle(&self, _: Delivery, _: Settlement) -> Result<(), QueueError> {
        unreachable!("a sender settles nothing")
    }

    async fn depth(&self) -> Result<QueueDepth, QueueError> {
        Ok(QueueDepth::default())
    }
}

fn sender(recorder: &Arc<Recorder>, photos: usize, duplicates: usize, notifications: NotificationSource) -> Sender {
    let spec = LoadSpec { photos, identities: 3, faces_per_photo: 1, duplicates, corrupt: 0, shuffle: false, seed: 5 };
    let plan = Arc::new(Plan::of(&spec));
    let now = Timestamp::from_millis(1_754_040_268_957);
    let truth = GroundTruth::of(&plan, "load-1@sparks.invalid".parse().unwrap(), now);
    Sender {
        platform: Arc::clone(recorder) as Arc<_>,
        queue: Arc::clone(recorder) as Arc<_>,
        clock: Arc::new(SystemClock),
        bucket: "photos".into(),
        notifications,
        bucket_notifies: notifications == NotificationSource::Bucket,
        plan,
        truth: Arc::new(truth),
        progress: Arc::new(SendProgress::new(photos)),
    }
}

#[tokio::test]
async fn uploads_run_at_full_concurrency() {
    let recorder = Arc::new(Recorder { barrier: Some(Barrier::new(CONCURRENCY)), ..Recorder::default() });
    let sender = sender(&recorder, CONCURRENCY * 2, 0, NotificationSource::Bucket);
    timeout(Duration::from_secs(60), sender.send(None)).await.expect("the barrier opens").unwrap();
    let (mut now, mut most) = (0, 0);
    for call in recorder.calls_of("file ") {
        now = if call.starts_with("begins") { now + 1 } else { now - 1 };
        most = most.max(now);
    }
    assert_eq!((now, most, sender.progress.messages()), (0, CONCURRENCY, 2 * CONCURRENCY as u64));
}

#[tokio::test]
async fn the_steps_of_a_photo_run_in_order() {
    for notifications in [NotificationSource::Bucket, NotificationSource::Sender] {
        let recorder = Arc::new(Recorder::default());
        let sender = sender(&recorder, 12, 12, notifications);
        sender.prepare(|| ()).await.unwrap();
        sender.send(None).await.unwrap();
        for photo in sender.truth.photos() {
            let n = sender.truth.number(&photo.image).unwrap();
            let is_repeat = sender.plan.steps.contains(&Step::RepeatNotification(n));
            let steps: &[&str] = match (notifications, is_repeat) {
                (NotificationSource::Bucket, true) => &["row", "file", "repeat"],
                (NotificationSource::Bucket, false) => &["row", "file", "file"],
                (NotificationSource::Sender, true) => &["file", "row", "first", "repeat"],
                (NotificationSource::Sender, false) => &["file", "row", "first", "file", "again"],
            };
            let expected: Vec<_> = steps.iter().flat_map(|s| [format!("begins {s}"), format!("ends {s}")]).collect();
            assert_eq!(recorder.calls_of(&format!(" {}", photo.image)), expected, "{notifications:?}, photo {n}");
        }
        assert_eq!(sender.progress.messages(), 24);
    }
}

#[tokio::test]
async fn the_rate_is_never_exceeded() {
    for notifications in [NotificationSource::Bucket, NotificationSource::Sender] {
        let recorder = Arc::new(Recorder::default());
        let sender = sender(&recorder, 6, 3, notifications);
        sender.prepare(|| ()).await.unwrap();
        recorder.calls.lock().unwrap().clear();
        let started = Instant::now();
        let mut pace = interval(Duration::from_millis(25));
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        sender.send(Some(pace)).await.unwrap();
        let calls = recorder.calls.lock().unwrap();
        // A second upload and the message for it count once.
        let is_message = |what: &str| {
            !what.contains("row") && (notifications == NotificationSource::Bucket || !what.contains("file"))
        };
        let times = calls.iter().filter(|(_, what)| what.starts_with("begins") && is_message(what));
        for (n, (at, what)) in times.clone().enumerate() {
            let earliest = Duration::from_millis(25) * u32::try_from(n).unwrap();
            assert!(at.duration_since(started) >= earliest, "{n}: {what} after {:?}", at.duration_since(started));
        }
        assert_eq!(times.count(), sender.plan.messages());
    }
}
