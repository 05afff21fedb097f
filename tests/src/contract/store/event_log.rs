//! The event log, photo states and signatures.

use std::sync::Arc;

use sparks_domain::{Event, PhotoState, Position, RecordedEvent, RejectCode, Seq};
use sparks_engine::{Commit, PhotoGuard, Store};
use tokio::task::JoinSet;

use crate::{
    contract::{CheckResult, ensure, ensure_eq},
    samples::{allocated, empty_commit, face, following, image, processed, rejected, renamed, stored_face, time},
};

fn photo_commit(n: u64, before: Option<PhotoState>, events: Vec<Event>) -> Commit {
    let events = events.into_iter().map(|event| following(event, before.as_ref())).collect();
    let photo = Some(PhotoGuard { image: image(n), before });
    Commit { photo, when: time(i64::try_from(n).unwrap_or_default()), events, ..empty_commit() }
}

/// Reads the whole log in pages of this size.
async fn read_all(store: &dyn Store, page: usize) -> CheckResult<Vec<RecordedEvent>> {
    let (mut log, mut after): (Vec<RecordedEvent>, _) = (Vec::new(), Position::default());
    loop {
        let more = store.read_log(&after, page).await?;
        ensure!(more.len() <= page, "a page of {page} holds {} events", more.len());
        if more.is_empty() {
            return Ok(log);
        }
        ensure!(log.len() < 10_000, "reading the log in pages of {page} does not end");
        more.iter().for_each(|recorded| after.advance_past(recorded));
        log.extend(more);
    }
}

/// Sorts events by lane and sequence number.
fn sorted(mut log: Vec<RecordedEvent>) -> Vec<RecordedEvent> {
    log.sort_by_key(|recorded| (recorded.lane, recorded.seq));
    log
}

pub(super) async fn the_log_holds_the_events_that_commits_returned(store: Arc<dyn Store>) -> CheckResult {
    let first = photo_commit(1, None, vec![allocated(&image(1), 0, &[1]), processed(&image(1), "v1", &[1])]);
    let mut recorded = store.commit(&first).await?;
    let second = photo_commit(2, None, vec![rejected(&image(2), "v1", RejectCode::Damaged)]);
    recorded.extend(store.commit(&second).await?);
    ensure_no_gaps(&recorded)?;
    for (recorded, (commit, event)) in
        recorded.iter().zip([(&first, &first.events[0]), (&first, &first.events[1]), (&second, &second.events[0])])
    {
        ensure_eq!(recorded.event, *event, "the event at {}", recorded.seq);
        ensure_eq!(recorded.id, event.id(), "the ID of the event at {}", recorded.seq);
        ensure_eq!(recorded.when, commit.when, "the time of the event at {}", recorded.seq);
        ensure_eq!(recorded.actor, commit.actor, "the actor of the event at {}", recorded.seq);
    }
    ensure_eq!(sorted(read_all(store.as_ref(), 100).await?), sorted(recorded), "the log");
    Ok(())
}

pub(super) async fn a_photo_event_is_found_by_sequence_number(store: Arc<dyn Store>) -> CheckResult {
    let mut expected = Vec::new();
    for n in 0..6 {
        let events = vec![allocated(&image(n), n as u32, &[n as u32 + 1]), processed(&image(n), "v1", &[])];
        let recorded = store.commit(&photo_commit(n, None, events)).await?;
        expected.extend(recorded.last().cloned().map(|recorded| (n, recorded)));
    }
    for (n, recorded) in expected {
        let found = store.event(&image(n), recorded.seq).await?;
        ensure_eq!(found.as_ref(), Some(&recorded), "the event at {} of lane {}", recorded.seq, recorded.lane);
    }
    ensure_eq!(store.event(&image(1), Seq(1000)).await?, None, "an event at an unused sequence number");
    Ok(())
}

