//! What is gone stays gone, and what is there comes back, when everything that is ours is made anew.

use serde_json::json;
use sparks_domain::{Email, Key};
use sparks_engine::{Maintenance, Store};
use sparks_tests::{
    album::{album, photo},
    platform::{allow, allowed, deletion, send, show_oneself, sign_up, write},
    samples::{person, uploader},
    worker::{drain, image_of, rebuilder},
};

use super::{embedded::Folders, joined::Known};

fn email(name: &str) -> Email {
    format!("{name}@example.org").parse().unwrap()
}

/// Photos of four, of which two were deleted, and with them the third person; ann is the second, bob a fifth.
async fn with_gaps(folders: &Folders) -> Known {
    let known = Known::of(folders, album(&[&[0], &[1], &[0, 2], &[3], &[1, 3]])).await;
    allow(&known.backend, 10).await;
    for (name, me) in [("ann", photo(50, &[1])), ("bob", photo(51, &[4]))] {
        sign_up(&known.backend, &email(name)).await;
        show_oneself(&known.backend, &email(name), &me).await;
    }
    drain(&known.backend).await;
    for gone in [2, 3] {
        send(&known.backend, deletion(&known.photos[gone])).await;
    }
    drain(&known.backend).await;
    assert_eq!(allowed(&known.backend).await, 12);
    known.assert_no_drift().await;
    known
}

async fn rebuild(known: &Known) -> u64 {
    rebuilder(&known.backend).run(true, |_| ()).await.unwrap().total
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_deleted_by_hand_come_back_identical() {
    let folders = Folders::new();
    let known = with_gaps(&folders).await;
    let before = known.backend.store.fingerprint().await.unwrap();
    let ours = "DELETE FROM items WHERE entityType LIKE 'TAGGING#%' OR entityType IN ('PERSON', 'UNKNOWN_PERSONS')";
    let deleted = known.by_hand(ours);
    assert_eq!(deleted, 4 + 4 + 1, "four taggings, four persons and the counter");
    let forget = "UPDATE items SET item = json_remove(item, '$.personId', '$.updatedAt') WHERE entityType = 'USER'";
    assert_eq!(known.by_hand(forget), 2);
    assert_eq!(rebuild(&known).await, deleted as u64 + 4);
    assert_eq!(known.backend.store.fingerprint().await.unwrap(), before);
    assert_eq!(rebuild(&known).await, 0);
    assert_eq!(allowed(&known.backend).await, 12, "nothing is given back twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_gone_is_removed_again_where_somebody_put_it_back() {
    let folders = Folders::new();
    let known = with_gaps(&folders).await;
    let before = known.backend.store.fingerprint().await.unwrap();
    let (gone, alone) = (image_of(&known.photos[2]), image_of(&known.photos[3]));
    for key in [Key::person(person(3)), Key::tagging(&gone, person(1)), Key::tagging(&alone, person(4))] {
        write(&known.backend, &key, json!({ "entityType": "somebody's" })).await;
    }
    assert_eq!(rebuild(&known).await, 3);
    assert_eq!(known.backend.store.fingerprint().await.unwrap(), before);

    // The row of a deleted photo is the platform's, and gets nothing of ours.
    let key = Key::image(&gone, &uploader());
    write(&known.backend, &key, json!({ "entityType": "IMAGE", "tags": [] })).await;
    assert_eq!(rebuild(&known).await, 0);
    assert_eq!(known.row(&key).await, Some(json!({ "entityType": "IMAGE", "tags": [] })));
    assert_eq!(known.tagged(3).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_is_joined_and_who_is_forgotten_both_count() {
    let folders = Folders::new();
    let known = with_gaps(&folders).await;
    // person4 is joined into person1, and then all photos of both go.
    let merged = known.join(1, 4).await;
    known.assert_no_drift().await;
    for gone in [0, 4] {
        send(&known.backend, deletion(&known.photos[gone])).await;
        drain(&known.backend).await;
        known.assert_no_drift().await;
    }
    for number in [1, 3, 4] {
        assert_eq!(known.row(&Key::person(person(number))).await, None, "person{number}");
        for crop in [format!("persons/person{number}.jpg"), format!("merged/person{number}.jpg")] {
            assert!(!known.folder.join("objects").join(&crop).exists(), "{crop}");
        }
        assert!(known.backend.store.faces_of(&[person(number)]).await.unwrap().is_empty(), "person{number}");
    }
    let before = known.backend.store.fingerprint().await.unwrap();
    known.by_hand("DELETE FROM items WHERE entityType IN ('PERSON', 'UNKNOWN_PERSONS')");
    assert_eq!(rebuild(&known).await, 3, "person2, person5 and the counter");
    assert_eq!(known.backend.store.fingerprint().await.unwrap(), before);
    // Parting those who are forgotten brings nobody back.
    known.part(merged.event).await;
    known.assert_no_drift().await;
    assert_eq!(known.backend.store.fingerprint().await.unwrap(), before);
}
