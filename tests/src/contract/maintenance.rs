//! The contract of the [`Maintenance`] port: repairs, unidentified faces, co-occurrences and checkpoints.

use std::{collections::BTreeSet, future::Future, sync::Arc};

use serde_json::json;
use sparks_domain::{Difference, IdentityHead, Key, Lane, Mutation, PhotoState, Position, Presence, Seq};
use sparks_engine::{
    Checkpoint, Commit, DecidedFace, Erasure, Maintenance, PhotoGuard, RepairGroup, RepairGuard, RepairReport,
    StoredFace,
};

use super::{CheckResult, Report, checks, ensure, ensure_eq, run};
use crate::samples::{decided_face, empty_commit, face, following, forgotten, image, person, processed, set};

/// Runs the suite. `make` returns an empty store.
pub async fn maintenance<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = Arc<dyn Maintenance>>,
{
    let checks = checks![
        suite::{
            unidentified_faces_are_paged_in_order,
            co_occurrences_are_pairs_of_one_photo_version,
            co_occurrences_include_faces_identified_later,
            promotion_keeps_co_occurrences,
            erased_faces_are_in_no_listing,
            checkpoints_are_independent_and_persistent,
            repairs_of_photos_need_an_unchanged_state,
            repairs_of_persons_need_unchanged_persons,
        },
    ];
    run(checks, make).await
}

/// Commits a photo with one face for each entry, unidentified for `None`, and returns its faces.
async fn commit_photo(
    store: &dyn Maintenance,
    n: u64,
    before: Option<PhotoState>,
    persons: &[Option<u32>],
) -> CheckResult<Vec<DecidedFace>> {
    let first = before.as_ref().map_or(0, |state| state.faces);
    // The event lists all faces, also unidentified ones, so that the next version's faces get new numbers.
    let numbers: Vec<u32> = persons.iter().map(|person| person.unwrap_or(99)).collect();
    let event = following(processed(&image(n), before.as_ref().map_or("v1", |_| "v2"), &numbers), before.as_ref());
    let faces = (first..).zip(persons).map(|(f, person)| {
        let number = (n * 16) as u8 + f as u8;
        decided_face(face(&image(n), f), number, *person, false)
    });
    let signatures: Vec<StoredFace> = faces.collect();
    let photo = Some(PhotoGuard { image: image(n), before });
    let commit = Commit { photo, events: vec![event], signatures, ..empty_commit() };
    let recorded = store.commit(&commit).await?;
    let seq = recorded.last().ok_or("a commit with an event returned no recorded event")?.seq;
    Ok(commit.signatures.into_iter().map(|kept| DecidedFace { seq, kept }).collect())
}

mod suite {
    use super::*;

    async fn list_unidentified(store: &dyn Maintenance, page: usize) -> CheckResult<Vec<DecidedFace>> {
        let mut found: Vec<DecidedFace> = Vec::new();
        loop {
            let after = found.last().map(|decided| decided.kept.face.clone());
            let more = store.unidentified(after.as_ref(), page).await?;
            ensure!(more.len() <= page, "a page of {page} holds {} faces", more.len());
            if more.is_empty() {
                return Ok(found);
            }
            ensure!(found.len() < 1000, "listing with pages of {page} does not end");
            found.extend(more);
        }
    }

    pub(super) async fn unidentified_faces_are_paged_in_order(store: Arc<dyn Maintenance>) -> CheckResult {
        let mut expected = Vec::new();
        for (n, persons) in [(5, &[None, Some(1), None][..]), (3, &[None]), (4, &[Some(1)]), (9, &[None, None])] {
            expected.extend(commit_photo(store.as_ref(), n, None, persons).await?);
        }
        expected.retain(|decided| decided.kept.person.is_none());
        expected.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
        for page in [1, 2, 3, 100] {
            ensure_eq!(
                list_unidentified(store.as_ref(), page).await?,
                expected,
                "unidentified faces in pages of {page}"
            );
        }
        let face = expected.remove(2).kept.face;
        store.commit(&Commit { identified: vec![(face, person(1))], ..empty_commit() }).await?;
        ensure_eq!(
            list_unidentified(store.as_ref(), 2).await?,
            expected,
            "unidentified faces after one was identified"
        );
        Ok(())
    }

