//! What faces look like is forgotten when it is to be, and persons are known by other faces from then on.

use std::sync::Arc;

use sparks_domain::{FaceId, PersonId, Position, Seq};
use sparks_engine::{Commit, CommitError, DecidedFace, Erasure, PhotoGuard, Store, StoredFace};

use super::faces::{commit, learnt, sorted};
use crate::{
    contract::{Checked, ensure, ensure_eq},
    samples::{decided_face, face, following, forgotten, image, nothing, person, processed},
};

const PHOTOS: [(u64, [Option<u32>; 3]); 3] =
    [(1, [Some(1), Some(2), None]), (2, [Some(2), Some(1), Some(1)]), (3, [Some(3), None, Some(12)])];

/// Three photos; the first face of each is one that its person is known by.
async fn fill(store: &dyn Store) -> Checked<Vec<DecidedFace>> {
    let mut all = Vec::new();
    for (n, persons) in PHOTOS {
        let faces: Vec<StoredFace> = (0..)
            .zip(persons)
            .map(|(f, person)| decided_face(face(&image(n), f), n as u8 * 8 + f as u8, person, f == 0))
            .collect();
        let seq = commit(store, n, None, &faces).await?;
        all.extend(faces.into_iter().map(|kept| DecidedFace { seq, kept }));
    }
    Ok(all)
}

/// Whoever asks in whatever way finds these faces, and no others.
async fn is_kept(store: &dyn Store, all: &[DecidedFace], expected: &[DecidedFace]) -> Checked {
    let asked: Vec<FaceId> = all.iter().map(|decided| decided.kept.face.clone()).collect();
    let mut found = store.signatures(&asked).await?;
    found.sort_by(|a, b| a.face.cmp(&b.face));
    let mut kept: Vec<_> = expected.iter().map(|decided| decided.kept.clone()).collect();
    kept.sort_by(|a, b| a.face.cmp(&b.face));
    ensure_eq!(found, kept, "the signatures");
    let templates = kept.into_iter().filter(|kept| kept.template).collect();
    let found = learnt(store, &Position::default(), 100).await?.faces;
    ensure_eq!(sorted(found), sorted(templates), "what persons are known by");
    let persons: Vec<PersonId> = [1, 2, 3, 12].map(person).to_vec();
    let mut found = store.faces_of(&persons).await?;
    found.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
    let mut theirs: Vec<_> = expected.iter().filter(|decided| decided.kept.person.is_some()).cloned().collect();
    theirs.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
    ensure_eq!(found, theirs, "the faces of everybody");
    Ok(())
}

pub(super) async fn an_erased_photo_leaves_no_signature(store: Arc<dyn Store>) -> Checked {
    let all = fill(store.as_ref()).await?;
    let mut expected = all.clone();
    // A photo that never was is erased like any other.
    for n in [2, 1, 9] {
        let erased = Erasure { photos: vec![image(n)], ..Erasure::default() };
        for _ in 0..2 {
            store.commit(&Commit { erased: erased.clone(), ..nothing() }).await?;
            expected.retain(|decided| decided.kept.face.image != image(n));
            is_kept(store.as_ref(), &all, &expected).await?;
        }
    }
    ensure_eq!(expected.len(), 3, "the faces of the third photo");
    Ok(())
}

/// A photo that is decided anew has other faces, and what its earlier ones looked like goes in the same step.
pub(super) async fn faces_of_a_photo_are_replaced_in_one_commit(store: Arc<dyn Store>) -> Checked {
    let mut all = fill(store.as_ref()).await?;
    let before = store.photo(&image(2)).await?;
    let event = following(processed(&image(2), "v1", &[3]), before.as_ref());
    let new = decided_face(face(&image(2), 3), 77, Some(3), true);
    let gone: Vec<FaceId> = [0, 2].map(|n| face(&image(2), n)).to_vec();
    let commit = Commit {
        photo: Some(PhotoGuard { image: image(2), before }),
        events: vec![event],
        signatures: vec![new.clone()],
        erased: Erasure { faces: gone.clone(), ..Erasure::default() },
        ..nothing()
    };
    let seq = store.commit(&commit).await?.last().ok_or("a commit of an event returns none")?.seq;
    all.push(DecidedFace { seq, kept: new });
    let expected: Vec<_> = all.iter().filter(|decided| !gone.contains(&decided.kept.face)).cloned().collect();
    ensure_eq!(expected.len(), 8, "the faces that are left");
    is_kept(store.as_ref(), &all, &expected).await
}

