//! Optimistic concurrency: a commit on a stale state is a conflict.

use std::sync::Arc;

use serde_json::json;
use sparks_domain::{Event, IdentityHead, Key, PhotoState, Position, Presence, Seq};
use sparks_engine::{Commit, CommitError, PhotoGuard, Store};
use tokio::task::JoinSet;

use crate::{
    contract::{CheckResult, ensure, ensure_eq},
    samples::{allocated, empty_commit, following, image, person, processed, raise, renamed, set},
};

fn photo_commit(n: u64, before: Option<PhotoState>, event: Event) -> Commit {
    let event = following(event, before.as_ref());
    Commit { photo: Some(PhotoGuard { image: image(n), before }), events: vec![event], ..empty_commit() }
}

fn identity_commit(identity: IdentityHead, event: Event) -> Commit {
    Commit { identity: Some(identity), events: vec![event], ..empty_commit() }
}

fn identity(seq: u64, counter: u32) -> IdentityHead {
    IdentityHead { seq: Seq(seq), counter, ..IdentityHead::default() }
}

pub(super) async fn a_photo_is_committed_once(store: Arc<dyn Store>) -> CheckResult {
    let once = photo_commit(1, None, processed(&image(1), "v1", &[]));
    store.commit(&once).await?;
    let again = store.commit(&once).await;
    ensure!(matches!(again, Err(CommitError::PhotoMoved)), "a second commit returns {again:?} instead of PhotoMoved");

    let first = store.photo(&image(1)).await?;
    let newer = photo_commit(1, first.clone(), processed(&image(1), "v2", &[2]));
    store.commit(&newer).await?;
    let late = store.commit(&photo_commit(1, first, processed(&image(1), "v3", &[]))).await;
    ensure!(matches!(late, Err(CommitError::PhotoMoved)), "a commit on a stale state returns {late:?}");
    let never = store.photo(&image(1)).await?;
    let never = store.commit(&photo_commit(2, never, processed(&image(2), "v1", &[]))).await;
    ensure!(matches!(never, Err(CommitError::PhotoMoved)), "a commit on a state of another photo returns {never:?}");
    ensure_eq!(store.read_log(&Position::default(), 10).await?.len(), 2, "the events in the log");
    Ok(())
}

pub(super) async fn a_photo_guard_without_a_photo_event_keeps_the_state(store: Arc<dyn Store>) -> CheckResult {
    store.commit(&photo_commit(1, None, allocated(&image(1), 0, &[1]))).await?;
    ensure_eq!(store.photo(&image(1)).await?, None, "the state of a photo without photo events");
    store.commit(&photo_commit(1, None, processed(&image(1), "v1", &[]))).await?;
    let state = store.photo(&image(1)).await?;
    store.commit(&photo_commit(1, state.clone(), renamed(1, Seq(1), "Ada"))).await?;
    ensure_eq!(store.photo(&image(1)).await?, state, "the state after an event of another kind");
    Ok(())
}

/// Only the guards refuse a commit. An object whose earlier content returns is committed like any other version.
pub(super) async fn an_earlier_version_can_be_committed_again(store: Arc<dyn Store>) -> CheckResult {
    for (n, version) in ["v1", "v2", "v1"].into_iter().enumerate() {
        let before = store.photo(&image(1)).await?;
        let committed = store.commit(&photo_commit(1, before, processed(&image(1), version, &[]))).await;
        ensure!(committed.is_ok(), "commit {} of three, of version {version}, returns {committed:?}", n + 1);
    }
    Ok(())
}

pub(super) async fn a_stale_identity_head_is_a_conflict(store: Arc<dyn Store>) -> CheckResult {
    store.commit(&identity_commit(identity(0, 0), allocated(&image(1), 0, &[1]))).await?;
    let stale = store.commit(&identity_commit(identity(0, 0), allocated(&image(2), 0, &[1]))).await;
    ensure!(matches!(stale, Err(CommitError::IdentityMoved)), "a commit on a stale identity head returns {stale:?}");
    // Photo events advance the log but not the identity head.
    store.commit(&photo_commit(1, None, processed(&image(1), "v1", &[1]))).await?;
    let seq = store.identity(Seq(0)).await?.seq;
    store.commit(&identity_commit(identity(seq.0, 0), renamed(1, seq, "Ada"))).await?;
    let stale = store.commit(&identity_commit(identity(seq.0, 0), renamed(1, seq, "Bea"))).await;
    ensure!(matches!(stale, Err(CommitError::IdentityMoved)), "a commit that missed a rename returns {stale:?}");
    Ok(())
}