    pub(super) async fn co_occurrences_are_pairs_of_one_photo_version(store: Arc<dyn Maintenance>) -> CheckResult {
        ensure_eq!(store.co_occurrences(None).await?, BTreeSet::new(), "co-occurrences in an empty store");
        for (n, persons) in [
            (1, &[Some(3), Some(1), Some(12)][..]),
            (2, &[Some(1), Some(3), None]),
            (3, &[Some(5), Some(5)]),
            (4, &[None, Some(6), None]),
            (5, &[Some(7)]),
            (6, &[Some(8)]),
        ] {
            commit_photo(store.as_ref(), n, None, persons).await?;
        }
        // Persons of different versions of a photo do not co-occur.
        let before = store.photo(&image(5)).await?;
        commit_photo(store.as_ref(), 5, before, &[Some(9)]).await?;
        let pairs = [(1, 3), (1, 12), (3, 12)].map(|(a, b)| (person(a), person(b)));
        ensure_eq!(store.co_occurrences(None).await?, BTreeSet::from(pairs), "co-occurrences");
        let persons = BTreeSet::from([person(3), person(7)]);
        let pairs = [(1, 3), (3, 12)].map(|(a, b)| (person(a), person(b)));
        ensure_eq!(store.co_occurrences(Some(&persons)).await?, BTreeSet::from(pairs), "co-occurrences of two persons");
        Ok(())
    }

    pub(super) async fn co_occurrences_include_faces_identified_later(store: Arc<dyn Maintenance>) -> CheckResult {
        let faces = commit_photo(store.as_ref(), 1, None, &[Some(6), None]).await?;
        let identified = vec![(faces[1].kept.face.clone(), person(2))];
        store.commit(&Commit { identified, ..empty_commit() }).await?;
        ensure_eq!(store.co_occurrences(None).await?, BTreeSet::from([(person(2), person(6))]), "co-occurrences");
        Ok(())
    }

    pub(super) async fn promotion_keeps_co_occurrences(store: Arc<dyn Maintenance>) -> CheckResult {
        let faces = commit_photo(store.as_ref(), 1, None, &[Some(6), Some(2), None]).await?;
        let promoted = vec![faces[0].kept.face.clone()];
        store.commit(&Commit { events: vec![forgotten(&[99], Seq(0))], promoted, ..empty_commit() }).await?;
        ensure_eq!(store.co_occurrences(None).await?, BTreeSet::from([(person(2), person(6))]), "co-occurrences");
        Ok(())
    }

    pub(super) async fn erased_faces_are_in_no_listing(store: Arc<dyn Maintenance>) -> CheckResult {
        commit_photo(store.as_ref(), 1, None, &[Some(6), None, Some(2)]).await?;
        let left = commit_photo(store.as_ref(), 2, None, &[None, Some(3), Some(1)]).await?;
        let erased = Erasure { photos: vec![image(1)], faces: vec![left[1].kept.face.clone()] };
        store.commit(&Commit { erased, ..empty_commit() }).await?;
        ensure_eq!(list_unidentified(store.as_ref(), 10).await?, left[..1], "unidentified faces");
        ensure_eq!(store.co_occurrences(None).await?, BTreeSet::new(), "co-occurrences");
        Ok(())
    }

    pub(super) async fn checkpoints_are_independent_and_persistent(store: Arc<dyn Maintenance>) -> CheckResult {
        let checkpoints = async || {
            CheckResult::Ok((
                store.checkpoint(Checkpoint::Followed).await?,
                store.checkpoint(Checkpoint::Considered).await?,
            ))
        };
        let at = |seq| Position::at(Lane::IDENTITY, Seq(seq));
        ensure_eq!(checkpoints().await?, (at(0), at(0)), "checkpoints of an empty store");
        store.set_checkpoint(Checkpoint::Followed, &at(5)).await?;
        ensure_eq!(checkpoints().await?, (at(5), at(0)), "checkpoints after one was set");
        store.set_checkpoint(Checkpoint::Considered, &at(3)).await?;
        commit_photo(store.as_ref(), 1, None, &[Some(1)]).await?;
        ensure_eq!(checkpoints().await?, (at(5), at(3)), "checkpoints after a commit");
        ensure_eq!(store.heads().await?.events(), 1, "number of events: checkpoints are not events");
        let heads = store.heads().await?;
        store.set_checkpoint(Checkpoint::Considered, &heads).await?;
        ensure_eq!(checkpoints().await?, (at(5), heads), "checkpoints with one at the end of the log");
        ensure_eq!(
            store.identity(Seq(0)).await?.seq,
            Seq(0),
            "last identity event: checkpoints are not identity events"
        );
        Ok(())
    }

