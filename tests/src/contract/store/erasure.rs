//! Erasing signatures and promoting other faces to templates.

use std::sync::Arc;

use sparks_domain::{FaceId, PersonId, Position, Seq};
use sparks_engine::{Commit, CommitError, DecidedFace, Erasure, PhotoGuard, Store, StoredFace};

use super::stored_faces::{commit, read_templates, sorted};
use crate::{
    contract::{CheckResult, ensure, ensure_eq},
    samples::{decided_face, empty_commit, face, following, forgotten, image, person, processed},
};

const PHOTOS: [(u64, [Option<u32>; 3]); 3] =
    [(1, [Some(1), Some(2), None]), (2, [Some(2), Some(1), Some(1)]), (3, [Some(3), None, Some(12)])];

/// Commits three photos; the first face of each is a template.
async fn fill(store: &dyn Store) -> CheckResult<Vec<DecidedFace>> {
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

/// Fails unless every read returns exactly the expected faces.
async fn ensure_stored(store: &dyn Store, all: &[DecidedFace], expected: &[DecidedFace]) -> CheckResult {
    let asked: Vec<FaceId> = all.iter().map(|decided| decided.kept.face.clone()).collect();
    let mut found = store.signatures(&asked).await?;
    found.sort_by(|a, b| a.face.cmp(&b.face));
    let mut kept: Vec<_> = expected.iter().map(|decided| decided.kept.clone()).collect();
    kept.sort_by(|a, b| a.face.cmp(&b.face));
    ensure_eq!(found, kept, "the signatures");
    let templates = kept.into_iter().filter(|kept| kept.template).collect();
    let found = read_templates(store, &Position::default(), 100).await?.faces;
    ensure_eq!(sorted(found), sorted(templates), "the templates");
    let persons: Vec<PersonId> = [1, 2, 3, 12].map(person).to_vec();
    let mut found = store.faces_of(&persons).await?;
    found.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
    let mut theirs: Vec<_> = expected.iter().filter(|decided| decided.kept.person.is_some()).cloned().collect();
    theirs.sort_by(|a, b| a.kept.face.cmp(&b.kept.face));
    ensure_eq!(found, theirs, "the faces of all persons");
    Ok(())
}

pub(super) async fn an_erased_photo_leaves_no_signature(store: Arc<dyn Store>) -> CheckResult {
    let all = fill(store.as_ref()).await?;
    let mut expected = all.clone();
    // Erasing an unknown photo succeeds.
    for n in [2, 1, 9] {
        let erased = Erasure { photos: vec![image(n)], ..Erasure::default() };
        for _ in 0..2 {
            store.commit(&Commit { erased: erased.clone(), ..empty_commit() }).await?;
            expected.retain(|decided| decided.kept.face.image != image(n));
            ensure_stored(store.as_ref(), &all, &expected).await?;
        }
    }
    ensure_eq!(expected.len(), 3, "number of faces of the third photo");
    Ok(())
}

/// Reprocessing a photo replaces its faces and erases the signatures of the earlier ones in the same commit.
pub(super) async fn faces_of_a_photo_are_replaced_in_one_commit(store: Arc<dyn Store>) -> CheckResult {
    let mut all = fill(store.as_ref()).await?;
    let before = store.photo(&image(2)).await?;
    let event = following(processed(&image(2), "v1", &[3]), before.as_ref());
    let new = decided_face(face(&image(2), 3), 77, Some(3), true);
    let erased: Vec<FaceId> = [0, 2].map(|n| face(&image(2), n)).to_vec();
    let commit = Commit {
        photo: Some(PhotoGuard { image: image(2), before }),
        events: vec![event],
        signatures: vec![new.clone()],
        erased: Erasure { faces: erased.clone(), ..Erasure::default() },
        ..empty_commit()
    };
    let seq = store.commit(&commit).await?.last().ok_or("a commit with an event returned no recorded event")?.seq;
    all.push(DecidedFace { seq, kept: new });
    let expected: Vec<_> = all.iter().filter(|decided| !erased.contains(&decided.kept.face)).cloned().collect();
    ensure_eq!(expected.len(), 8, "number of remaining faces");
    ensure_stored(store.as_ref(), &all, &expected).await
}

pub(super) async fn an_erased_face_leaves_no_signature(store: Arc<dyn Store>) -> CheckResult {
    let all = fill(store.as_ref()).await?;
    let mut expected = all.clone();
    for erased in [&[0, 5][..], &[8], &[8]] {
        let mut faces: Vec<FaceId> = erased.iter().map(|n| all[*n].kept.face.clone()).collect();
        faces.push(face(&image(9), 0)); // an unknown face
        store
            .commit(&Commit { erased: Erasure { faces: faces.clone(), ..Erasure::default() }, ..empty_commit() })
            .await?;
        expected.retain(|decided| !faces.contains(&decided.kept.face));
        ensure_stored(store.as_ref(), &all, &expected).await?;
    }
    ensure_eq!(expected.len(), 6, "number of remaining faces");
    Ok(())
}

pub(super) async fn a_failed_commit_erases_nothing(store: Arc<dyn Store>) -> CheckResult {
    let all = fill(store.as_ref()).await?;
    let erased = Erasure { photos: vec![image(1)], faces: vec![all[8].kept.face.clone()] };
    let photo = Some(PhotoGuard { image: image(1), before: None });
    let refused = store.commit(&Commit { photo, erased, ..empty_commit() }).await;
    ensure!(matches!(refused, Err(CommitError::PhotoMoved)), "a commit on a stale photo state returns {refused:?}");
    ensure_stored(store.as_ref(), &all, &all).await
}

pub(super) async fn a_promoted_template_follows_the_read_position(store: Arc<dyn Store>) -> CheckResult {
    let all = fill(store.as_ref()).await?;
    let before = read_templates(store.as_ref(), &Position::default(), 100).await?.read;
    ensure!(
        read_templates(store.as_ref(), &before, 100).await?.faces.is_empty(),
        "templates are returned after the last one"
    );

    let promoted = [&all[1], &all[8]].map(|decided| decided.kept.face.clone());
    let commit = Commit { events: vec![forgotten(&[99], Seq(1))], promoted: promoted.to_vec(), ..empty_commit() };
    store.commit(&commit).await?;
    let later = read_templates(store.as_ref(), &before, 100).await?;
    let expected = [&all[1], &all[8]].map(|decided| StoredFace { template: true, ..decided.kept.clone() });
    ensure_eq!(sorted(later.faces), sorted(expected.to_vec()), "templates after the earlier read position");
    ensure!(
        read_templates(store.as_ref(), &later.read, 100).await?.faces.is_empty(),
        "templates are returned after the promoted ones"
    );
    let faces = sorted(read_templates(store.as_ref(), &Position::default(), 100).await?.faces);
    let is_template = |decided: &&DecidedFace| decided.kept.template || promoted.contains(&decided.kept.face);
    let mut names: Vec<_> = all.iter().filter(is_template).map(|decided| &decided.kept.face).collect();
    names.sort_unstable();
    ensure_eq!(faces.iter().map(|kept| &kept.face).collect::<Vec<_>>(), names, "all templates");
    let mut found = store.faces_of(&[person(12)]).await?;
    found.retain(|decided| decided.kept.template);
    ensure_eq!(found.len(), 1, "number of templates of person12");
    Ok(())
}

pub(super) async fn a_failed_commit_promotes_no_face(store: Arc<dyn Store>) -> CheckResult {
    let all = fill(store.as_ref()).await?;
    let photo = Some(PhotoGuard { image: image(1), before: None });
    let promoted = vec![all[1].kept.face.clone()];
    let events = vec![forgotten(&[99], Seq(1))];
    let refused = store.commit(&Commit { photo, events, promoted, ..empty_commit() }).await;
    ensure!(matches!(refused, Err(CommitError::PhotoMoved)), "a commit on a stale photo state returns {refused:?}");
    ensure_stored(store.as_ref(), &all, &all).await
}
