//! The Pinecone adapter on a local Pinecone server.

mod failures;
mod official_client;
mod server_validation;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sparks_domain::{Candidate, FaceBox, FaceId, PersonId, Signature};
use sparks_engine::{Enrollment, FaceCollection, FindingStatus, Pixels, Probe, RemovedFaces, Secret};
use sparks_pinecone::{Operation, Pinecone, PineconeConfig};
use sparks_tests::{
    pinecone_server::PineconeServer,
    samples::{face, image, person},
};

/// The length of signatures.
const DIMENSIONS: usize = 16;
const MODEL: &str = "synthetic-1";
const OTHER_MODEL: &str = "dlib+mobilefacenet-1";

fn config(server: &PineconeServer, key: &str, namespace: &str) -> PineconeConfig {
    PineconeConfig { host: server.endpoint(), key: Secret::new(key), namespace: namespace.to_owned() }
}

async fn empty_index() -> (PineconeServer, Pinecone) {
    let server = PineconeServer::start(DIMENSIONS).await;
    let index = Pinecone::new(&config(&server, PineconeServer::KEY, "sparks")).unwrap();
    (server, index)
}

/// Returns a signature in the plane of the first two dimensions, at this angle from the first.
fn signature(angle: f32) -> Signature {
    let mut vector = [0.0; DIMENSIONS];
    (vector[0], vector[1]) = (angle.cos(), angle.sin());
    Signature::quantise(&vector).unwrap()
}

fn probe(model: &str, signature: Option<Signature>) -> Probe {
    let pixels = Arc::new(Pixels { width: 1, height: 1, rgb: vec![0; 3] });
    let bounds = FaceBox { x: 0.0, y: 0.0, width: 1.0, height: 1.0 };
    Probe { pixels, bounds, others: Vec::new(), model: model.to_owned(), signature }
}

/// Returns the enrollment of a face of this person in this photo.
fn enrollment(number: u32, photo: u64, model: &str, angle: f32) -> Enrollment {
    let face = face(&image(photo), 0);
    Enrollment { person: person(number), face, is_first: false, probe: probe(model, Some(signature(angle))) }
}

fn face_of(enrollment: &Enrollment) -> (PersonId, FaceId) {
    (enrollment.person, enrollment.face.clone())
}

async fn nearest(index: &Pinecone, model: &str, angle: f32, most: usize) -> Vec<(u32, f32)> {
    let found = index.nearest(&probe(model, Some(signature(angle))), most).await.unwrap();
    found.iter().map(|Candidate { person, similarity }| (person.number(), *similarity)).collect()
}

fn numbers(found: &[(u32, f32)]) -> Vec<u32> {
    found.iter().map(|(number, _)| *number).collect()
}

fn calls(index: &Pinecone, operation: Operation) -> u64 {
    index.calls().into_iter().find(|(counted, _)| *counted == operation).unwrap().1
}

#[tokio::test]
async fn candidates_are_sorted_and_each_person_occurs_once() {
    let (_server, index) = empty_index().await;
    assert_eq!(nearest(&index, MODEL, 0.0, 5).await, [], "the index is empty");
    let angles = [(4, 0.5), (1, 1.5), (2, 0.2), (3, 0.9), (1, 0.1), (5, 0.5), (2, 1.2)];
    let enrollments: Vec<Enrollment> =
        (0..).zip(angles).map(|(n, (number, angle))| enrollment(number, n, MODEL, angle)).collect();
    index.enroll(&enrollments, false).await.unwrap();
    let found = nearest(&index, MODEL, 0.0, 9).await;
    assert_eq!(numbers(&found), [1, 2, 4, 5, 3], "the lower number first at equal similarity");
    for ((_, similarity), angle) in found.iter().zip([0.1, 0.2, 0.5, 0.5, 0.9]) {
        let exact = signature(0.0).similarity(&signature(angle));
        assert!((similarity - exact).abs() < 1e-4, "{similarity} is not {exact}");
        assert_eq!(Candidate::rounded(person(1), *similarity).similarity, *similarity, "rounded as in a gallery");
    }
    assert_eq!(numbers(&nearest(&index, MODEL, 0.0, 2).await), [1, 2]);
    assert_eq!(calls(&index, Operation::Query), 3);
}

