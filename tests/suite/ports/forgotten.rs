//! Photos of somebody come and go at the same time: whoever is in a photo is known, and whoever is in none is not.

use std::{path::Path, sync::Arc};

use sparks_domain::{Email, Key, PersonId, Seq};
use sparks_embedded::Embedded;
use sparks_engine::{GalleryIndex, Objects, Store};
use sparks_tests::{
    album::{Photo, album, photo},
    faults::Fuse,
    platform::{allow, allowed, deletion, send, show_oneself, sign_up},
    samples::person,
    snapshot::{Snapshot, count, read_log},
    worker::{Worker, drain, image_of, open, persons_in, rebuilder, upload},
};
use tokio::task::JoinSet;

use super::{embedded::Folders, joined_crash::copied};

/// The calls of one who works off the messages in this folder alone.
async fn calls(folders: &Folders, folder: &Path) -> usize {
    let backend = open(&copied(folder, &folders.fresh()));
    let fuse = Fuse::counting();
    Worker::start(&backend, &fuse).await.unwrap().drain(&backend).await.unwrap();
    fuse.calls().len()
}

/// One works off the first message while another works off the second, right before each call of the first in turn;
/// then all that was put off is done.
async fn interleaved<Fut>(folders: &Arc<Folders>, folder: &Path, check: impl Fn(std::path::PathBuf) -> Fut)
where
    Fut: Future<Output = Result<(), String>> + Send + 'static,
{
    let calls = calls(folders, folder).await;
    let (mut trials, mut wrong) = (JoinSet::new(), Vec::new());
    for call in 1..=calls {
        while trials.len() >= 4 {
            wrong.extend(trials.join_next().await.and_then(|trial: Result<Option<String>, _>| trial.unwrap()));
        }
        let folder = copied(folder, &folders.fresh());
        let checked = check(folder.clone());
        trials.spawn(async move {
            // The other has started before, and knows whom one knew then.
            let (backend, other) = (open(&folder), open(&folder));
            let another = Worker::start(&other, &Fuse::counting()).await.unwrap();
            let fuse = Fuse::interrupted(call, async move {
                while another.next().await.unwrap() {}
                drop(other);
            });
            Worker::start(&backend, &fuse).await.unwrap().drain(&backend).await.unwrap();
            let what = fuse.calls().get(call - 1).cloned();
            drop(backend);
            checked.await.err().map(|wrong| format!("before call {call} ({what:?}): {wrong}"))
        });
    }
    wrong.extend(trials.join_all().await.into_iter().flatten());
    println!("somebody else came before each of {calls} calls");
    assert!(wrong.is_empty(), "{} of {calls} left a trace:\n{}", wrong.len(), wrong.join("\n"));
}

async fn exists(backend: &Embedded, key: &str) -> bool {
    backend.objects.head(key).await.unwrap().is_some()
}

/// Everybody who is tagged is known, and nobody else.
async fn is_consistent(backend: &Embedded, photos: &[Photo]) -> Result<Vec<PersonId>, String> {
    let mut shown: Vec<PersonId> = Vec::new();
    for photo in photos {
        shown.extend(persons_in(backend, photo).await);
    }
    shown.sort_unstable();
    shown.dedup();
    is_known(backend, &shown).await?;
    Ok(shown)
}

/// These persons have a row, a crop and a face they are known by, and nobody else has any of these.
async fn is_known(backend: &Embedded, shown: &[PersonId]) -> Result<(), String> {
    let highest = backend.store.identity(Seq(0)).await.unwrap().counter;
    for number in 1..=highest {
        let id = person(number);
        let row = backend.store.get(&Key::person(id)).await.unwrap().is_some();
        let crop = exists(backend, &format!("persons/{id}.jpg")).await;
        let faces = backend.store.faces_of(&[id]).await.unwrap();
        let (kept, template) = (!faces.is_empty(), faces.iter().any(|face| face.kept.template));
        let is_shown = shown.contains(&id);
        if [row, crop, kept, template] != [is_shown; 4] {
            return Err(format!(
                "{id} is shown: {is_shown}, row: {row}, crop: {crop}, kept: {kept}, known by: {template}"
            ));
        }
    }
    let drift = rebuilder(backend).run(false, |_| ()).await.unwrap();
    if drift.total != 0 {
        return Err(format!("{:?}", drift.differences));
    }
    Ok(())
}

