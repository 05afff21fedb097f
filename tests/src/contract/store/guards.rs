//! Where the world has moved, a commit says so; where it has not, it goes through.

use std::sync::Arc;

use serde_json::json;
use sparks_domain::{Event, Identity, Key, PhotoState, Position, Presence, Seq};
use sparks_engine::{Commit, CommitError, PhotoGuard, Store};
use tokio::task::JoinSet;

use crate::{
    contract::{Checked, ensure, ensure_eq},
    samples::{allocated, following, image, nothing, person, processed, raise, renamed, set},
};

fn photo_commit(n: u64, before: Option<PhotoState>, event: Event) -> Commit {
    let event = following(event, before.as_ref());
    Commit { photo: Some(PhotoGuard { image: image(n), before }), events: vec![event], ..nothing() }
}

fn identity_commit(identity: Identity, event: Event) -> Commit {
    Commit { identity: Some(identity), events: vec![event], ..nothing() }
}

fn identity(seq: u64, counter: u32) -> Identity {
    Identity { seq: Seq(seq), counter, ..Identity::default() }
}

pub(super) async fn a_photo_is_committed_once(store: Arc<dyn Store>) -> Checked {
    let once = photo_commit(1, None, processed(&image(1), "v1", &[]));
    store.commit(&once).await?;
    let again = store.commit(&once).await;
    ensure!(matches!(again, Err(CommitError::PhotoMoved)), "a second commit gives {again:?} instead of PhotoMoved");

    let first = store.photo(&image(1)).await?;
    let newer = photo_commit(1, first.clone(), processed(&image(1), "v2", &[2]));
    store.commit(&newer).await?;
    let late = store.commit(&photo_commit(1, first, processed(&image(1), "v3", &[]))).await;
    ensure!(matches!(late, Err(CommitError::PhotoMoved)), "a commit on an old state gives {late:?}");
    let never = store.photo(&image(1)).await?;
    let never = store.commit(&photo_commit(2, never, processed(&image(2), "v1", &[]))).await;
    ensure!(matches!(never, Err(CommitError::PhotoMoved)), "a state that never was gives {never:?}");
    ensure_eq!(store.read_log(&Position::default(), 10).await?.len(), 2, "the events in the log");
    Ok(())
}

pub(super) async fn a_photo_guard_without_a_photo_event_changes_nothing(store: Arc<dyn Store>) -> Checked {
    store.commit(&photo_commit(1, None, allocated(&image(1), 0, &[1]))).await?;
    ensure_eq!(store.photo(&image(1)).await?, None, "the state of a photo that no event is about");
    store.commit(&photo_commit(1, None, processed(&image(1), "v1", &[]))).await?;
    let state = store.photo(&image(1)).await?;
    store.commit(&photo_commit(1, state.clone(), renamed(1, Seq(1), "Ada"))).await?;
    ensure_eq!(store.photo(&image(1)).await?, state, "the state after an event about something else");
    Ok(())
}

/// Only the guards say no: an object that gets its old content back is a photo to be committed like any other.
pub(super) async fn a_version_that_comes_back_is_committed_again(store: Arc<dyn Store>) -> Checked {
    for (n, version) in ["v1", "v2", "v1"].into_iter().enumerate() {
        let before = store.photo(&image(1)).await?;
        let committed = store.commit(&photo_commit(1, before, processed(&image(1), version, &[]))).await;
        ensure!(committed.is_ok(), "commit {} of three, of version {version}, gives {committed:?}", n + 1);
    }
    Ok(())
}

pub(super) async fn the_identity_guard_watches_the_head(store: Arc<dyn Store>) -> Checked {
    store.commit(&identity_commit(identity(0, 0), allocated(&image(1), 0, &[1]))).await?;
    let stale = store.commit(&identity_commit(identity(0, 0), allocated(&image(2), 0, &[1]))).await;
    ensure!(matches!(stale, Err(CommitError::IdentityMoved)), "an old identity head gives {stale:?}");
    // Events about photos move the log, but not who is known.
    store.commit(&photo_commit(1, None, processed(&image(1), "v1", &[1]))).await?;
    let seq = store.identity(Seq(0)).await?.seq;
    store.commit(&identity_commit(identity(seq.0, 0), renamed(1, seq, "Ada"))).await?;
    let stale = store.commit(&identity_commit(identity(seq.0, 0), renamed(1, seq, "Bea"))).await;
    ensure!(matches!(stale, Err(CommitError::IdentityMoved)), "a rename that nobody saw gives {stale:?}");
    Ok(())
}

pub(super) async fn the_identity_guard_watches_the_counter(store: Arc<dyn Store>) -> Checked {
    // Somebody who knows nothing of us adds to the counter: there is no event.
    store.commit(&Commit { mutations: vec![raise(&Key::counter(), json!({ "limit": 5 }))], ..nothing() }).await?;
    let stale = store.commit(&identity_commit(identity(0, 0), allocated(&image(1), 0, &[1]))).await;
    ensure!(matches!(stale, Err(CommitError::IdentityMoved)), "an old counter gives {stale:?}");
    let tail = store.identity(Seq(0)).await?;
    ensure_eq!((tail.seq, tail.counter), (Seq(0), 5), "identity head and counter");
    store.commit(&identity_commit(identity(0, 5), allocated(&image(1), 5, &[6]))).await?;
    Ok(())
}

pub(super) async fn known_persons_need_no_guard(store: Arc<dyn Store>) -> Checked {
    store.commit(&identity_commit(identity(0, 0), allocated(&image(1), 0, &[1]))).await?;
    store.commit(&photo_commit(2, None, processed(&image(2), "v1", &[1]))).await?;
    Ok(())
}

pub(super) async fn of_many_who_commit_a_photo_one_does(store: Arc<dyn Store>) -> Checked {
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
    ensure_eq!(committed, 1, "how many of eight commits went through");
    ensure_eq!(store.read_log(&Position::default(), 10).await?.len(), 1, "the events in the log");
    Ok(())
}

pub(super) async fn numbers_given_out_at_once_are_given_once(store: Arc<dyn Store>) -> Checked {
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for n in 0..3 {
                allocate(store.as_ref(), task * 3 + n).await?;
            }
            Checked::Ok(())
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
    ensure_eq!(numbers, (1..=24).collect::<Vec<_>>(), "the numbers in the order of the log");
    ensure_eq!(tail.counter, 24, "the counter");
    Ok(())
}

/// Gives the next number to a stranger, deciding again for as long as others are faster.
async fn allocate(store: &dyn Store, n: u64) -> Checked {
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
    Err("no number after 10,000 attempts".into())
}
