//! What another worker left: taken over whatever call dies, and whoever else is at work.

use std::{path::Path, sync::Arc};

use serde_json::json;
use sparks_domain::{Event, Key, PersonId, Presence};
use sparks_embedded::Embedded;
use sparks_engine::{Adopted, Adoption, Commit, Failure, GalleryIndex, Maintenance, Objects, Store};
use sparks_tests::{
    album::{album, photo, photo_with_noise},
    faults::{Aftermath, Fault, Fuse, Moment},
    legacy::{Legacy, person_of},
    samples::{nothing, set},
    snapshot::{Snapshot, count, read_log},
    worker::{drain, image_of, open, persons_in, pipeline, register, upload},
};
use tokio::task::JoinSet;

use super::{embedded::Folders, joined_crash::copied};

async fn adopt(backend: &Embedded, fuse: &Arc<Fuse>) -> Result<Adopted, Failure> {
    let store = fuse.guard(Arc::clone(&backend.store) as Arc<dyn Maintenance>);
    let objects = fuse.guard(Arc::clone(&backend.objects) as Arc<dyn Objects>);
    let index = Arc::new(GalleryIndex::load(Arc::clone(&store) as Arc<dyn Store>, 5).await?);
    let pipeline = Arc::new(pipeline(Arc::clone(&store) as Arc<dyn Store>, objects).await?);
    let adoption = Adoption { store, pipeline, index, jobs: 1 };
    let found = adoption.survey(|_| ()).await?;
    adoption.run(&found, false, |_| ()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_at_any_call_of_an_adoption_leaves_no_trace() {
    let folders = Arc::new(Folders::new());
    let before = folders.fresh();
    let backend = open(&before);
    let legacy = Legacy::of(&album(&[&[0], &[1], &[0, 1]]));
    legacy.write(backend.store.as_ref(), backend.objects.as_ref()).await;
    drop(backend);

    let clean = copied(&before, &folders.fresh());
    let (backend, fuse) = (open(&clean), Fuse::counting());
    adopt(&backend, &fuse).await.unwrap();
    let (clean, calls) = (Arc::new(Snapshot::take(&clean, &backend).await), fuse.calls());
    assert_eq!((clean.drift.len(), clean.log.len(), clean.faces.len()), (0, 1 + 2 + 3, 2));
    let moments = [Moment::Before, Moment::After].into_iter();
    let faults = moments
        .flat_map(|moment| (1..=calls.len()).map(move |call| Fault { call, moment, aftermath: Aftermath::Gone }));
    let mut trials: JoinSet<Option<String>> = JoinSet::new();
    let mut wrong = Vec::new();
    for fault in faults {
        while trials.len() >= 6 {
            wrong.extend(trials.join_next().await.unwrap().unwrap());
        }
        let (folder, expected) = (copied(&before, &folders.fresh()), Arc::clone(&clean));
        let call = calls[fault.call - 1].clone();
        trials.spawn(async move {
            let (backend, fuse) = (open(&folder), Fuse::at(fault));
            let survived = adopt(&backend, &fuse).await.is_ok().then(|| "it survived its own end".to_owned());
            drop(backend);
            let backend = open(&folder);
            let again = adopt(&backend, &Fuse::counting()).await.err().map(|error| error.to_string());
            let difference = Snapshot::take(&folder, &backend).await.difference(&expected);
            Some(format!("{fault:?} ({call}): {}", survived.or(again).or(difference)?))
        });
    }
    wrong.extend(trials.join_all().await.into_iter().flatten());
    println!("2 faults at each of {} calls", calls.len());
    assert!(wrong.is_empty(), "{} faults left a trace:\n{}", wrong.len(), wrong.join("\n"));
}

/// A worker that takes photos in while somebody adopts: each is refused where the other was faster, and looks again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_adoption_beside_others_says_everything_once() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let backend = Arc::new(open(&folder));
    let photos = album(&[&[0], &[1], &[2], &[0, 1], &[1, 2]]);
    Legacy::of(&photos).write(backend.store.as_ref(), backend.objects.as_ref()).await;
    let strangers: Vec<_> = (50..58).map(|number| photo(number, &[number as usize])).collect();
    upload(&backend, &strangers).await;
    let adopting = (0..2).map(|_| {
        let backend = Arc::clone(&backend);
        tokio::spawn(async move { adopt(&backend, &Fuse::counting()).await.map(|adopted| adopted.persons) })
    });
    let adopting: Vec<_> = adopting.collect();
    drain(&backend).await;
    let mut persons = 0;
    for adopting in adopting {
        persons += adopting.await.unwrap().unwrap();
    }
    let log = read_log(&backend).await;
    assert_eq!(["PersonAdopted", "PhotoAdopted", "PersonsAllocated"].map(|name| count(&log, name)), [3, 5, 8]);
    assert_eq!(persons, 3, "whoever was second adopted nobody");
    let mut numbers = Vec::new();
    for stranger in &strangers {
        numbers.extend(persons_in(&backend, stranger).await.iter().map(|person| person.number()));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (78..86).collect::<Vec<_>>(), "beyond every number that was given out");
    assert_eq!(Snapshot::take(&folder, &backend).await.drift, [""; 0]);
}

/// The other worker is still there, and tags a photo that we have decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tag_beside_our_own_decision_is_adopted_with_it() {
    let folders = Folders::new();
    let folder = folders.fresh();
    let backend = open(&folder);
    Legacy::of(&album(&[&[0]])).write(backend.store.as_ref(), backend.objects.as_ref()).await;
    adopt(&backend, &Fuse::counting()).await.unwrap();
    let ours = photo(7, &[3]);
    upload(&backend, std::slice::from_ref(&ours)).await;
    drain(&backend).await;
    let key = Key::tagging(&image_of(&ours), person_of(0));
    let tag = set(&key, Presence::Any, json!({ "entityType": "TAGGING#person10", "createdAt": 1, "by": "another" }));
    backend.store.commit(&Commit { mutations: vec![tag], ..nothing() }).await.unwrap();
    let adopted = adopt(&backend, &Fuse::counting()).await.unwrap();
    assert_eq!((adopted.persons, adopted.photos, adopted.taggings), (0, 1, 1));
    let persons: Vec<String> = persons_in(&backend, &ours).await.iter().map(ToString::to_string).collect();
    assert_eq!(persons, ["person10", "person78"]);
    assert_eq!(backend.store.get(&key).await.unwrap().unwrap().text("by"), Some("another"));
    assert_eq!(Snapshot::take(&folder, &backend).await.drift, [""; 0]);
    let last = read_log(&backend).await.pop().unwrap();
    assert!(matches!(last.event, Event::PhotoAdopted(event) if event.follows.is_some()));
}

