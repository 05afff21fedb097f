//! Rebuilds after deletions: deleted data stays deleted, and everything else is restored.

use serde_json::json;
use sparks_domain::{Email, Key};
use sparks_engine::{Maintenance, Store};
use sparks_tests::{
    album::{album, photo},
    platform_actions::{
        deletion_message, send, set_upload_limit, sign_up, upload_limit, upload_profile_picture, write_row,
    },
    samples::{person, uploader},
    worker::{drain, image_of, rebuilder},
};

use super::{data_folders::DataFolders, processed_album::ProcessedAlbum};

fn email(name: &str) -> Email {
    format!("{name}@example.org").parse().unwrap()
}

/// Processes photos of four identities and deletes two photos, which forgets person3. User ann is person2, user bob is person5.
async fn album_with_deletions(folders: &DataFolders) -> ProcessedAlbum {
    let fixture = ProcessedAlbum::create(folders, album(&[&[0], &[1], &[0, 2], &[3], &[1, 3]])).await;
    set_upload_limit(&fixture.backend, 10).await;
    for (name, profile) in [("ann", photo(50, &[1])), ("bob", photo(51, &[4]))] {
        sign_up(&fixture.backend, &email(name)).await;
        upload_profile_picture(&fixture.backend, &email(name), &profile).await;
    }
    drain(&fixture.backend).await;
    for deleted in [2, 3] {
        send(&fixture.backend, deletion_message(&fixture.photos[deleted])).await;
    }
    drain(&fixture.backend).await;
    assert_eq!(upload_limit(&fixture.backend).await, 12);
    fixture.assert_no_drift().await;
    fixture
}

async fn rebuild(fixture: &ProcessedAlbum) -> u64 {
    rebuilder(&fixture.backend).run(true, |_| ()).await.unwrap().total
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_deleted_with_sql_are_restored_byte_for_byte() {
    let folders = DataFolders::new();
    let fixture = album_with_deletions(&folders).await;
    let before = fixture.backend.store.fingerprint().await.unwrap();
    let delete = "DELETE FROM items WHERE entityType LIKE 'TAGGING#%' OR entityType IN ('PERSON', 'UNKNOWN_PERSONS')";
    let deleted = fixture.execute_sql(delete);
    assert_eq!(deleted, 4 + 4 + 1, "four taggings, four persons and the counter");
    let forget = "UPDATE items SET item = json_remove(item, '$.personId', '$.updatedAt') WHERE entityType = 'USER'";
    assert_eq!(fixture.execute_sql(forget), 2);
    assert_eq!(rebuild(&fixture).await, deleted as u64 + 4);
    assert_eq!(fixture.backend.store.fingerprint().await.unwrap(), before);
    assert_eq!(rebuild(&fixture).await, 0);
    assert_eq!(upload_limit(&fixture.backend).await, 12, "the upload limit is credited once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_of_deleted_data_are_removed_again() {
    let folders = DataFolders::new();
    let fixture = album_with_deletions(&folders).await;
    let before = fixture.backend.store.fingerprint().await.unwrap();
    let (deleted, other_deleted) = (image_of(&fixture.photos[2]), image_of(&fixture.photos[3]));
    for key in [Key::person(person(3)), Key::tagging(&deleted, person(1)), Key::tagging(&other_deleted, person(4))] {
        write_row(&fixture.backend, &key, json!({ "entityType": "foreign" })).await;
    }
    assert_eq!(rebuild(&fixture).await, 3);
    assert_eq!(fixture.backend.store.fingerprint().await.unwrap(), before);

    // The IMAGE row of a deleted photo belongs to the platform and gets no attributes of the worker.
    let key = Key::image(&deleted, &uploader());
    write_row(&fixture.backend, &key, json!({ "entityType": "IMAGE", "tags": [] })).await;
    assert_eq!(rebuild(&fixture).await, 0);
    assert_eq!(fixture.row(&key).await, Some(json!({ "entityType": "IMAGE", "tags": [] })));
    assert_eq!(fixture.tag_count(3).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn forgotten_persons_of_a_merge_stay_forgotten() {
    let folders = DataFolders::new();
    let fixture = album_with_deletions(&folders).await;
    // person4 is merged into person1, and then all photos of both are deleted.
    let merged = fixture.merge(1, 4).await;
    fixture.assert_no_drift().await;
    for deleted in [0, 4] {
        send(&fixture.backend, deletion_message(&fixture.photos[deleted])).await;
        drain(&fixture.backend).await;
        fixture.assert_no_drift().await;
    }
    for number in [1, 3, 4] {
        assert_eq!(fixture.row(&Key::person(person(number))).await, None, "person{number}");
        for crop in [format!("persons/person{number}.jpg"), format!("merged/person{number}.jpg")] {
            assert!(!fixture.folder.join("objects").join(&crop).exists(), "{crop}");
        }
        assert!(fixture.backend.store.faces_of(&[person(number)]).await.unwrap().is_empty(), "person{number}");
    }
    let before = fixture.backend.store.fingerprint().await.unwrap();
    fixture.execute_sql("DELETE FROM items WHERE entityType IN ('PERSON', 'UNKNOWN_PERSONS')");
    assert_eq!(rebuild(&fixture).await, 3, "person2, person5 and the counter");
    assert_eq!(fixture.backend.store.fingerprint().await.unwrap(), before);
    // An unmerge of forgotten persons restores none of them.
    fixture.unmerge(merged.event).await;
    fixture.assert_no_drift().await;
    assert_eq!(fixture.backend.store.fingerprint().await.unwrap(), before);
}