pub(super) async fn a_photo_state_follows_from_its_events(store: Arc<dyn Store>) -> CheckResult {
    let mut expected = None;
    let events = [
        rejected(&image(1), "v1", RejectCode::TooManyPixels),
        processed(&image(1), "v1", &[3, 1]),
        rejected(&image(1), "v2", RejectCode::Damaged),
        processed(&image(1), "v3", &[2]),
    ];
    for event in events {
        let recorded = store.commit(&photo_commit(1, expected.clone(), vec![event.clone()])).await?;
        let recorded = recorded.first().ok_or("a commit with an event returned no recorded event")?;
        expected = PhotoState::evolve(expected, recorded.seq, &recorded.event);
        ensure_eq!(store.photo(&image(1)).await?, expected, "the photo after {}", event.event_type());
    }
    ensure_eq!(store.photo(&image(2)).await?, None, "the state of an unknown photo");
    Ok(())
}

pub(super) async fn sequences_have_no_gaps_under_concurrency(store: Arc<dyn Store>) -> CheckResult {
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for n in task * 20..(task + 1) * 20 {
                store.commit(&photo_commit(n, None, vec![processed(&image(n), "v1", &[])])).await?;
            }
            CheckResult::Ok(())
        });
    }
    // A concurrent reader sees a prefix of the log without gaps.
    let mut seen = 0;
    while seen < 160 {
        let all_done = tasks.is_empty();
        let log = read_all(store.as_ref(), 1000).await?;
        ensure_no_gaps(&log)?;
        ensure!(log.len() >= seen, "the log shrank from {seen} to {} events", log.len());
        seen = log.len();
        while let Some(done) = tasks.try_join_next() {
            done??;
        }
        ensure!(!all_done || seen == 160, "the log holds {seen} of 160 events after all commits");
        tokio::task::yield_now().await;
    }
    tasks.join_all().await.into_iter().collect::<CheckResult<Vec<()>>>()?;
    let mut photos: Vec<_> =
        read_all(store.as_ref(), 7).await?.iter().filter_map(|r| r.event.image().cloned()).collect();
    photos.sort_unstable();
    let mut expected: Vec<_> = (0..160).map(image).collect();
    expected.sort_unstable();
    ensure_eq!(photos, expected, "the photos in the log");
    Ok(())
}

fn ensure_no_gaps(log: &[RecordedEvent]) -> CheckResult {
    let mut passed = Position::default();
    for recorded in log {
        let Seq(before) = passed.in_lane(recorded.lane);
        ensure_eq!(recorded.seq, Seq(before + 1), "the event after {before} of lane {}", recorded.lane);
        passed.advance_past(recorded);
    }
    Ok(())
}

pub(super) async fn the_log_is_read_completely_in_any_page_size(store: Arc<dyn Store>) -> CheckResult {
    let mut committed = Vec::new();
    for n in 0..23 {
        committed.extend(store.commit(&photo_commit(n, None, vec![processed(&image(n), "v1", &[])])).await?);
    }
    for page in [1, 2, 7, 23, 24, 1000] {
        let log = read_all(store.as_ref(), page).await?;
        ensure_no_gaps(&log)?;
        ensure_eq!(sorted(log), sorted(committed.clone()), "the log in pages of {page}");
    }
    let passed = |events: &[RecordedEvent]| events.iter().map(|r| (r.lane, r.seq)).collect::<Position>();
    let after = store.read_log(&passed(&committed[..20]), 5).await?;
    ensure_eq!(sorted(after), sorted(committed[20..].to_vec()), "the events after the twentieth");
    ensure!(store.read_log(&passed(&committed), 5).await?.is_empty(), "events are returned after the last one");
    Ok(())
}

