//! Stored faces, their persons, and templates.

use std::sync::Arc;

use sparks_domain::{PhotoState, Position, Seq};
use sparks_engine::{Commit, CommitError, DecidedFace, PhotoGuard, Store, StoredFace, TemplateScope, Templates};

use crate::{
    contract::{CheckResult, ensure, ensure_eq},
    samples::{allocated, decided_face, empty_commit, face, following, image, person, processed},
};

/// Commits the photo with this number and returns the sequence number of the event that decided its faces.
pub(super) async fn commit(
    store: &dyn Store,
    n: u64,
    before: Option<PhotoState>,
    faces: &[StoredFace],
) -> CheckResult<Seq> {
    let persons: Vec<u32> = faces.iter().filter_map(|face| Some(face.person?.number())).collect();
    let version = before.as_ref().map_or("v1", |_| "v2");
    let event = following(processed(&image(n), version, &persons), before.as_ref());
    // As for a new person, an identity event precedes the photo's event.
    let allocation = before.is_none().then(|| allocated(&image(n), n as u32, &[n as u32 + 1]));
    let events = allocation.into_iter().chain([event]).collect();
    let photo = Some(PhotoGuard { image: image(n), before });
    let recorded = store.commit(&Commit { photo, events, signatures: faces.to_vec(), ..empty_commit() }).await?;
    Ok(recorded.last().ok_or("a commit with two events returned no recorded event")?.seq)
}

pub(super) async fn templates_are_returned_once_and_by_whole_events(store: Arc<dyn Store>) -> CheckResult {
    let start = Position::default();
    ensure!(read_templates(store.as_ref(), &start, 10).await?.faces.is_empty(), "an empty store returns templates");
    let (mut expected, mut before) = (Vec::new(), start.clone());
    for round in 0..3_u64 {
        let mut added = Vec::new();
        // Later photos have smaller IDs, so that the order of events differs from the order of IDs.
        for n in (0..5).map(|n| 20 - round * 5 - n) {
            let faces: Vec<StoredFace> = (0..(n % 4) as u16)
                .map(|f| decided_face(face(&image(n), f), n as u8 * 8 + f as u8, Some(1), f != 1))
                .collect();
            commit(store.as_ref(), n, None, &faces).await?;
            added.extend(faces.into_iter().filter(|face| face.template));
        }
        expected.extend(added.clone());
        let mut reads = Vec::new();
        for page in [1, 2, 3, 100] {
            let all = read_templates(store.as_ref(), &start, page).await?;
            ensure_eq!(sorted(all.faces), sorted(expected.clone()), "the templates in pages of {page}");
            let later = read_templates(store.as_ref(), &before, page).await?;
            ensure_eq!(sorted(later.faces), sorted(added.clone()), "the templates of round {round} in pages of {page}");
            reads.extend([all.read, later.read]);
        }
        before = reads.swap_remove(round as usize);
        ensure!(
            read_templates(store.as_ref(), &before, 10).await?.faces.is_empty(),
            "templates are returned after the last one"
        );
    }
    Ok(())
}

/// Most photos add no template, and a reader follows the log at any time.
pub(super) async fn following_the_log_misses_no_template(store: Arc<dyn Store>) -> CheckResult {
    let (start, mut read_before) = (Position::default(), Vec::new());
    let (mut read, mut later) = (start.clone(), Vec::new());
    for n in 0..30_u64 {
        let stored = decided_face(face(&image(n), 0), n as u8, Some(1), n % 7 == 3);
        let (photo, events) =
            (Some(PhotoGuard { image: image(n), before: None }), vec![processed(&image(n), "v1", &[1])]);
        store.commit(&Commit { photo, events, signatures: vec![stored.clone()], ..empty_commit() }).await?;
        if stored.template {
            later.push(stored);
        }
        if n % 2 == 0 {
            let followed = read_templates(store.as_ref(), &read, 1 + n as usize % 3).await?;
            ensure_eq!(sorted(followed.faces), sorted(later.clone()), "new templates after {} photos", n + 1);
            read = followed.read;
            read_before.append(&mut later);
        }
    }
    ensure_eq!(sorted(read_templates(store.as_ref(), &start, 100).await?.faces), sorted(read_before), "all templates");
    Ok(())
}

/// Reads all templates after `after` in pages of this size.
pub(super) async fn read_templates(store: &dyn Store, after: &Position, page: usize) -> CheckResult<Templates> {
    let mut all = Templates { faces: Vec::new(), read: after.clone() };
    loop {
        let more = store.templates(&all.read, TemplateScope::Everything, page).await?;
        if more.read == all.read {
            ensure!(more.faces.is_empty(), "templates are returned at the end of the log: {:?}", more.faces);
            return Ok(all);
        }
        all.faces.extend(more.faces);
        all.read = more.read;
        ensure!(all.faces.len() < 1000, "reading templates in pages of {page} does not end");
    }
}

/// Sorts faces by ID; the order of templates is not part of the contract.
pub(super) fn sorted(mut faces: Vec<StoredFace>) -> Vec<StoredFace> {
    faces.sort_by(|a, b| a.face.cmp(&b.face));
    faces
}

