//! What those promise who look at everything.

use std::{collections::BTreeSet, future::Future, sync::Arc};

use sparks_domain::{Lane, PhotoState, Position, Seq};
use sparks_engine::{Commit, DecidedFace, Erasure, Maintenance, Mark, PhotoGuard, StoredFace};

use super::{Checked, Report, checks, ensure, ensure_eq, run};
use crate::samples::{decided_face, face, following, forgotten, image, nothing, person, processed};

/// Tries a store that looks at everything. Each check gets one that is empty.
pub async fn maintenance<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = Arc<dyn Maintenance>>,
{
    let checks = checks![
        promises::{
            faces_of_nobody_are_walked_in_order,
            company_is_who_was_seen_beside_whom,
            company_counts_who_was_identified_later,
            company_stays_when_a_face_is_promoted,
            erased_faces_are_nobodys_and_no_company,
            marks_stay_where_they_were_put,
        },
    ];
    run(checks, make).await
}

/// A photo in which these persons were seen, and for `None` nobody, and the event that says so.
async fn seen(
    store: &dyn Maintenance,
    n: u64,
    before: Option<PhotoState>,
    persons: &[Option<u32>],
) -> Checked<Vec<DecidedFace>> {
    let first = before.as_ref().map_or(0, |state| state.faces);
    // Each face is in the event, whoever it is, so that the next version's faces have numbers of their own.
    let known: Vec<u32> = persons.iter().map(|person| person.unwrap_or(99)).collect();
    let event = following(processed(&image(n), before.as_ref().map_or("v1", |_| "v2"), &known), before.as_ref());
    let faces = (first..).zip(persons).map(|(f, person)| {
        let number = (n * 16) as u8 + f as u8;
        decided_face(face(&image(n), f), number, *person, false)
    });
    let signatures: Vec<StoredFace> = faces.collect();
    let photo = Some(PhotoGuard { image: image(n), before });
    let commit = Commit { photo, events: vec![event], signatures, ..nothing() };
    let recorded = store.commit(&commit).await?;
    let seq = recorded.last().ok_or("a commit of an event returns none")?.seq;
    Ok(commit.signatures.into_iter().map(|kept| DecidedFace { seq, kept }).collect())
}

mod promises {
    use super::*;

    async fn walk(store: &dyn Maintenance, page: usize) -> Checked<Vec<DecidedFace>> {
        let mut found: Vec<DecidedFace> = Vec::new();
        loop {
            let after = found.last().map(|decided| decided.kept.face.clone());
            let more = store.unidentified(after.as_ref(), page).await?;
            ensure!(more.len() <= page, "a page of {page} has {} faces", more.len());
            if more.is_empty() {
                return Ok(found);
            }
            ensure!(found.len() < 1000, "there is no end of faces in pages of {page}");
            found.extend(more);
        }
    }

    pub(super) async fn faces_of_nobody_are_walked_in_order(store: Arc<dyn Maintenance>) -> Checked {
        let mut expected = Vec::new();
        for (n, persons) in [(5, &[None, Some(1), None][..]), (3, &[None]), (4, &[Some(1)]), (9, &[None, None])] {
            expected.extend(seen(store.as_ref(), n, None, persons).await?);
        }
        expected.retain(|decided| decided.kept.person.is_none());
        expected.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
        for page in [1, 2, 3, 100] {
            ensure_eq!(walk(store.as_ref(), page).await?, expected, "the faces of nobody in pages of {page}");
        }
        let somebody = expected.remove(2).kept.face;
        store.commit(&Commit { identified: vec![(somebody, person(1))], ..nothing() }).await?;
        ensure_eq!(walk(store.as_ref(), 2).await?, expected, "the faces of nobody after one is somebody's");
        Ok(())
    }

