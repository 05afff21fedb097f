//! Adopting the data of another worker, under crashes and beside running workers.

use std::{path::Path, sync::Arc};

use serde_json::json;
use sparks_domain::{Event, Key, PersonId, Presence};
use sparks_embedded::Embedded;
use sparks_engine::{Adoption, AdoptionReport, Commit, Failure, GalleryIndex, Maintenance, Objects, Store};
use sparks_tests::{
    album::{album, photo, photo_with_noise},
    fault_injection::{Fault, FaultKind, FaultPlan, FaultTiming},
    legacy_data::{LegacyData, person_of},
    samples::{empty_commit, set},
    snapshot::{Snapshot, count, read_log},
    worker::{consolidator, drain, image_of, open, persons_in, pipeline, upload},
};
use tokio::task::JoinSet;

use super::data_folders::{DataFolders, copy_folder};

async fn adopt(backend: &Embedded, plan: &Arc<FaultPlan>) -> Result<AdoptionReport, Failure> {
    let store = plan.wrap(Arc::clone(&backend.store) as Arc<dyn Maintenance>);
    let objects = plan.wrap(Arc::clone(&backend.objects) as Arc<dyn Objects>);
    let index = Arc::new(GalleryIndex::load(Arc::clone(&store) as Arc<dyn Store>, 5).await?);
    let pipeline = Arc::new(pipeline(Arc::clone(&store) as Arc<dyn Store>, objects).await?);
    let adoption = Adoption { store, pipeline, index, jobs: 1 };
    let found = adoption.survey(|_| ()).await?;
    adoption.run(&found, false, |_| ()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_adoption_repeated_after_any_crash_has_the_same_result() {
    let folders = Arc::new(DataFolders::new());
    let before = folders.fresh();
    let backend = open(&before);
    let legacy = LegacyData::of(&album(&[&[0], &[1], &[0, 1]]));
    legacy.write(backend.store.as_ref(), backend.objects.as_ref()).await;
    drop(backend);

    let clean = copy_folder(&before, &folders.fresh());
    let (backend, plan) = (open(&clean), FaultPlan::without_faults());
    adopt(&backend, &plan).await.unwrap();
    let (clean, calls) = (Arc::new(Snapshot::take(&clean, &backend).await), plan.calls());
    assert_eq!((clean.drift.len(), clean.log.len(), clean.faces.len()), (0, 1 + 2 + 3, 2));
    let timings = [FaultTiming::BeforeCall, FaultTiming::AfterCall].into_iter();
    let faults =
        timings.flat_map(|timing| (1..=calls.len()).map(move |call| Fault { call, timing, kind: FaultKind::Crash }));
    let mut trials: JoinSet<Option<String>> = JoinSet::new();
    let mut failures = Vec::new();
    for fault in faults {
        while trials.len() >= 6 {
            failures.extend(trials.join_next().await.unwrap().unwrap());
        }
        let (folder, expected) = (copy_folder(&before, &folders.fresh()), Arc::clone(&clean));
        let call = calls[fault.call - 1].clone();
        trials.spawn(async move {
            let (backend, plan) = (open(&folder), FaultPlan::at(fault));
            let survived =
                adopt(&backend, &plan).await.is_ok().then(|| "the adoption succeeded despite the crash".to_owned());
            drop(backend);
            let backend = open(&folder);
            let again = adopt(&backend, &FaultPlan::without_faults()).await.err().map(|error| error.to_string());
            let difference = Snapshot::take(&folder, &backend).await.difference(&expected);
            Some(format!("{fault:?} ({call}): {}", survived.or(again).or(difference)?))
        });
    }
    failures.extend(trials.join_all().await.into_iter().flatten());
    println!("2 faults at each of {} calls", calls.len());
    assert!(failures.is_empty(), "{} faults changed the result:\n{}", failures.len(), failures.join("\n"));
}

/// A worker and two adoptions run at once; each decides again after a conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_adoptions_record_every_event_once() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let backend = Arc::new(open(&folder));
    let photos = album(&[&[0], &[1], &[2], &[0, 1], &[1, 2]]);
    LegacyData::of(&photos).write(backend.store.as_ref(), backend.objects.as_ref()).await;
    let unknown: Vec<_> = (50..58).map(|number| photo(number, &[number as usize])).collect();
    upload(&backend, &unknown).await;
    let adopting = (0..2).map(|_| {
        let backend = Arc::clone(&backend);
        tokio::spawn(async move { adopt(&backend, &FaultPlan::without_faults()).await.map(|adopted| adopted.persons) })
    });
    let adopting: Vec<_> = adopting.collect();
    drain(&backend).await;
    let mut persons = 0;
    for adopting in adopting {
        persons += adopting.await.unwrap().unwrap();
    }
    let log = read_log(&backend).await;
    assert_eq!(["PersonAdopted", "PhotoAdopted", "PersonsAllocated"].map(|name| count(&log, name)), [3, 5, 8]);
    assert_eq!(persons, 3, "persons adopted by both adoptions");
    let mut numbers = Vec::new();
    for photo in &unknown {
        numbers.extend(persons_in(&backend, photo).await.iter().map(|person| person.number()));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (78..86).collect::<Vec<_>>(), "new persons get numbers above the legacy counter");
    assert_eq!(Snapshot::take(&folder, &backend).await.drift, [""; 0]);
}

/// The other worker still runs and tags a photo that was already processed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_foreign_tag_on_a_processed_photo_is_adopted() {
    let folders = DataFolders::new();
    let folder = folders.fresh();
    let backend = open(&folder);
    LegacyData::of(&album(&[&[0]])).write(backend.store.as_ref(), backend.objects.as_ref()).await;
    adopt(&backend, &FaultPlan::without_faults()).await.unwrap();
    let ours = photo(7, &[3]);
    upload(&backend, std::slice::from_ref(&ours)).await;
    drain(&backend).await;
    let key = Key::tagging(&image_of(&ours), person_of(0));
    let tag = set(&key, Presence::Any, json!({ "entityType": "TAGGING#person10", "createdAt": 1, "by": "another" }));
    backend.store.commit(&Commit { mutations: vec![tag], ..empty_commit() }).await.unwrap();
    let adopted = adopt(&backend, &FaultPlan::without_faults()).await.unwrap();
    assert_eq!((adopted.persons, adopted.photos, adopted.taggings), (0, 1, 1));
    let persons: Vec<String> = persons_in(&backend, &ours).await.iter().map(ToString::to_string).collect();
    assert_eq!(persons, ["person10", "person78"]);
    assert_eq!(backend.store.get(&key).await.unwrap().unwrap().text("by"), Some("another"));
    assert_eq!(Snapshot::take(&folder, &backend).await.drift, [""; 0]);
    let last = read_log(&backend).await.pop().unwrap();
    assert!(matches!(last.event, Event::PhotoAdopted(event) if event.follows.is_some()));
}

