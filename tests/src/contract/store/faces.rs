//! Whose the kept faces are, and by which of them persons are known.

use std::sync::Arc;

use sparks_domain::{PhotoState, Position, Seq};
use sparks_engine::{Commit, CommitError, DecidedFace, PhotoGuard, Reach, Store, StoredFace, Templates};

use crate::{
    contract::{Checked, ensure, ensure_eq},
    samples::{allocated, decided_face, face, following, image, nothing, person, processed},
};

/// Commits the photo with this number, and says which event about it decided its faces.
pub(super) async fn commit(
    store: &dyn Store,
    n: u64,
    before: Option<PhotoState>,
    faces: &[StoredFace],
) -> Checked<Seq> {
    let persons: Vec<u32> = faces.iter().filter_map(|face| Some(face.person?.number())).collect();
    let version = before.as_ref().map_or("v1", |_| "v2");
    let event = following(processed(&image(n), version, &persons), before.as_ref());
    // An event that is about no photo comes first, as it does where somebody is new.
    let somebody_new = before.is_none().then(|| allocated(&image(n), n as u32, &[n as u32 + 1]));
    let events = somebody_new.into_iter().chain([event]).collect();
    let photo = Some(PhotoGuard { image: image(n), before });
    let recorded = store.commit(&Commit { photo, events, signatures: faces.to_vec(), ..nothing() }).await?;
    Ok(recorded.last().ok_or("a commit of two events returns none")?.seq)
}

pub(super) async fn templates_come_once_and_events_whole(store: Arc<dyn Store>) -> Checked {
    let start = Position::default();
    ensure!(learnt(store.as_ref(), &start, 10).await?.faces.is_empty(), "an empty store knows somebody");
    let (mut expected, mut before) = (Vec::new(), start.clone());
    for round in 0..3_u64 {
        let mut news = Vec::new();
        // Later photos have smaller names, so that the order of events is no other order.
        for n in (0..5).map(|n| 20 - round * 5 - n) {
            let faces: Vec<StoredFace> = (0..(n % 4) as u16)
                .map(|f| decided_face(face(&image(n), f), n as u8 * 8 + f as u8, Some(1), f != 1))
                .collect();
            commit(store.as_ref(), n, None, &faces).await?;
            news.extend(faces.into_iter().filter(|face| face.template));
        }
        expected.extend(news.clone());
        let mut reads = Vec::new();
        for page in [1, 2, 3, 100] {
            let all = learnt(store.as_ref(), &start, page).await?;
            ensure_eq!(sorted(all.faces), sorted(expected.clone()), "the templates in pages of {page}");
            let later = learnt(store.as_ref(), &before, page).await?;
            ensure_eq!(sorted(later.faces), sorted(news.clone()), "the templates of round {round} in pages of {page}");
            reads.extend([all.read, later.read]);
        }
        before = reads.swap_remove(round as usize);
        ensure!(learnt(store.as_ref(), &before, 10).await?.faces.is_empty(), "there are templates after the last");
    }
    Ok(())
}

/// Most photos of known persons teach nothing, and whoever follows the log comes at any time.
pub(super) async fn what_few_photos_teach_is_not_missed(store: Arc<dyn Store>) -> Checked {
    let (start, mut taught) = (Position::default(), Vec::new());
    let (mut read, mut news) = (start.clone(), Vec::new());
    for n in 0..30_u64 {
        let seen = decided_face(face(&image(n), 0), n as u8, Some(1), n % 7 == 3);
        let (photo, events) =
            (Some(PhotoGuard { image: image(n), before: None }), vec![processed(&image(n), "v1", &[1])]);
        store.commit(&Commit { photo, events, signatures: vec![seen.clone()], ..nothing() }).await?;
        if seen.template {
            news.push(seen);
        }
        if n % 2 == 0 {
            let followed = learnt(store.as_ref(), &read, 1 + n as usize % 3).await?;
            ensure_eq!(sorted(followed.faces), sorted(news.clone()), "what is new after {} photos", n + 1);
            read = followed.read;
            taught.append(&mut news);
        }
    }
    ensure_eq!(sorted(learnt(store.as_ref(), &start, 100).await?.faces), sorted(taught), "all that was taught");
    Ok(())
}