    pub(super) async fn company_is_who_was_seen_beside_whom(store: Arc<dyn Maintenance>) -> Checked {
        ensure_eq!(store.company(None).await?, BTreeSet::new(), "the company of nobody");
        for (n, persons) in [
            (1, &[Some(3), Some(1), Some(12)][..]),
            (2, &[Some(1), Some(3), None]),
            (3, &[Some(5), Some(5)]),
            (4, &[None, Some(6), None]),
            (5, &[Some(7)]),
            (6, &[Some(8)]),
        ] {
            seen(store.as_ref(), n, None, persons).await?;
        }
        // Whoever is in another version of a photo was not beside them.
        let before = store.photo(&image(5)).await?;
        seen(store.as_ref(), 5, before, &[Some(9)]).await?;
        let pairs = [(1, 3), (1, 12), (3, 12)].map(|(a, b)| (person(a), person(b)));
        ensure_eq!(store.company(None).await?, BTreeSet::from(pairs), "who was seen beside whom");
        let beside = BTreeSet::from([person(3), person(7)]);
        let pairs = [(1, 3), (3, 12)].map(|(a, b)| (person(a), person(b)));
        ensure_eq!(store.company(Some(&beside)).await?, BTreeSet::from(pairs), "who was seen beside two of them");
        Ok(())
    }

    pub(super) async fn company_counts_who_was_identified_later(store: Arc<dyn Maintenance>) -> Checked {
        let faces = seen(store.as_ref(), 1, None, &[Some(6), None]).await?;
        let identified = vec![(faces[1].kept.face.clone(), person(2))];
        store.commit(&Commit { identified, ..nothing() }).await?;
        ensure_eq!(store.company(None).await?, BTreeSet::from([(person(2), person(6))]), "who was seen beside whom");
        Ok(())
    }

    pub(super) async fn company_stays_when_a_face_is_promoted(store: Arc<dyn Maintenance>) -> Checked {
        let faces = seen(store.as_ref(), 1, None, &[Some(6), Some(2), None]).await?;
        let promoted = vec![faces[0].kept.face.clone()];
        store.commit(&Commit { events: vec![forgotten(&[99], Seq(0))], promoted, ..nothing() }).await?;
        ensure_eq!(store.company(None).await?, BTreeSet::from([(person(2), person(6))]), "who was seen beside whom");
        Ok(())
    }

    pub(super) async fn erased_faces_are_nobodys_and_no_company(store: Arc<dyn Maintenance>) -> Checked {
        seen(store.as_ref(), 1, None, &[Some(6), None, Some(2)]).await?;
        let left = seen(store.as_ref(), 2, None, &[None, Some(3), Some(1)]).await?;
        let erased = Erasure { photos: vec![image(1)], faces: vec![left[1].kept.face.clone()] };
        store.commit(&Commit { erased, ..nothing() }).await?;
        ensure_eq!(walk(store.as_ref(), 10).await?, left[..1], "the faces of nobody");
        ensure_eq!(store.company(None).await?, BTreeSet::new(), "who was seen beside whom");
        Ok(())
    }

    pub(super) async fn marks_stay_where_they_were_put(store: Arc<dyn Maintenance>) -> Checked {
        let marks = async || Checked::Ok((store.mark(Mark::Followed).await?, store.mark(Mark::Considered).await?));
        let at = |seq| Position::at(Lane::IDENTITY, Seq(seq));
        ensure_eq!(marks().await?, (at(0), at(0)), "the marks of an empty store");
        store.set_mark(Mark::Followed, &at(5)).await?;
        ensure_eq!(marks().await?, (at(5), at(0)), "the marks after one was moved");
        store.set_mark(Mark::Considered, &at(3)).await?;
        seen(store.as_ref(), 1, None, &[Some(1)]).await?;
        ensure_eq!(marks().await?, (at(5), at(3)), "the marks after a photo");
        ensure_eq!(store.heads().await?.events(), 1, "the events beside marks");
        let heads = store.heads().await?;
        store.set_mark(Mark::Considered, &heads).await?;
        ensure_eq!(marks().await?, (at(5), heads), "a mark at the end of the log");
        ensure_eq!(store.identity(Seq(0)).await?.seq, Seq(0), "the last identity event beside marks");
        Ok(())
    }
}