    fn missing(key: &Key) -> RepairReport {
        RepairReport { differences: vec![Difference::Missing(key.clone())], ..RepairReport::default() }
    }

    fn outdated(position: usize) -> RepairReport {
        RepairReport { outdated: vec![position], ..RepairReport::default() }
    }

    pub(super) async fn repairs_of_photos_need_an_unchanged_state(store: Arc<dyn Maintenance>) -> CheckResult {
        commit_photo(store.as_ref(), 1, None, &[Some(1)]).await?;
        let before = store.photo(&image(1)).await?;
        commit_photo(store.as_ref(), 1, before.clone(), &[Some(2)]).await?;
        let key = Key::tagging(&image(1), person(1));
        let group = |before: Option<PhotoState>| RepairGroup {
            guard: RepairGuard::Photo(PhotoGuard { image: image(1), before }),
            mutations: vec![set(&key, Presence::Any, json!({ "entityType": "TAGGING#person1" }))],
        };
        for write in [false, true] {
            let report = store.repair(vec![group(before.clone())], write).await?;
            ensure_eq!(report, outdated(0), "report of a repair of an outdated photo (write: {write})");
        }
        ensure_eq!(store.get(&key).await?, None, "row of an outdated photo");
        let now = store.photo(&image(1)).await?;
        for write in [false, true] {
            let report = store.repair(vec![group(now.clone())], write).await?;
            ensure_eq!(report, missing(&key), "report of a repair of an unchanged photo (write: {write})");
        }
        ensure!(store.get(&key).await?.is_some(), "the row of an unchanged photo was not repaired");
        ensure_eq!(
            store.repair(vec![group(now.clone())], true).await?,
            RepairReport::default(),
            "report of a repair of equal rows"
        );
        // A missing row of the platform: the platform has deleted the photo.
        let required = Key::new("row of the platform", "row");
        let mutations = vec![set(&required, Presence::Required, json!({ "persons": [] }))];
        let gone = RepairGroup { mutations, ..group(now) };
        let report = store.repair(vec![gone], true).await?;
        ensure_eq!(
            report,
            RepairReport { gone: vec![required], ..RepairReport::default() },
            "report of a deleted photo"
        );
        Ok(())
    }

    pub(super) async fn repairs_of_persons_need_unchanged_persons(store: Arc<dyn Maintenance>) -> CheckResult {
        let head = async || {
            let tail = store.identity(Seq(0)).await?;
            CheckResult::Ok(IdentityHead { seq: tail.seq, counter: tail.counter, ..IdentityHead::default() })
        };
        let before = head().await?;
        store.commit(&Commit { events: vec![forgotten(&[7], before.seq)], ..empty_commit() }).await?;
        let (key, other) = (Key::person(person(7)), Key::person(person(8)));
        let row = |key: &Key| set(key, Presence::Any, json!({ "entityType": "PERSON" }));
        let group = |head: &IdentityHead, row: Mutation| RepairGroup {
            guard: RepairGuard::Identity(head.clone()),
            mutations: vec![row],
        };
        for write in [false, true] {
            let report = store.repair(vec![group(&before, row(&key))], write).await?;
            ensure_eq!(report, outdated(0), "report of a repair of outdated persons (write: {write})");
        }
        ensure_eq!(store.get(&key).await?, None, "row of a person that was forgotten");
        let now = head().await?;
        let groups = vec![group(&now, row(&other)), group(&before, row(&key))];
        let report = store.repair(groups, true).await?;
        let expected = RepairReport { outdated: vec![1], ..missing(&other) };
        ensure_eq!(report, expected, "report of a repair of an unchanged and an outdated group");
        ensure!(store.get(&other).await?.is_some(), "the row of an unchanged person was not repaired");
        let counter = IdentityHead { counter: now.counter + 1, ..now };
        let report = store.repair(vec![group(&counter, row(&key))], true).await?;
        ensure_eq!(report, outdated(0), "report of a repair with another counter");
        Ok(())
    }
}