/// Whoever is shown in a photo is recognised in the next one.
async fn is_recognised(backend: &Embedded, identity: usize, shown: &[PersonId]) -> Result<(), String> {
    let next = [photo(90, &[identity])];
    upload(backend, &next).await;
    drain(backend).await;
    let found = persons_in(backend, &next[0]).await;
    if found == shown { Ok(()) } else { Err(format!("{shown:?} is {found:?} in the next photo")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_who_delete_the_last_photos_of_somebody_at_once_forget_them() {
    let folders = Arc::new(Folders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[0], &[1]]));
    allow(&backend, 10).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    for photo in &photos[..2] {
        send(&backend, deletion(photo)).await;
    }
    drop(backend);
    let left = photos[2].clone();
    interleaved(&folders, &folder, |folder| {
        let left = left.clone();
        async move {
            let backend = open(&folder);
            let shown = is_consistent(&backend, &[left]).await?;
            let log = read_log(&backend).await;
            let (deleted, forgotten) = (count(&log, "PhotoDeleted"), count(&log, "PersonsForgotten"));
            if (shown.as_slice(), deleted, forgotten) != (&[person(2)], 2, 1) {
                return Err(format!("{shown:?} are shown after {deleted} deletions and {forgotten} forgettings"));
            }
            let allowed = allowed(&backend).await;
            (allowed == 12).then_some(()).ok_or(format!("{allowed} uploads are allowed"))
        }
    })
    .await;
}

/// Somebody's last photo is deleted while another one of them is decided.
async fn passing(is_deletion_first: bool) {
    let folders = Arc::new(Folders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[1]]));
    upload(&backend, &photos).await;
    drain(&backend).await;
    let new = photo(50, &[0]);
    if is_deletion_first {
        send(&backend, deletion(&photos[0])).await;
        upload(&backend, std::slice::from_ref(&new)).await;
    } else {
        upload(&backend, std::slice::from_ref(&new)).await;
        send(&backend, deletion(&photos[0])).await;
    }
    drop(backend);
    let left = vec![photos[1].clone(), new];
    interleaved(&folders, &folder, |folder| {
        let left = left.clone();
        async move {
            let backend = open(&folder);
            is_consistent(&backend, &left).await?;
            let shown = persons_in(&backend, &left[1]).await;
            is_recognised(&backend, 0, &shown).await
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_is_in_a_photo_that_is_decided_while_they_are_forgotten_is_known() {
    passing(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_is_forgotten_while_a_photo_of_them_is_decided_is_known() {
    passing(false).await;
}

/// Somebody's last photo is deleted while they show themselves.
async fn showing(is_deletion_first: bool) {
    let folders = Arc::new(Folders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[0], &[1]]));
    let ann: Email = "ann@example.org".parse().unwrap();
    sign_up(&backend, &ann).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    if is_deletion_first {
        send(&backend, deletion(&photos[0])).await;
    }
    show_oneself(&backend, &ann, &photo(50, &[0])).await;
    if !is_deletion_first {
        send(&backend, deletion(&photos[0])).await;
    }
    drop(backend);
    interleaved(&folders, &folder, |folder| {
        let (key, left) = (Key::user(&ann), photos[1].clone());
        async move {
            let backend = open(&folder);
            let user = backend.store.get(&key).await.unwrap().unwrap();
            let person: PersonId = user.text("personId").unwrap().parse().unwrap();
            is_known(&backend, &[person, persons_in(&backend, &left).await[0]]).await?;
            is_recognised(&backend, 0, &[person]).await
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_shows_themselves_while_they_are_forgotten_is_known() {
    showing(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_is_forgotten_while_they_show_themselves_is_known() {
    showing(false).await;
}

/// A photo is deleted while it is taken in, whichever message comes first: nothing of it is left.
async fn in_flight(is_deletion_first: bool) {
    let folders = Arc::new(Folders::new());
    let folder = folders.fresh();
    let (backend, photos) = (open(&folder), album(&[&[1]]));
    allow(&backend, 10).await;
    upload(&backend, &photos).await;
    drain(&backend).await;
    let before = Arc::new(Snapshot::take(&folder, &backend).await);
    let new = photo(50, &[0, 1]);
    if is_deletion_first {
        send(&backend, deletion(&new)).await;
    }
    upload(&backend, std::slice::from_ref(&new)).await;
    if !is_deletion_first {
        send(&backend, deletion(&new)).await;
    }
    drop(backend);
    interleaved(&folders, &folder, |folder| {
        let (left, before, image) = (photos.clone(), Arc::clone(&before), image_of(&new).to_string());
        async move {
            let backend = open(&folder);
            is_consistent(&backend, &left).await?;
            let after = Snapshot::take(&folder, &backend).await;
            if after.dead != [""; 0] || after.unsettled != 0 {
                return Err(format!("{:?} died, {} are not settled", after.dead, after.unsettled));
            }
            let traces =
                after.objects.keys().chain(&after.rows).chain(&after.faces).filter(|name| name.contains(&image));
            let traces: Vec<_> = traces.cloned().collect();
            if !traces.is_empty() {
                return Err(format!("{traces:?} are left"));
            }
            let objects = |snapshot: &Snapshot| snapshot.objects.keys().cloned().collect::<Vec<_>>();
            if objects(&after) != objects(&before) {
                return Err(format!("{:?} are left", objects(&after)));
            }
            let allowed = allowed(&backend).await;
            (allowed == 11).then_some(()).ok_or(format!("{allowed} uploads are allowed"))
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_that_is_deleted_while_it_is_taken_in_leaves_nothing() {
    in_flight(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_that_is_taken_in_while_it_is_deleted_leaves_nothing() {
    in_flight(true).await;
}

/// A worker that has run for long and one that has just started know the same persons by the same faces.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_has_watched_all_along_knows_whom_a_newcomer_knows() {
    let folders = Folders::new();
    let backend = open(&folders.fresh());
    let store = Arc::clone(&backend.store) as Arc<dyn Store>;
    let watching = GalleryIndex::load(Arc::clone(&store), 5).await.unwrap();
    let photos = album(&[&[0], &[1], &[0, 2], &[2], &[3]]);
    upload(&backend, &photos).await;
    drain(&backend).await;
    watching.follow().await.unwrap();
    // person1 is known by another photo then; person2 and person4 are forgotten; person4 comes again as somebody new.
    for n in [0, 1, 4] {
        send(&backend, deletion(&photos[n])).await;
        drain(&backend).await;
        watching.follow().await.unwrap();
    }
    let again = [photo(60, &[3])];
    upload(&backend, &again).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &again[0]).await, [person(5)], "numbers are never given again");
    watching.follow().await.unwrap();
    let newcomer = GalleryIndex::load(store, 5).await.unwrap();
    let persons = |index: &GalleryIndex| {
        let known = index.known();
        let models: Vec<String> = known.gallery.models().map(str::to_owned).collect();
        let known_by = models.iter().flat_map(|model| known.gallery.persons(model).into_keys().collect::<Vec<_>>());
        (known_by.collect::<Vec<_>>(), known.people.clone())
    };
    assert_eq!(persons(&watching), persons(&newcomer));
    assert_eq!(persons(&newcomer).0, [person(1), person(3), person(5)]);
    let next = [photo(61, &[0]), photo(62, &[1])];
    upload(&backend, &next).await;
    drain(&backend).await;
    assert_eq!(persons_in(&backend, &next[0]).await, [person(1)], "known by the photo that is left");
    assert_eq!(persons_in(&backend, &next[1]).await, [person(6)], "forgotten, and so a stranger");
}
