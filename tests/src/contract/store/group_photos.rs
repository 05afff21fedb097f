//! Photos with very many faces: a store may have limits, and a photo may not.

use std::sync::Arc;

use sparks_domain::{Event, FaceId, Position, Seq, Signature};
use sparks_engine::{Commit, DecidedFace, Erasure, PhotoGuard, Store, StoredFace, TemplateScope};

use super::{
    log_level::raise,
    stored_faces::{commit, sorted},
};
use crate::{
    contract::{CheckResult, ensure, ensure_eq},
    samples::{decided_face, empty_commit, face, following, forgotten, image, person, processed},
};

const PERSONS: u32 = 40;

/// Returns this many faces, from this number on; every fifth is unidentified, every tenth a template. Signatures have 512
/// dimensions, as those of common models.
fn faces(from: u16, count: u16) -> Vec<StoredFace> {
    let face = |n: u16| {
        let person = (!n.is_multiple_of(5)).then(|| u32::from(n) % PERSONS + 1);
        let bytes: Vec<u8> = (0..512_u16).map(|i| (i.wrapping_mul(7).wrapping_add(n) % 250 + 1) as u8).collect();
        let signature = Signature::from_bytes(&bytes).expect("non-zero vector");
        StoredFace { signature, model: "model-512".into(), ..decided_face(face(&image(1), n), 1, person, n % 10 == 1) }
    };
    (from..from + count).map(face).collect()
}

fn ids(faces: &[StoredFace]) -> Vec<FaceId> {
    faces.iter().map(|face| face.face.clone()).collect()
}

/// Fails unless every read returns exactly these faces of the photo.
async fn ensure_stored(store: &dyn Store, all: &[FaceId], expected: &[StoredFace], when: &str) -> CheckResult {
    let found = sorted(store.signatures(all).await?);
    ensure!(found == expected, "{} faces are stored {when}, expected {}", found.len(), expected.len());
    let templates: Vec<_> = expected.iter().filter(|face| face.template).cloned().collect();
    let found = store.templates(&Position::default(), TemplateScope::Everything, 1000).await?.faces;
    let found = sorted(found);
    ensure!(found == templates, "{} templates {when}, expected {}", found.len(), templates.len());
    for number in 1..=PERSONS {
        let found = store.faces_of(&[person(number)]).await?;
        let mut found: Vec<StoredFace> = found.into_iter().map(|DecidedFace { kept, .. }| kept).collect();
        found.sort_by(|a, b| a.face.cmp(&b.face));
        let theirs: Vec<_> = expected.iter().filter(|face| face.person == Some(person(number))).cloned().collect();
        ensure!(found == theirs, "{} faces of person{number} {when}, expected {}", found.len(), theirs.len());
    }
    Ok(())
}

/// Commits a photo with this many faces, then identifies, promotes and erases hundreds of them at once.
async fn change_faces_of_a_photo(store: &dyn Store, count: u16) -> CheckResult {
    raise(store).await?;
    let mut expected = faces(0, count);
    let all = ids(&faces(0, count + 50));
    let seq = commit(store, 1, None, &expected).await?;
    ensure_stored(store, &all, &expected, "after the commit").await?;
    let recorded = store.event(&image(1), seq).await?.ok_or("the event is missing")?;
    let Event::PhotoProcessed(event) = &recorded.event else { return Err("another event".into()) };
    ensure_eq!(event.faces.len(), expected.iter().filter(|face| face.person.is_some()).count(), "faces in the event");
    ensure!(store.read_log(&Position::default(), 10).await?.contains(&recorded), "the log lacks the event");

    // The faces of the next version of the photo have higher numbers.
    let before = store.photo(&image(1)).await?;
    let more = faces(count, 50);
    let event = following(processed(&image(1), "v2", &[1]), before.as_ref());
    let photo = Some(PhotoGuard { image: image(1), before });
    store.commit(&Commit { photo, events: vec![event], signatures: more.clone(), ..empty_commit() }).await?;
    expected.extend(more);
    ensure_stored(store, &all, &expected, "after the second version").await?;

    let unidentified = expected.iter_mut().filter(|face| face.person.is_none());
    let mut identified = Vec::new();
    for face in unidentified {
        face.person = Some(person(7));
        identified.push((face.face.clone(), person(7)));
    }
    store.commit(&Commit { identified, ..empty_commit() }).await?;
    ensure_stored(store, &all, &expected, "after faces were identified").await?;

    let mut promoted = Vec::new();
    for face in expected.iter_mut().filter(|face| !face.template && face.face.n.is_multiple_of(2)) {
        face.template = true;
        promoted.push(face.face.clone());
    }
    store.commit(&Commit { events: vec![forgotten(&[99], Seq(1))], promoted, ..empty_commit() }).await?;
    ensure_stored(store, &all, &expected, "after faces were promoted").await?;

    let erased: Vec<FaceId> = ids(&expected).into_iter().filter(|face| face.n % 3 != 0).collect();
    expected.retain(|face| !erased.contains(&face.face));
    let erased = Erasure { faces: erased, ..Erasure::default() };
    store.commit(&Commit { erased, ..empty_commit() }).await?;
    ensure_stored(store, &all, &expected, "after faces were erased").await?;

    let erased = Erasure { photos: vec![image(1)], ..Erasure::default() };
    store.commit(&Commit { erased, ..empty_commit() }).await?;
    ensure_stored(store, &all, &[], "after the photo was erased").await
}

