//! The sender keeps to the plan: several photos at once, each step by step, and no quicker than allowed.

use async_trait::async_trait;
use sparks_domain::{Attributes, Key};
use sparks_engine::{Delivery, Depth, MessageId, ObjectsError, QueueError, Settlement, StoreError, SystemClock};
use tokio::{sync::Barrier, time::timeout};

use super::*;
use crate::{load::Wish, share::Share};

/// Notes what is done to it, when it begins and when it is done.
#[derive(Default)]
struct Site {
    notes: Mutex<Vec<(Instant, String)>>,
    /// Whoever stores something waits here for others.
    gate: Option<Barrier>,
}

impl Site {
    fn note(&self, what: &str) {
        self.notes.lock().unwrap().push((Instant::now(), what.to_owned()));
    }

    async fn note_both(&self, what: &str) {
        self.note(&format!("begins {what}"));
        match &self.gate {
            Some(gate) if what.starts_with("file") => {
                gate.wait().await;
            }
            _ => tokio::time::sleep(Duration::from_millis(fastrand::u64(0..3))).await,
        }
        self.note(&format!("ends {what}"));
    }

    /// What was done about whatever has this in its name.
    fn notes_of(&self, name: &str) -> Vec<String> {
        let notes = self.notes.lock().unwrap();
        notes.iter().filter(|(_, what)| what.contains(name)).map(|(_, what)| what.replace(name, "")).collect()
    }
}

#[async_trait]
impl Platform for Site {
    async fn store(&self, key: &str, _: Vec<u8>, _: Content) -> Result<String, ObjectsError> {
        let name = key.trim_start_matches("originals/").trim_end_matches(".jpg");
        self.note_both(&format!("file {name}")).await;
        Ok("version".into())
    }

    async fn make_row(&self, key: &Key, _: &Attributes) -> Result<bool, StoreError> {
        self.note_both(&format!("row {}", key.pk)).await;
        Ok(true)
    }

    async fn tells(&self) -> Result<bool, ObjectsError> {
        Ok(true)
    }
}

#[async_trait]
impl Queue for Site {
    async fn send(&self, _: &str, name: &str) -> Result<MessageId, QueueError> {
        let [_, image, which] = name.split('/').collect::<Vec<_>>()[..] else { panic!("{name}") };
        self.note_both(&format!("{which} {image}")).await;
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

    async fn depth(&self) -> Result<Depth, QueueError> {
        Ok(Depth::default())
    }
}

fn sender(site: &Arc<Site>, photos: usize, duplicates: &str, teller: Teller, rate: Option<&str>) -> Sender {
    let wish = Wish {
        photos,
        identities: 3,
        faces_per_photo: 1,
        duplicates: duplicates.parse().unwrap(),
        corrupt: Share::default(),
        shuffle: false,
        seed: 5,
    };
    let plan = Arc::new(Plan::of(&wish));
    let truth = Truth::of(&plan, "load-1@sparks.invalid".parse().unwrap(), Timestamp::from_millis(1_754_040_268_957));
    Sender {
        platform: Arc::clone(site) as Arc<_>,
        queue: Arc::clone(site) as Arc<_>,
        clock: Arc::new(SystemClock),
        bucket: "photos".into(),
        teller,
        bucket_tells: teller == Teller::Bucket,
        rate: rate.map(|rate| rate.parse().unwrap()),
        plan,
        truth: Arc::new(truth),
        ledger: Arc::new(Ledger::new(photos)),
    }
}

#[tokio::test]
async fn as_many_are_under_way_at_once_as_may_be() {
    let site = Arc::new(Site { gate: Some(Barrier::new(AT_ONCE)), ..Site::default() });
    let sender = sender(&site, AT_ONCE * 2, "0%", Teller::Bucket, None);
    timeout(Duration::from_secs(60), sender.send()).await.expect("so many at once").unwrap();
    let (mut now, mut most) = (0, 0);
    for note in site.notes_of("file ") {
        now = if note.starts_with("begins") { now + 1 } else { now - 1 };
        most = most.max(now);
    }
    assert_eq!((now, most, sender.ledger.messages()), (0, AT_ONCE, 2 * AT_ONCE as u64));
}

#[tokio::test]
async fn every_photo_goes_step_by_step() {
    for teller in [Teller::Bucket, Teller::Sender] {
        let site = Arc::new(Site::default());
        let sender = sender(&site, 12, "100%", teller, None);
        sender.prepare(|| ()).await.unwrap();
        sender.send().await.unwrap();
        for made in sender.truth.photos() {
            let n = sender.truth.number(&made.image).unwrap();
            let is_repeat = sender.plan.steps.contains(&Step::Repeat(n));
            let steps: &[&str] = match (teller, is_repeat) {
                (Teller::Bucket, true) => &["row", "file", "repeat"],
                (Teller::Bucket, false) => &["row", "file", "file"],
                (Teller::Sender, true) => &["file", "row", "first", "repeat"],
                (Teller::Sender, false) => &["file", "row", "first", "file", "again"],
            };
            let expected: Vec<_> = steps.iter().flat_map(|s| [format!("begins {s}"), format!("ends {s}")]).collect();
            assert_eq!(site.notes_of(&format!(" {}", made.image)), expected, "{teller:?}, photo {n}");
        }
        assert_eq!(sender.ledger.messages(), 24);
    }
}

#[tokio::test]
async fn nothing_is_sent_quicker_than_allowed() {
    for teller in [Teller::Bucket, Teller::Sender] {
        let site = Arc::new(Site::default());
        let sender = sender(&site, 6, "50%", teller, Some("40/s"));
        sender.prepare(|| ()).await.unwrap();
        site.notes.lock().unwrap().clear();
        let started = Instant::now();
        sender.send().await.unwrap();
        let notes = site.notes.lock().unwrap();
        // A second upload that somebody tells of counts once.
        let is_message = |what: &str| !what.contains("row") && (teller == Teller::Bucket || !what.contains("file"));
        let times = notes.iter().filter(|(_, what)| what.starts_with("begins") && is_message(what));
        for (n, (at, what)) in times.clone().enumerate() {
            let early = Duration::from_millis(25) * u32::try_from(n).unwrap();
            assert!(at.duration_since(started) >= early, "{n}: {what} after {:?}", at.duration_since(started));
        }
        assert_eq!(times.count(), sender.plan.messages());
    }
}
