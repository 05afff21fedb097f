//! Commits are atomic: a failed one leaves no trace.

use std::sync::Arc;

use serde_json::json;
use sparks_domain::{IdentityHead, Key, Position, Presence, Seq};
use sparks_engine::{Commit, CommitError, PhotoGuard, Store};

use crate::{
    contract::{CheckResult, ensure, ensure_eq},
    samples::{allocated, empty_commit, face, image, person, processed, raise, set, stored_face, uploader},
};

/// Returns a commit with both kinds of events, rows, a counter, signatures and a photo's state.
fn full_commit() -> Commit {
    let photo = image(1);
    Commit {
        photo: Some(PhotoGuard { image: photo.clone(), before: None }),
        identity: Some(IdentityHead::default()),
        events: vec![allocated(&photo, 0, &[1]), processed(&photo, "v1", &[1])],
        mutations: vec![
            set(&Key::tagging(&photo, person(1)), Presence::Any, json!({ "entityType": "TAGGING#person1" })),
            raise(&Key::counter(), json!({ "limit": 1 })),
        ],
        signatures: vec![stored_face(face(&photo, 0), 1)],
        ..empty_commit()
    }
}

/// Fails if any effect of [`full_commit`] is visible.
async fn ensure_untouched(store: &dyn Store) -> CheckResult {
    let photo = image(1);
    ensure!(store.read_log(&Position::default(), 10).await?.is_empty(), "an event of a failed commit is in the log");
    ensure_eq!(store.photo(&photo).await?, None, "the photo's state after a failed commit");
    ensure_eq!(store.get(&Key::tagging(&photo, person(1))).await?, None, "a row of a failed commit");
    ensure_eq!(store.get(&Key::counter()).await?, None, "the counter after a failed commit");
    ensure!(store.signatures(&[face(&photo, 0)]).await?.is_empty(), "a signature of a failed commit is stored");
    let tail = store.identity(Seq(0)).await?;
    ensure!(tail.events.is_empty(), "an identity event of a failed commit is in the log");
    ensure_eq!((tail.seq, tail.counter), (Seq(0), 0), "identity head and counter after a failed commit");
    Ok(())
}

pub(super) async fn a_missing_row_rolls_the_commit_back(store: Arc<dyn Store>) -> CheckResult {
    let missing = Key::image(&image(1), &uploader());
    let mut commit = full_commit();
    commit.mutations.push(set(&missing, Presence::Required, json!({ "persons": ["person1"] })));
    match store.commit(&commit).await {
        Err(CommitError::RowMissing(key)) => ensure_eq!(key, missing, "the row that the error names"),
        other => ensure!(false, "a commit on a missing row returns {other:?} instead of RowMissing"),
    }
    ensure_eq!(store.get(&missing).await?, None, "the missing row, which only the platform creates");
    ensure_untouched(store.as_ref()).await?;

    // The same commit succeeds with the row, so the missing row was the only cause.
    store
        .commit(&Commit { mutations: vec![set(&missing, Presence::Any, json!({ "tags": [] }))], ..empty_commit() })
        .await?;
    store.commit(&commit).await?;
    Ok(())
}

pub(super) async fn a_taken_number_rolls_the_commit_back(store: Arc<dyn Store>) -> CheckResult {
    let taken = Key::person(person(1));
    let foreign = set(&taken, Presence::Any, json!({ "displayName": "foreign", "note": 1 }));
    store.commit(&Commit { mutations: vec![foreign], ..empty_commit() }).await?;
    let before = store.get(&taken).await?;
    let mut commit = full_commit();
    commit.mutations.push(set(&taken, Presence::Absent, json!({ "displayName": "person1" })));
    match store.commit(&commit).await {
        Err(CommitError::NumberTaken(number)) => ensure_eq!(number, person(1), "the number that the error names"),
        other => ensure!(false, "a commit on a taken number returns {other:?} instead of NumberTaken"),
    }
    ensure_eq!(store.get(&taken).await?, before, "the foreign row");
    ensure_untouched(store.as_ref()).await
}

pub(super) async fn a_changed_photo_state_rolls_the_commit_back(store: Arc<dyn Store>) -> CheckResult {
    let guard = |before| Some(PhotoGuard { image: image(2), before });
    let first = Commit { photo: guard(None), events: vec![processed(&image(2), "v1", &[])], ..empty_commit() };
    let recorded = store.commit(&first).await?;
    let late = Commit { photo: guard(None), ..full_commit() };
    let refused = store.commit(&late).await;
    ensure!(
        matches!(refused, Err(CommitError::PhotoMoved)),
        "a commit on a stale photo state returns {refused:?} instead of PhotoMoved"
    );
    ensure_eq!(store.read_log(&Position::default(), 10).await?, recorded, "the log after a failed commit");
    ensure_eq!(store.get(&Key::counter()).await?, None, "the counter after a failed commit");
    ensure!(store.signatures(&[face(&image(1), 0)]).await?.is_empty(), "a signature of a failed commit is stored");
    Ok(())
}

pub(super) async fn a_changed_identity_head_rolls_the_commit_back(store: Arc<dyn Store>) -> CheckResult {
    let late = Commit { identity: Some(IdentityHead { seq: Seq(7), ..IdentityHead::default() }), ..full_commit() };
    let refused = store.commit(&late).await;
    ensure!(
        matches!(refused, Err(CommitError::IdentityMoved)),
        "a commit on a stale identity head returns {refused:?}"
    );
    ensure_untouched(store.as_ref()).await
}
