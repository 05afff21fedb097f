//! Known faces in a Pinecone index, each operation as the port asks for it.

mod client;
mod strictness;
mod trouble;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sparks_domain::{Candidate, FaceBox, FaceId, PersonId, Signature};
use sparks_engine::{Collection, Lesson, Pixels, Probe, Secret, State};
use sparks_pinecone::{Access, Operation, Pinecone};
use sparks_tests::{
    pinecone::PineconeServer,
    samples::{face, image, person},
};

/// How long signatures are.
const DIMENSIONS: usize = 16;
const MODEL: &str = "synthetic-1";
const OTHER_MODEL: &str = "dlib+mobilefacenet-1";

fn access(server: &PineconeServer, key: &str, namespace: &str) -> Access {
    Access { host: server.endpoint(), key: Secret::new(key), namespace: namespace.to_owned() }
}

async fn empty() -> (PineconeServer, Pinecone) {
    let server = PineconeServer::start(DIMENSIONS).await;
    let index = Pinecone::new(&access(&server, PineconeServer::KEY, "sparks")).unwrap();
    (server, index)
}

/// In the plane of the first two dimensions, so far from the first.
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

/// The person is seen in the photo with this number.
fn lesson(number: u32, photo: u64, model: &str, angle: f32) -> Lesson {
    let face = face(&image(photo), 0);
    Lesson { person: person(number), face, is_first: false, probe: probe(model, Some(signature(angle))) }
}

fn named(lesson: &Lesson) -> (PersonId, FaceId) {
    (lesson.person, lesson.face.clone())
}

async fn nearest(index: &Pinecone, model: &str, angle: f32, most: usize) -> Vec<(u32, f32)> {
    let found = index.nearest(&probe(model, Some(signature(angle))), most).await.unwrap();
    found.iter().map(|Candidate { person, similarity }| (person.number(), *similarity)).collect()
}

fn who(found: &[(u32, f32)]) -> Vec<u32> {
    found.iter().map(|(number, _)| *number).collect()
}

fn calls(index: &Pinecone, operation: Operation) -> u64 {
    index.calls().into_iter().find(|(counted, _)| *counted == operation).unwrap().1
}

#[tokio::test]
async fn the_nearest_come_first_and_nobody_twice() {
    let (_server, index) = empty().await;
    assert_eq!(nearest(&index, MODEL, 0.0, 5).await, [], "nobody is known");
    let angles = [(4, 0.5), (1, 1.5), (2, 0.2), (3, 0.9), (1, 0.1), (5, 0.5), (2, 1.2)];
    let lessons: Vec<Lesson> = (0..).zip(angles).map(|(n, (number, angle))| lesson(number, n, MODEL, angle)).collect();
    index.learn(&lessons, false).await.unwrap();
    let found = nearest(&index, MODEL, 0.0, 9).await;
    assert_eq!(who(&found), [1, 2, 4, 5, 3], "the lower number first where equally near");
    for ((_, similarity), angle) in found.iter().zip([0.1, 0.2, 0.5, 0.5, 0.9]) {
        let exact = signature(0.0).similarity(&signature(angle));
        assert!((similarity - exact).abs() < 1e-4, "{similarity} is not {exact}");
        assert_eq!(Candidate::rounded(person(1), *similarity).similarity, *similarity, "rounded as a gallery does");
    }
    assert_eq!(who(&nearest(&index, MODEL, 0.0, 2).await), [1, 2]);
    assert_eq!(calls(&index, Operation::Query), 3);
}

#[tokio::test]
async fn whoever_has_no_signature_costs_nothing() {
    let (server, index) = empty().await;
    let lesson = Lesson { probe: probe(MODEL, None), ..lesson(1, 1, MODEL, 0.0) };
    index.learn(std::slice::from_ref(&lesson), false).await.unwrap();
    assert!(index.nearest(&lesson.probe, 5).await.unwrap().is_empty());
    assert!(index.nearest(&probe(MODEL, Some(signature(0.0))), 0).await.unwrap().is_empty());
    assert!(index.compare(&lesson.probe, &[(person(1), lesson.probe.clone())]).await.unwrap().is_empty());
    index.learn(&[], true).await.unwrap();
    index.unlearn(&image(1), &[]).await.unwrap();
    index.forget(&[]).await.unwrap();
    assert!(server.take_calls().is_empty());
}

#[tokio::test]
async fn lessons_are_written_in_batches_and_again_changes_nothing() {
    let (server, index) = empty().await;
    let lessons: Vec<Lesson> = (0..250).map(|n| lesson(n as u32 % 7 + 1, n, MODEL, 0.01 * n as f32)).collect();
    for again in [false, true] {
        index.learn(&lessons, again).await.unwrap();
        assert_eq!(server.ids("sparks:synthetic-1").len(), 250);
    }
    assert_eq!(calls(&index, Operation::Upsert), 6);
    index.learn(&[lessons[0].clone(), lessons[0].clone()], true).await.unwrap();
    assert_eq!(server.ids("sparks:synthetic-1").len(), 250);
    let faces: Vec<_> = lessons.iter().map(named).collect();
    let kept = index.fetch(MODEL, &faces).await.unwrap();
    assert_eq!(kept.len(), 250);
    for kept in kept {
        let lesson = lessons.iter().find(|lesson| named(lesson) == (kept.person, kept.face.clone())).unwrap();
        assert!(kept.signature.similarity(lesson.probe.signature.as_ref().unwrap()) > 0.9999);
    }
}