/// All templates after `after`, read in pages of this size.
pub(super) async fn learnt(store: &dyn Store, after: &Position, page: usize) -> Checked<Templates> {
    let mut all = Templates { faces: Vec::new(), read: after.clone() };
    loop {
        let more = store.templates(&all.read, Reach::Everything, page).await?;
        if more.read == all.read {
            ensure!(more.faces.is_empty(), "there are templates beyond the end: {:?}", more.faces);
            return Ok(all);
        }
        all.faces.extend(more.faces);
        all.read = more.read;
        ensure!(all.faces.len() < 1000, "there is no end of templates in pages of {page}");
    }
}

/// By name: what was learnt first does not matter.
pub(super) fn sorted(mut faces: Vec<StoredFace>) -> Vec<StoredFace> {
    faces.sort_by(|a, b| a.face.cmp(&b.face));
    faces
}

/// Whoever follows persons alone knows what everybody founded looks like.
pub(super) async fn founders_are_learnt_with_their_persons(store: Arc<dyn Store>) -> Checked {
    let founder = decided_face(face(&image(1), 0), 1, Some(2), true);
    commit(store.as_ref(), 1, None, std::slice::from_ref(&founder)).await?;
    let start = store.templates(&Position::default(), Reach::Persons, 100).await?;
    ensure_eq!(start.faces, vec![founder], "what the first person looks like");
    ensure_eq!(
        store.templates(&start.read, Reach::Persons, 100).await?.read,
        start.read,
        "how far it gets without news"
    );
    let next = decided_face(face(&image(2), 0), 2, Some(3), true);
    commit(store.as_ref(), 2, None, std::slice::from_ref(&next)).await?;
    let news = store.templates(&start.read, Reach::Persons, 100).await?;
    ensure_eq!(news.faces, vec![next], "what the next person looks like");
    Ok(())
}

pub(super) async fn a_face_keeps_who_it_was_decided_to_be(store: Arc<dyn Store>) -> Checked {
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

pub(super) async fn an_identified_face_is_somebodys(store: Arc<dyn Store>) -> Checked {
    let faces: Vec<_> = (0..3).map(|f| decided_face(face(&image(1), f), f as u8, None, false)).collect();
    commit(store.as_ref(), 1, None, &faces).await?;
    let identified = vec![(face(&image(1), 1), person(9))];
    store.commit(&Commit { identified, ..nothing() }).await?;
    let asked: Vec<_> = (0..3).map(|f| face(&image(1), f)).collect();
    let mut found = store.signatures(&asked).await?;
    found.sort_by(|a, b| a.face.cmp(&b.face));
    let mut expected = faces;
    expected[1].person = Some(person(9));
    ensure_eq!(found, expected, "the faces after one of them was identified");
    let known_by = learnt(store.as_ref(), &Position::default(), 10).await?.faces;
    ensure!(known_by.is_empty(), "a person is known by a face that was only identified");
    Ok(())
}

pub(super) async fn a_refused_commit_identifies_nobody(store: Arc<dyn Store>) -> Checked {
    let nobody = decided_face(face(&image(1), 0), 1, None, false);
    commit(store.as_ref(), 1, None, std::slice::from_ref(&nobody)).await?;
    let photo = Some(PhotoGuard { image: image(1), before: None });
    let identified = vec![(nobody.face.clone(), person(9))];
    let refused = store.commit(&Commit { photo, identified, ..nothing() }).await;
    ensure!(matches!(refused, Err(CommitError::PhotoMoved)), "a moved photo gives {refused:?}");
    ensure_eq!(store.signatures(std::slice::from_ref(&nobody.face)).await?, vec![nobody], "the face");
    Ok(())
}

pub(super) async fn all_faces_of_a_person_are_found(store: Arc<dyn Store>) -> Checked {
    ensure!(store.faces_of(&[person(1)]).await?.is_empty(), "an empty store knows somebody");
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
    store.commit(&Commit { identified: vec![(identified, person(3))], ..nothing() }).await?;
    expected[2].kept.person = Some(person(3));
    expected.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
    for asked in [&[1][..], &[2], &[3, 1], &[12, 2, 3], &[7], &[], &[1, 2, 3, 12]] {
        let asked: Vec<_> = asked.iter().map(|number| person(*number)).collect();
        let mut found = store.faces_of(&asked).await?;
        found.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
        let theirs = expected.iter().filter(|decided| decided.kept.person.is_some_and(|who| asked.contains(&who)));
        ensure_eq!(found, theirs.cloned().collect::<Vec<_>>(), "the faces of {asked:?}");
    }
    Ok(())
}