/// Somebody in pieces, of whom one was adopted; and the adopted one beside the others in a photo that another worker tagged,
/// if so. Says who was joined.
async fn pieces(folder: &Path, beside: &[PersonId]) -> Vec<(PersonId, PersonId)> {
    let backend = open(folder);
    let mut legacy = Legacy::of(&album(&[&[0]]));
    for (_, bytes) in legacy.objects.iter_mut().filter(|(key, _)| key == "persons/person10.jpg") {
        *bytes = photo_with_noise(0, 0, 1.1).jpeg;
    }
    legacy.write(backend.store.as_ref(), backend.objects.as_ref()).await;
    adopt(&backend, &Fuse::counting()).await.unwrap();
    let pieces = (1..5).map(|number| photo_with_noise(number, 0, 1.1));
    let photos: Vec<_> = pieces.chain((10..30).map(|number| photo(number, &[number as usize]))).collect();
    upload(&backend, &photos).await;
    drain(&backend).await;
    for person in beside {
        let tag = json!({ "entityType": format!("TAGGING#{person}"), "createdAt": 1 });
        let tag = set(&Key::tagging(&image_of(&photo(0, &[0])), *person), Presence::Any, tag);
        backend.store.commit(&Commit { mutations: vec![tag], ..nothing() }).await.unwrap();
    }
    let adopted = adopt(&backend, &Fuse::counting()).await.unwrap();
    assert_eq!(adopted.taggings as usize, beside.len());
    let register = register(&backend, &Fuse::counting()).await.unwrap();
    let joined = register.consolidate().await.unwrap();
    joined.into_iter().map(|merged| (merged.into, merged.from)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_machine_never_joins_those_whom_another_worker_saw_in_one_photo() {
    let folders = Folders::new();
    let joined = pieces(&folders.fresh(), &[]).await;
    let others: Vec<PersonId> =
        joined.iter().filter(|(into, _)| *into == person_of(0)).map(|(_, from)| *from).collect();
    assert!(!others.is_empty(), "nobody is one with who was adopted: {joined:?}");
    let joined = pieces(&folders.fresh(), &others).await;
    assert!(joined.iter().all(|(into, from)| ![into, from].contains(&&person_of(0))), "{joined:?}");
}