pub(super) async fn the_identity_tail_holds_exactly_the_identity_events(store: Arc<dyn Store>) -> CheckResult {
    let mut identity = Vec::new();
    for n in 1..=12_u32 {
        let photo = u64::from(n);
        let events = vec![allocated(&image(photo), n - 1, &[n]), processed(&image(photo), "v1", &[n])];
        let recorded = store.commit(&photo_commit(photo, None, events)).await?;
        identity.extend(recorded.into_iter().filter(|recorded| recorded.event.is_identity()));
        store.commit(&photo_commit(photo + 100, None, vec![processed(&image(photo + 100), "v1", &[n])])).await?;
    }
    let named = renamed(3, Seq(34), "Ada");
    identity.extend(store.commit(&Commit { events: vec![named], ..empty_commit() }).await?);
    store.commit(&photo_commit(300, None, vec![processed(&image(300), "v1", &[])])).await?;

    let last = identity.last().ok_or("no identity events were recorded")?.seq;
    for known in [0_usize, 1, 5, 12] {
        let after = known.checked_sub(1).map_or(Seq(0), |n| identity[n].seq);
        let tail = store.identity(after).await?;
        ensure_eq!(tail.events, identity[known..], "the identity events after {after}");
        ensure_eq!(tail.seq, last, "the last identity event, asked after {after}");
    }
    let tail = store.identity(last).await?;
    ensure!(tail.events.is_empty() && tail.seq == last, "the identity tail after the last event is {tail:?}");
    Ok(())
}

pub(super) async fn signatures_are_returned_unchanged(store: Arc<dyn Store>) -> CheckResult {
    let photos = [(1, 3_u16), (2, 0), (3, 1)];
    let mut kept = Vec::new();
    for (n, faces) in photos {
        let signatures: Vec<_> = (0..faces).map(|f| stored_face(face(&image(n), f), n as u8 * 16 + f as u8)).collect();
        kept.extend(signatures.clone());
        let commit = photo_commit(n, None, vec![processed(&image(n), "v1", &[])]);
        store.commit(&Commit { signatures, ..commit }).await?;
    }
    let asked: Vec<_> = photos.iter().flat_map(|(n, _)| (0..4).map(|f| face(&image(*n), f))).collect();
    let mut found = store.signatures(&asked).await?;
    found.sort_by(|a, b| a.face.cmp(&b.face));
    kept.sort_by(|a, b| a.face.cmp(&b.face));
    ensure_eq!(found, kept, "the signatures");
    ensure!(store.signatures(&[]).await?.is_empty(), "a request for no faces returns faces");
    Ok(())
}

/// Faces of a later version have new numbers, because the log may still refer to the earlier ones.
pub(super) async fn signatures_of_a_new_version_keep_the_old_ones(store: Arc<dyn Store>) -> CheckResult {
    let kept: Vec<_> = (0..5).map(|n| stored_face(face(&image(1), n), 16 + n as u8)).collect();
    let mut first = photo_commit(1, None, vec![processed(&image(1), "v1", &[1, 2, 3])]);
    first.signatures = kept[..3].to_vec();
    store.commit(&first).await?;
    let before = store.photo(&image(1)).await?;
    ensure_eq!(before.as_ref().map(|state| state.faces), Some(3), "the number of faces so far");
    let mut second = photo_commit(1, before, vec![processed(&image(1), "v2", &[1, 2])]);
    second.signatures = kept[3..].to_vec();
    store.commit(&second).await?;
    let asked: Vec<_> = (0..6).map(|n| face(&image(1), n)).collect();
    let mut found = store.signatures(&asked).await?;
    found.sort_by(|a, b| a.face.cmp(&b.face));
    ensure_eq!(found, kept, "the signatures of both versions");
    Ok(())
}

pub(super) async fn check_succeeds_and_changes_nothing(store: Arc<dyn Store>) -> CheckResult {
    store.check().await?;
    store.commit(&photo_commit(1, None, vec![processed(&image(1), "v1", &[1])])).await?;
    let before = (read_all(store.as_ref(), 10).await?, store.identity(Seq(0)).await?, store.photo(&image(1)).await?);
    store.check().await?;
    let after = (read_all(store.as_ref(), 10).await?, store.identity(Seq(0)).await?, store.photo(&image(1)).await?);
    ensure_eq!(after, before, "log, persons and photo after a check");
    let next = store.commit(&photo_commit(2, None, vec![processed(&image(2), "v1", &[1])])).await?;
    ensure_no_gaps(&[before.0, next].concat())?;
    Ok(())
}