#[tokio::test]
async fn probes_without_a_signature_need_no_call() {
    let (server, index) = empty_index().await;
    let enrollment = Enrollment { probe: probe(MODEL, None), ..enrollment(1, 1, MODEL, 0.0) };
    index.enroll(std::slice::from_ref(&enrollment), false).await.unwrap();
    assert!(index.nearest(&enrollment.probe, 5).await.unwrap().is_empty());
    assert!(index.nearest(&probe(MODEL, Some(signature(0.0))), 0).await.unwrap().is_empty());
    assert!(index.compare(&enrollment.probe, &[(person(1), enrollment.probe.clone())]).await.unwrap().is_empty());
    index.enroll(&[], true).await.unwrap();
    index.remove_faces(&RemovedFaces::all(&image(1)), &[]).await.unwrap();
    index.remove_persons(&[]).await.unwrap();
    assert!(server.take_calls().is_empty());
}

#[tokio::test]
async fn enrollments_are_upserted_in_batches_and_repeating_is_harmless() {
    let (server, index) = empty_index().await;
    let enrollments: Vec<Enrollment> =
        (0..250).map(|n| enrollment(n as u32 % 7 + 1, n, MODEL, 0.01 * n as f32)).collect();
    for again in [false, true] {
        index.enroll(&enrollments, again).await.unwrap();
        assert_eq!(server.ids("sparks:synthetic-1").len(), 250);
    }
    assert_eq!((calls(&index, Operation::Upsert), calls(&index, Operation::Fetch)), (3, 5), "a repeat only reads");
    index.enroll(&[enrollments[0].clone(), enrollments[0].clone()], true).await.unwrap();
    assert_eq!(server.ids("sparks:synthetic-1").len(), 250);
    let faces: Vec<_> = enrollments.iter().map(face_of).collect();
    let kept = index.fetch(MODEL, &faces).await.unwrap();
    assert_eq!(kept.len(), 250);
    for kept in kept {
        let enrollment =
            enrollments.iter().find(|enrollment| face_of(enrollment) == (kept.person, kept.face.clone())).unwrap();
        assert!(kept.signature.similarity(enrollment.probe.signature.as_ref().unwrap()) > 0.9999);
    }
}

#[tokio::test]
async fn embeddings_of_different_models_are_never_compared() {
    let (server, index) = empty_index().await;
    index.enroll(&[enrollment(1, 1, MODEL, 0.0), enrollment(2, 1, OTHER_MODEL, 0.0)], false).await.unwrap();
    assert_eq!(numbers(&nearest(&index, MODEL, 0.0, 9).await), [1]);
    assert_eq!(numbers(&nearest(&index, OTHER_MODEL, 0.0, 9).await), [2]);
    assert_eq!(nearest(&index, "another", 0.0, 9).await, []);
    assert_eq!(server.namespaces(), ["sparks:dlib~2Bmobilefacenet-1", "sparks:synthetic-1"]);
}

#[tokio::test]
async fn removing_a_photo_removes_its_faces_of_all_models() {
    let (_server, index) = empty_index().await;
    let enrollments = [enrollment(1, 1, MODEL, 0.0), enrollment(1, 1, OTHER_MODEL, 0.0), enrollment(1, 2, MODEL, 0.5)];
    index.enroll(&enrollments, false).await.unwrap();
    index.remove_faces(&RemovedFaces::all(&image(1)), &[person(1)]).await.unwrap();
    assert_eq!(nearest(&index, OTHER_MODEL, 0.0, 9).await, []);
    let left = nearest(&index, MODEL, 0.5, 9).await;
    assert_eq!(left, [(1, 1.0)], "matched by another photo");
    index.remove_faces(&RemovedFaces::all(&image(1)), &[person(1)]).await.unwrap();
}