/// A reader of identity events alone gets the first template of every new person.
pub(super) async fn templates_of_new_persons_come_with_identity_events(store: Arc<dyn Store>) -> CheckResult {
    let template = decided_face(face(&image(1), 0), 1, Some(2), true);
    commit(store.as_ref(), 1, None, std::slice::from_ref(&template)).await?;
    let start = store.templates(&Position::default(), TemplateScope::Persons, 100).await?;
    ensure_eq!(start.faces, vec![template], "the template of the first person");
    ensure_eq!(
        store.templates(&start.read, TemplateScope::Persons, 100).await?.read,
        start.read,
        "the read position without new events"
    );
    let next = decided_face(face(&image(2), 0), 2, Some(3), true);
    commit(store.as_ref(), 2, None, std::slice::from_ref(&next)).await?;
    let later = store.templates(&start.read, TemplateScope::Persons, 100).await?;
    ensure_eq!(later.faces, vec![next], "the template of the next person");
    Ok(())
}

pub(super) async fn a_stored_face_keeps_its_person(store: Arc<dyn Store>) -> CheckResult {
    let first: Vec<_> = (0..2).map(|f| decided_face(face(&image(1), f), f as u8, Some(7), f == 0)).collect();
    commit(store.as_ref(), 1, None, &first).await?;
    let before = store.photo(&image(1)).await?;
    let second = vec![
        decided_face(face(&image(1), 2), 2, None, false),
        decided_face(face(&image(1), 3), 3, Some(4_000_000_000), false),
    ];
    commit(store.as_ref(), 1, before, &second).await?;
    let asked: Vec<_> = (0..4).map(|f| face(&image(1), f)).collect();
    let mut found = store.signatures(&asked).await?;
    found.sort_by(|a, b| a.face.cmp(&b.face));
    ensure_eq!(found, [first, second].concat(), "the faces of both versions");
    Ok(())
}

pub(super) async fn an_identified_face_gets_its_person(store: Arc<dyn Store>) -> CheckResult {
    let faces: Vec<_> = (0..3).map(|f| decided_face(face(&image(1), f), f as u8, None, false)).collect();
    commit(store.as_ref(), 1, None, &faces).await?;
    let identified = vec![(face(&image(1), 1), person(9))];
    store.commit(&Commit { identified, ..empty_commit() }).await?;
    let asked: Vec<_> = (0..3).map(|f| face(&image(1), f)).collect();
    let mut found = store.signatures(&asked).await?;
    found.sort_by(|a, b| a.face.cmp(&b.face));
    let mut expected = faces;
    expected[1].person = Some(person(9));
    ensure_eq!(found, expected, "the faces after one of them was identified");
    let templates = read_templates(store.as_ref(), &Position::default(), 10).await?.faces;
    ensure!(templates.is_empty(), "an identified face became a template");
    Ok(())
}

pub(super) async fn a_failed_commit_identifies_no_face(store: Arc<dyn Store>) -> CheckResult {
    let unidentified = decided_face(face(&image(1), 0), 1, None, false);
    commit(store.as_ref(), 1, None, std::slice::from_ref(&unidentified)).await?;
    let photo = Some(PhotoGuard { image: image(1), before: None });
    let identified = vec![(unidentified.face.clone(), person(9))];
    let refused = store.commit(&Commit { photo, identified, ..empty_commit() }).await;
    ensure!(matches!(refused, Err(CommitError::PhotoMoved)), "a commit on a stale photo state returns {refused:?}");
    ensure_eq!(store.signatures(std::slice::from_ref(&unidentified.face)).await?, vec![unidentified], "the face");
    Ok(())
}

pub(super) async fn all_faces_of_a_person_are_found(store: Arc<dyn Store>) -> CheckResult {
    ensure!(store.faces_of(&[person(1)]).await?.is_empty(), "an empty store returns faces");
    let mut expected = Vec::new();
    for (n, persons) in
        [(1, [Some(1), Some(2), None]), (2, [Some(2), Some(1), Some(1)]), (3, [Some(3), None, Some(12)])]
    {
        let faces: Vec<StoredFace> = (0..)
            .zip(persons)
            .map(|(f, person)| decided_face(face(&image(n), f), n as u8 * 8 + f as u8, person, f == 0))
            .collect();
        let seq = commit(store.as_ref(), n, None, &faces).await?;
        expected.extend(faces.into_iter().map(|kept| DecidedFace { seq, kept }));
    }
    let identified = expected[2].kept.face.clone();
    store.commit(&Commit { identified: vec![(identified, person(3))], ..empty_commit() }).await?;
    expected[2].kept.person = Some(person(3));
    expected.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
    for asked in [&[1][..], &[2], &[3, 1], &[12, 2, 3], &[7], &[], &[1, 2, 3, 12]] {
        let asked: Vec<_> = asked.iter().map(|number| person(*number)).collect();
        let mut found = store.faces_of(&asked).await?;
        found.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
        let theirs =
            expected.iter().filter(|decided| decided.kept.person.is_some_and(|person| asked.contains(&person)));
        ensure_eq!(found, theirs.cloned().collect::<Vec<_>>(), "the faces of {asked:?}");
    }
    Ok(())
}