#[tokio::test]
async fn models_never_meet() {
    let (server, index) = empty().await;
    index.learn(&[lesson(1, 1, MODEL, 0.0), lesson(2, 1, OTHER_MODEL, 0.0)], false).await.unwrap();
    assert_eq!(who(&nearest(&index, MODEL, 0.0, 9).await), [1]);
    assert_eq!(who(&nearest(&index, OTHER_MODEL, 0.0, 9).await), [2]);
    assert_eq!(nearest(&index, "another", 0.0, 9).await, []);
    assert_eq!(server.namespaces(), ["sparks:dlib~2Bmobilefacenet-1", "sparks:synthetic-1"]);
}

#[tokio::test]
async fn a_photo_is_unlearnt_whatever_model_saw_it() {
    let (_server, index) = empty().await;
    let lessons = [lesson(1, 1, MODEL, 0.0), lesson(1, 1, OTHER_MODEL, 0.0), lesson(1, 2, MODEL, 0.5)];
    index.learn(&lessons, false).await.unwrap();
    index.unlearn(&image(1), &[person(1)]).await.unwrap();
    assert_eq!(nearest(&index, OTHER_MODEL, 0.0, 9).await, []);
    let left = nearest(&index, MODEL, 0.5, 9).await;
    assert_eq!(left, [(1, 1.0)], "by another photo");
    index.unlearn(&image(1), &[person(1)]).await.unwrap();
}

#[tokio::test]
async fn somebody_is_forgotten_page_by_page() {
    let (server, index) = empty().await;
    let mut lessons: Vec<Lesson> = (0..230).map(|n| lesson(1, n, MODEL, 0.01)).collect();
    lessons.extend([lesson(12, 300, MODEL, 0.02), lesson(1, 301, OTHER_MODEL, 0.0), lesson(2, 302, MODEL, 0.03)]);
    index.learn(&lessons, false).await.unwrap();
    // Another process forgets: it knows neither the models nor the faces.
    let other = Pinecone::new(&access(&server, PineconeServer::KEY, "sparks")).unwrap();
    other.forget(&[person(1), person(2)]).await.unwrap();
    assert_eq!(who(&nearest(&index, MODEL, 0.0, 9).await), [12]);
    assert_eq!(server.namespaces(), ["sparks:synthetic-1"]);
    let counted: Vec<u64> = other.calls().iter().map(|(_, count)| *count).collect();
    let [pages, others] = [3 + 1, 1 + 1];
    assert_eq!(counted, [0, 0, 2, pages + others, 0, 1], "query, upsert, delete, list, fetch, stats");
    other.forget(&[person(99)]).await.unwrap();
}

#[tokio::test]
async fn what_does_not_show_yet_is_forgotten_too() {
    let (server, index) = empty().await;
    server.set_lag(Duration::from_secs(60));
    index.learn(&[lesson(1, 1, MODEL, 0.0), lesson(2, 2, MODEL, 0.0)], false).await.unwrap();
    assert_eq!(nearest(&index, MODEL, 0.0, 9).await, [], "nothing shows at once");
    assert!(index.fetch(MODEL, &[named(&lesson(1, 1, MODEL, 0.0))]).await.unwrap().is_empty());
    assert!(index.describe().await.unwrap().ours.is_empty());
    index.forget(&[person(1)]).await.unwrap();
    server.settle();
    assert_eq!(who(&nearest(&index, MODEL, 0.0, 9).await), [2]);
}

#[tokio::test]
async fn what_was_taught_shows_after_a_while() {
    let (server, index) = empty().await;
    let (lag, began) = (Duration::from_millis(500), Instant::now());
    server.set_lag(lag);
    index.learn(&[lesson(1, 1, MODEL, 0.0)], false).await.unwrap();
    while nearest(&index, MODEL, 0.0, 9).await != [(1, 1.0)] {
        assert!(began.elapsed() < Duration::from_secs(30), "it never shows");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(began.elapsed() >= lag, "{:?}", began.elapsed());
}

#[tokio::test]
async fn neighbours_in_an_index_leave_each_other_alone() {
    let (server, index) = empty().await;
    index.learn(&[lesson(1, 1, MODEL, 0.0)], false).await.unwrap();
    for namespace in ["sparks-test", "sparks:test", ""] {
        let other = Pinecone::new(&access(&server, PineconeServer::KEY, namespace)).unwrap();
        assert_eq!(nearest(&other, MODEL, 0.0, 9).await, []);
        other.learn(&[lesson(1, 1, MODEL, 0.0)], false).await.unwrap();
    }
    index.forget(&[person(1)]).await.unwrap();
    assert_eq!(server.namespaces(), [":synthetic-1", "sparks-test:synthetic-1", "sparks:test:synthetic-1"]);
}

#[tokio::test]
async fn an_index_says_whether_it_suits_us() {
    let (_server, index) = empty().await;
    index.learn(&[lesson(1, 1, MODEL, 0.0), lesson(2, 1, OTHER_MODEL, 0.0)], false).await.unwrap();
    let description = index.describe().await.unwrap();
    assert_eq!((description.dimension, description.metric.as_deref()), (Some(DIMENSIONS), Some("cosine")));
    assert_eq!(description.ours.values().sum::<u64>(), 2);
    assert!(description.findings(DIMENSIONS).iter().all(|finding| finding.state == State::Ok));
    let server = PineconeServer::start_as(3, "euclidean").await;
    let index = Pinecone::new(&access(&server, PineconeServer::KEY, "")).unwrap();
    let findings = index.describe().await.unwrap().findings(DIMENSIONS);
    assert!(findings[..2].iter().all(|f| f.state == State::Fail && f.remedy.is_some()), "{findings:?}");
}