pub(super) async fn an_erased_face_leaves_no_signature(store: Arc<dyn Store>) -> Checked {
    let all = fill(store.as_ref()).await?;
    let mut expected = all.clone();
    for gone in [&[0, 5][..], &[8], &[8]] {
        let mut faces: Vec<FaceId> = gone.iter().map(|n| all[*n].kept.face.clone()).collect();
        faces.push(face(&image(9), 0)); // one that never was
        store.commit(&Commit { erased: Erasure { faces: faces.clone(), ..Erasure::default() }, ..nothing() }).await?;
        expected.retain(|decided| !faces.contains(&decided.kept.face));
        is_kept(store.as_ref(), &all, &expected).await?;
    }
    ensure_eq!(expected.len(), 6, "the faces that are left");
    Ok(())
}

pub(super) async fn a_refused_commit_erases_nothing(store: Arc<dyn Store>) -> Checked {
    let all = fill(store.as_ref()).await?;
    let erased = Erasure { photos: vec![image(1)], faces: vec![all[8].kept.face.clone()] };
    let photo = Some(PhotoGuard { image: image(1), before: None });
    let refused = store.commit(&Commit { photo, erased, ..nothing() }).await;
    ensure!(matches!(refused, Err(CommitError::PhotoMoved)), "a moved photo gives {refused:?}");
    is_kept(store.as_ref(), &all, &all).await
}

pub(super) async fn a_promoted_face_is_learnt_by_whoever_had_read_on(store: Arc<dyn Store>) -> Checked {
    let all = fill(store.as_ref()).await?;
    let before = learnt(store.as_ref(), &Position::default(), 100).await?.read;
    ensure!(learnt(store.as_ref(), &before, 100).await?.faces.is_empty(), "there are templates after the last");

    let promoted = [&all[1], &all[8]].map(|decided| decided.kept.face.clone());
    let commit = Commit { events: vec![forgotten(&[99], Seq(1))], promoted: promoted.to_vec(), ..nothing() };
    store.commit(&commit).await?;
    let news = learnt(store.as_ref(), &before, 100).await?;
    let expected = [&all[1], &all[8]].map(|decided| StoredFace { template: true, ..decided.kept.clone() });
    ensure_eq!(sorted(news.faces), sorted(expected.to_vec()), "what is new to whoever had read all before");
    ensure!(learnt(store.as_ref(), &news.read, 100).await?.faces.is_empty(), "there are templates after the promoted");
    let faces = sorted(learnt(store.as_ref(), &Position::default(), 100).await?.faces);
    let known_by = |decided: &&DecidedFace| decided.kept.template || promoted.contains(&decided.kept.face);
    let mut names: Vec<_> = all.iter().filter(known_by).map(|decided| &decided.kept.face).collect();
    names.sort_unstable();
    ensure_eq!(faces.iter().map(|kept| &kept.face).collect::<Vec<_>>(), names, "all that anybody is known by");
    let mut found = store.faces_of(&[person(12)]).await?;
    found.retain(|decided| decided.kept.template);
    ensure_eq!(found.len(), 1, "the faces that person12 is known by");
    Ok(())
}

pub(super) async fn a_refused_commit_promotes_nobody(store: Arc<dyn Store>) -> Checked {
    let all = fill(store.as_ref()).await?;
    let photo = Some(PhotoGuard { image: image(1), before: None });
    let promoted = vec![all[1].kept.face.clone()];
    let events = vec![forgotten(&[99], Seq(1))];
    let refused = store.commit(&Commit { photo, events, promoted, ..nothing() }).await;
    ensure!(matches!(refused, Err(CommitError::PhotoMoved)), "a moved photo gives {refused:?}");
    is_kept(store.as_ref(), &all, &all).await
}