pub(super) async fn a_photo_may_have_four_hundred_faces(store: Arc<dyn Store>) -> CheckResult {
    change_faces_of_a_photo(store.as_ref(), 400).await
}

pub(super) async fn a_photo_may_have_a_thousand_faces(store: Arc<dyn Store>) -> CheckResult {
    change_faces_of_a_photo(store.as_ref(), 1000).await
}

/// The event of such a photo may be larger than a row of a store.
pub(super) async fn an_event_may_have_a_megabyte(store: Arc<dyn Store>) -> CheckResult {
    raise(store.as_ref()).await?;
    let persons: Vec<u32> = (1..=5000).collect();
    let photo = Some(PhotoGuard { image: image(1), before: None });
    let commit = Commit { photo, events: vec![processed(&image(1), "v1", &persons)], ..empty_commit() };
    let recorded = store.commit(&commit).await?.pop().ok_or("a commit with an event returned none")?;
    ensure!(recorded.event.to_data().len() > 1 << 20, "the event has {} bytes", recorded.event.to_data().len());
    let next = store.commit(&Commit { events: vec![processed(&image(2), "v1", &[1])], ..empty_commit() }).await?;
    ensure!(store.event(&image(1), recorded.seq).await?.as_ref() == Some(&recorded), "the event was changed");
    let log = store.read_log(&Position::default(), 10).await?;
    ensure!(log.contains(&recorded) && log.contains(&next[0]) && log.len() == 3, "{} events in the log", log.len());
    Ok(())
}

/// Faces of as many photos as the port promises are erased at once, together with the event that forgets their person.
pub(super) async fn faces_of_the_most_photos_are_erased_at_once(store: Arc<dyn Store>) -> CheckResult {
    let photos = Erasure::MAX_PHOTOS as u64;
    let mut erased = Vec::new();
    for n in 1..=photos {
        let faces = [decided_face(face(&image(n), 0), n as u8, Some(1), true)];
        commit(store.as_ref(), n, None, &faces).await?;
        erased.extend(ids(&faces));
    }
    let tail = store.identity(Seq(0)).await?;
    let identity = Some(sparks_domain::IdentityHead { seq: tail.seq, counter: tail.counter, ..Default::default() });
    let events = vec![forgotten(&[1], tail.seq)];
    let erased_faces = Erasure { faces: erased.clone(), ..Erasure::default() };
    store.commit(&Commit { identity, events, erased: erased_faces, ..empty_commit() }).await?;
    ensure!(store.signatures(&erased).await?.is_empty(), "signatures are left");
    ensure!(store.faces_of(&[person(1)]).await?.is_empty(), "faces of the person are left");

    // Whole photos as well.
    let mut images = Vec::new();
    for n in 1001..=1000 + photos {
        commit(store.as_ref(), n, None, &[decided_face(face(&image(n), 0), n as u8, Some(2), true)]).await?;
        images.push(image(n));
    }
    let erased = Erasure { photos: images, ..Erasure::default() };
    store.commit(&Commit { events: vec![forgotten(&[2], Seq(7))], erased, ..empty_commit() }).await?;
    ensure!(store.faces_of(&[person(2)]).await?.is_empty(), "faces of the erased photos are left");
    Ok(())
}
