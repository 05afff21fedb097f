//! All of a commit, or nothing.

use std::sync::Arc;

use serde_json::json;
use sparks_domain::{Identity, Key, Position, Presence, Seq};
use sparks_engine::{Commit, CommitError, PhotoGuard, Store};

use crate::{
    contract::{Checked, ensure, ensure_eq},
    samples::{allocated, face, image, nothing, person, processed, raise, set, stored_face, uploader},
};

/// A commit that touches everything: both kinds of events, rows, a counter, signatures and a photo's state.
fn everything() -> Commit {
    let photo = image(1);
    Commit {
        photo: Some(PhotoGuard { image: photo.clone(), before: None }),
        identity: Some(Identity::default()),
        events: vec![allocated(&photo, 0, &[1]), processed(&photo, "v1", &[1])],
        mutations: vec![
            set(&Key::tagging(&photo, person(1)), Presence::Any, json!({ "entityType": "TAGGING#person1" })),
            raise(&Key::counter(), json!({ "limit": 1 })),
        ],
        signatures: vec![stored_face(face(&photo, 0), 1)],
        ..nothing()
    }
}

/// Nothing of [`everything`] is to be seen.
async fn is_untouched(store: &dyn Store) -> Checked {
    let photo = image(1);
    ensure!(store.read_log(&Position::default(), 10).await?.is_empty(), "an event of a failed commit is in the log");
    ensure_eq!(store.photo(&photo).await?, None, "the photo's state after a failed commit");
    ensure_eq!(store.get(&Key::tagging(&photo, person(1))).await?, None, "a row of a failed commit");
    ensure_eq!(store.get(&Key::counter()).await?, None, "the counter after a failed commit");
    ensure!(store.signatures(&[face(&photo, 0)]).await?.is_empty(), "a signature of a failed commit is kept");
    let tail = store.identity(Seq(0)).await?;
    ensure!(tail.events.is_empty(), "an identity event of a failed commit is there");
    ensure_eq!((tail.seq, tail.counter), (Seq(0), 0), "identity head and counter after a failed commit");
    Ok(())
}

pub(super) async fn a_missing_row_undoes_the_whole_commit(store: Arc<dyn Store>) -> Checked {
    let missing = Key::image(&image(1), &uploader());
    let mut commit = everything();
    commit.mutations.push(set(&missing, Presence::Required, json!({ "persons": ["person1"] })));
    match store.commit(&commit).await {
        Err(CommitError::RowMissing(key)) => ensure_eq!(key, missing, "the row that is said to be missing"),
        other => ensure!(false, "a missing row gives {other:?} instead of RowMissing"),
    }
    ensure_eq!(store.get(&missing).await?, None, "the row that only the platform makes");
    is_untouched(store.as_ref()).await?;

    // The same commit goes through once the row is there: it was the row that was missing.
    store.commit(&Commit { mutations: vec![set(&missing, Presence::Any, json!({ "tags": [] }))], ..nothing() }).await?;
    store.commit(&commit).await?;
    Ok(())
}

pub(super) async fn a_taken_number_undoes_the_whole_commit(store: Arc<dyn Store>) -> Checked {
    let taken = Key::person(person(1));
    let foreign = set(&taken, Presence::Any, json!({ "displayName": "Somebody else's", "note": 1 }));
    store.commit(&Commit { mutations: vec![foreign], ..nothing() }).await?;
    let before = store.get(&taken).await?;
    let mut commit = everything();
    commit.mutations.push(set(&taken, Presence::Absent, json!({ "displayName": "person1" })));
    match store.commit(&commit).await {
        Err(CommitError::NumberTaken(number)) => ensure_eq!(number, person(1), "the number that is said to be taken"),
        other => ensure!(false, "a taken number gives {other:?} instead of NumberTaken"),
    }
    ensure_eq!(store.get(&taken).await?, before, "the row of somebody else");
    is_untouched(store.as_ref()).await
}

pub(super) async fn a_moved_photo_undoes_the_whole_commit(store: Arc<dyn Store>) -> Checked {
    let guard = |before| Some(PhotoGuard { image: image(2), before });
    let first = Commit { photo: guard(None), events: vec![processed(&image(2), "v1", &[])], ..nothing() };
    let recorded = store.commit(&first).await?;
    let late = Commit { photo: guard(None), ..everything() };
    let refused = store.commit(&late).await;
    ensure!(matches!(refused, Err(CommitError::PhotoMoved)), "a moved photo gives {refused:?} instead of PhotoMoved");
    ensure_eq!(store.read_log(&Position::default(), 10).await?, recorded, "the log after a refused commit");
    ensure_eq!(store.get(&Key::counter()).await?, None, "the counter after a refused commit");
    ensure!(store.signatures(&[face(&image(1), 0)]).await?.is_empty(), "a signature of a refused commit is kept");
    Ok(())
}

pub(super) async fn moved_persons_undo_the_whole_commit(store: Arc<dyn Store>) -> Checked {
    let late = Commit { identity: Some(Identity { seq: Seq(7), ..Identity::default() }), ..everything() };
    let refused = store.commit(&late).await;
    ensure!(matches!(refused, Err(CommitError::IdentityMoved)), "moved persons give {refused:?}");
    is_untouched(store.as_ref()).await
}