pub(super) async fn a_stale_counter_is_a_conflict(store: Arc<dyn Store>) -> CheckResult {
    // Another program raises the counter without an event.
    store.commit(&Commit { mutations: vec![raise(&Key::counter(), json!({ "limit": 5 }))], ..empty_commit() }).await?;
    let stale = store.commit(&identity_commit(identity(0, 0), allocated(&image(1), 0, &[1]))).await;
    ensure!(matches!(stale, Err(CommitError::IdentityMoved)), "a commit on a stale counter returns {stale:?}");
    let tail = store.identity(Seq(0)).await?;
    ensure_eq!((tail.seq, tail.counter), (Seq(0), 5), "identity head and counter");
    store.commit(&identity_commit(identity(0, 5), allocated(&image(1), 5, &[6]))).await?;
    Ok(())
}

pub(super) async fn photos_of_known_persons_need_no_identity_guard(store: Arc<dyn Store>) -> CheckResult {
    store.commit(&identity_commit(identity(0, 0), allocated(&image(1), 0, &[1]))).await?;
    store.commit(&photo_commit(2, None, processed(&image(2), "v1", &[1]))).await?;
    Ok(())
}

pub(super) async fn one_of_many_concurrent_commits_of_a_photo_succeeds(store: Arc<dyn Store>) -> CheckResult {
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let store = Arc::clone(&store);
        let commit = photo_commit(1, None, processed(&image(1), &format!("v{n}"), &[]));
        tasks.spawn(async move { store.commit(&commit).await });
    }
    let mut committed = 0;
    for result in tasks.join_all().await {
        match result {
            Ok(_) => committed += 1,
            Err(CommitError::PhotoMoved) => {}
            Err(other) => return Err(other.into()),
        }
    }
    ensure_eq!(committed, 1, "number of eight concurrent commits that succeed");
    ensure_eq!(store.read_log(&Position::default(), 10).await?.len(), 1, "the events in the log");
    Ok(())
}

pub(super) async fn concurrent_allocations_use_every_number_once(store: Arc<dyn Store>) -> CheckResult {
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for n in 0..3 {
                allocate(store.as_ref(), task * 3 + n).await?;
            }
            CheckResult::Ok(())
        });
    }
    for done in tasks.join_all().await {
        done?;
    }
    let tail = store.identity(Seq(0)).await?;
    let numbers: Vec<u32> = tail
        .events
        .iter()
        .flat_map(|recorded| match &recorded.event {
            Event::PersonsAllocated(e) => e.persons.iter().map(|a| a.person.number()).collect(),
            _ => Vec::new(),
        })
        .collect();
    ensure_eq!(numbers, (1..=24).collect::<Vec<_>>(), "allocated numbers in the order of the log");
    ensure_eq!(tail.counter, 24, "the counter");
    Ok(())
}

/// Allocates the next person number, and decides again after every conflict.
async fn allocate(store: &dyn Store, n: u64) -> CheckResult {
    for _ in 0..10_000 {
        let tail = store.identity(Seq(0)).await?;
        let next = tail.counter + 1;
        let row = set(&Key::person(person(next)), Presence::Absent, json!({ "displayName": format!("person{next}") }));
        let commit = Commit {
            mutations: vec![row, raise(&Key::counter(), json!({ "limit": next }))],
            ..identity_commit(identity(tail.seq.0, tail.counter), allocated(&image(n), tail.counter, &[next]))
        };
        match store.commit(&commit).await {
            Ok(_) => return Ok(()),
            Err(CommitError::IdentityMoved) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Err("no number allocated in 10,000 attempts".into())
}