#[tokio::test]
async fn removing_faces_of_an_earlier_version_keeps_those_of_the_current_one() {
    let (server, index) = empty_index().await;
    let image = image(1);
    let enrollments: Vec<Enrollment> = (0..12)
        .map(|n| Enrollment {
            face: FaceId { image: image.clone(), n },
            ..enrollment(1, 1, MODEL, 0.01 * f32::from(n))
        })
        .collect();
    index.enroll(&enrollments, false).await.unwrap();
    // By number, not by text: 10 and 11 are after 2.
    let removed = RemovedFaces { kept: [1].into(), ..RemovedFaces::before(&image, 3) };
    index.remove_faces(&removed, &[person(1)]).await.unwrap();
    let mut left: Vec<u16> =
        server.ids("sparks:synthetic-1").iter().map(|id| id.rsplit_once('#').unwrap().1.parse().unwrap()).collect();
    left.sort_unstable();
    assert_eq!(left, [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
}

#[tokio::test]
async fn removing_a_person_reads_all_pages() {
    let (server, index) = empty_index().await;
    let mut enrollments: Vec<Enrollment> = (0..230).map(|n| enrollment(1, n, MODEL, 0.01)).collect();
    enrollments.extend([
        enrollment(12, 300, MODEL, 0.02),
        enrollment(1, 301, OTHER_MODEL, 0.0),
        enrollment(2, 302, MODEL, 0.03),
    ]);
    index.enroll(&enrollments, false).await.unwrap();
    // Another process, which has enrolled no faces, removes them.
    let other = Pinecone::new(&config(&server, PineconeServer::KEY, "sparks")).unwrap();
    other.remove_persons(&[person(1), person(2)]).await.unwrap();
    assert_eq!(numbers(&nearest(&index, MODEL, 0.0, 9).await), [12]);
    assert_eq!(server.namespaces(), ["sparks:synthetic-1"]);
    let counted: Vec<u64> = other.calls().iter().map(|(_, count)| *count).collect();
    let [pages, others] = [3 + 1, 1 + 1];
    assert_eq!(counted, [0, 0, 2, pages + others, 0, 1], "query, upsert, delete, list, fetch, stats");
    other.remove_persons(&[person(99)]).await.unwrap();
}

#[tokio::test]
async fn faces_that_are_not_searchable_yet_are_removed_too() {
    let (server, index) = empty_index().await;
    server.set_lag(Duration::from_secs(60));
    index.enroll(&[enrollment(1, 1, MODEL, 0.0), enrollment(2, 2, MODEL, 0.0)], false).await.unwrap();
    assert_eq!(nearest(&index, MODEL, 0.0, 9).await, [], "not searchable yet");
    assert!(index.fetch(MODEL, &[face_of(&enrollment(1, 1, MODEL, 0.0))]).await.unwrap().is_empty());
    assert!(index.describe().await.unwrap().own_vectors.is_empty());
    index.remove_persons(&[person(1)]).await.unwrap();
    server.flush();
    assert_eq!(numbers(&nearest(&index, MODEL, 0.0, 9).await), [2]);
}

#[tokio::test]
async fn enrolled_faces_become_searchable_after_the_lag() {
    let (server, index) = empty_index().await;
    let (lag, started) = (Duration::from_millis(500), Instant::now());
    server.set_lag(lag);
    index.enroll(&[enrollment(1, 1, MODEL, 0.0)], false).await.unwrap();
    while nearest(&index, MODEL, 0.0, 9).await != [(1, 1.0)] {
        assert!(started.elapsed() < Duration::from_secs(30), "never searchable");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(started.elapsed() >= lag, "{:?}", started.elapsed());
}

#[tokio::test]
async fn namespaces_in_one_index_are_independent() {
    let (server, index) = empty_index().await;
    index.enroll(&[enrollment(1, 1, MODEL, 0.0)], false).await.unwrap();
    for namespace in ["sparks-test", "sparks:test", ""] {
        let other = Pinecone::new(&config(&server, PineconeServer::KEY, namespace)).unwrap();
        assert_eq!(nearest(&other, MODEL, 0.0, 9).await, []);
        other.enroll(&[enrollment(1, 1, MODEL, 0.0)], false).await.unwrap();
    }
    index.remove_persons(&[person(1)]).await.unwrap();
    assert_eq!(server.namespaces(), [":synthetic-1", "sparks-test:synthetic-1", "sparks:test:synthetic-1"]);
}

#[tokio::test]
async fn an_index_with_wrong_dimension_or_metric_is_reported() {
    let (_server, index) = empty_index().await;
    index.enroll(&[enrollment(1, 1, MODEL, 0.0), enrollment(2, 1, OTHER_MODEL, 0.0)], false).await.unwrap();
    let description = index.describe().await.unwrap();
    assert_eq!((description.dimension, description.metric.as_deref()), (Some(DIMENSIONS), Some("cosine")));
    assert_eq!(description.own_vectors.values().sum::<u64>(), 2);
    assert!(description.findings(DIMENSIONS).iter().all(|finding| finding.status == FindingStatus::Ok));
    let server = PineconeServer::start_with_metric(3, "euclidean").await;
    let index = Pinecone::new(&config(&server, PineconeServer::KEY, "")).unwrap();
    let findings = index.describe().await.unwrap().findings(DIMENSIONS);
    assert!(findings[..2].iter().all(|f| f.status == FindingStatus::Fail && f.remedy.is_some()), "{findings:?}");
}