/// Creates several persons for one identity, one of them adopted, and merges duplicates. `tagged_together` are tagged in one photo with
/// the adopted person. Returns the merges as pairs of the surviving and the merged person.
async fn merge_fragments(folder: &Path, tagged_together: &[PersonId]) -> Vec<(PersonId, PersonId)> {
    let backend = open(folder);
    let mut legacy = LegacyData::of(&album(&[&[0]]));
    for (_, bytes) in legacy.objects.iter_mut().filter(|(key, _)| key == "persons/person10.jpg") {
        *bytes = photo_with_noise(0, 0, 1.1).jpeg;
    }
    legacy.write(backend.store.as_ref(), backend.objects.as_ref()).await;
    adopt(&backend, &FaultPlan::without_faults()).await.unwrap();
    let fragments = (1..5).map(|number| photo_with_noise(number, 0, 1.1));
    let photos: Vec<_> = fragments.chain((10..30).map(|number| photo(number, &[number as usize]))).collect();
    upload(&backend, &photos).await;
    drain(&backend).await;
    for person in tagged_together {
        let tag = json!({ "entityType": format!("TAGGING#{person}"), "createdAt": 1 });
        let tag = set(&Key::tagging(&image_of(&photo(0, &[0])), *person), Presence::Any, tag);
        backend.store.commit(&Commit { mutations: vec![tag], ..empty_commit() }).await.unwrap();
    }
    let adopted = adopt(&backend, &FaultPlan::without_faults()).await.unwrap();
    assert_eq!(adopted.taggings as usize, tagged_together.len());
    let consolidator = consolidator(&backend, &FaultPlan::without_faults()).await.unwrap();
    let merges = consolidator.merge_duplicates().await.unwrap();
    merges.into_iter().map(|merged| (merged.into, merged.from)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn persons_tagged_in_one_photo_are_not_merged_automatically() {
    let folders = DataFolders::new();
    let merges = merge_fragments(&folders.fresh(), &[]).await;
    let others: Vec<PersonId> =
        merges.iter().filter(|(into, _)| *into == person_of(0)).map(|(_, from)| *from).collect();
    assert!(!others.is_empty(), "no person was merged into the adopted one: {merges:?}");
    let merges = merge_fragments(&folders.fresh(), &others).await;
    assert!(merges.iter().all(|(into, from)| ![into, from].contains(&&person_of(0))), "{merges:?}");
}
