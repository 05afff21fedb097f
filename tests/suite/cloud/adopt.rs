//! Adoption of a DynamoDB table that another program filled.

use std::process::Stdio;

use serde_json::{Value, json};
use sparks_engine::{Objects, Store};
use sparks_tests::{
    album::{Photo, album, photo},
    legacy_data::{LegacyData, person_of, sorted},
    platform_actions::original_key,
    samples::uploader,
    worker::image_of,
};

use super::account::Account;

/// Returns the row that the platform creates for a photo.
fn row(photo: &Photo) -> Value {
    json!({ "PK": image_of(photo), "SK": format!("UPLOADED_BY#{}", uploader()), "entityType": "IMAGE",
        "imageId": image_of(photo), "s3Key": original_key(photo), "uploadedBy": uploader(), "tags": [] })
}

/// Creates an account with rows and objects of another program, and without messages about them.
async fn legacy_account(photos: &[Photo]) -> (Account, LegacyData) {
    let (account, legacy) = (Account::new(&[]).await, LegacyData::of(photos));
    legacy.write(&account.store, &account.objects).await;
    let sqs = account.emulator.connect().await.sqs();
    let queues = sqs.list_queues().send().await.unwrap().queue_urls.unwrap();
    for queue in queues {
        sqs.purge_queue().queue_url(queue).send().await.unwrap();
    }
    (account, legacy)
}

fn persons_in(account: &Account, photo: &Photo) -> Value {
    let image = image_of(photo).to_string();
    let items = account.lines(["items", "--pk", &image]);
    items.iter().find(|item| item["entityType"] == "IMAGE").unwrap()["persons"].clone()
}

fn assert_clean(account: &Account) {
    let verified = account.lines(["verify", "--json"]).remove(0);
    assert_eq!(verified["clean"], true, "{verified}");
    let rebuilt = account.lines(["rebuild", "--json"]).remove(0);
    assert_eq!((&rebuilt["before"], &rebuilt["changed"]), (&rebuilt["after"], &json!(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn adopted_persons_keep_their_numbers_and_are_matched() {
    let photos = album(&[&[0], &[1], &[0, 2], &[1, 2]]);
    let (account, legacy) = legacy_account(&photos).await;
    let adopted = account.lines(["adopt", "--json"]).remove(0);
    let found = ["persons", "photos", "taggings", "numbers_reserved_up_to"].map(|name| adopted[name].clone());
    assert_eq!(found, [json!(3), json!(4), json!(6), json!(77)], "{adopted}");
    assert_eq!(sorted(account.lines(["items"])), legacy.expected_after_adoption());
    assert_clean(&account);

    let new = [photo(20, &[0, 2]), photo(21, &[1]), photo(22, &[8])];
    for photo in &new {
        account.upload(&row(photo), photo.jpeg.clone()).await;
    }
    // An adopted photo, uploaded again, keeps each tag once.
    account.put(&original_key(&photos[2]), photos[2].jpeg.clone()).await;
    account.text(["run", "--drain"]);
    assert_eq!(persons_in(&account, &new[0]), json!(["person10", "person30"]));
    assert_eq!(persons_in(&account, &new[1]), json!(["person20"]));
    assert_eq!(persons_in(&account, &new[2]), json!(["person78"]));
    assert_eq!(persons_in(&account, &photos[2]), json!(["person10", "person30"]));
    assert!(account.text(["dlq", "ls"]).contains("no dead letters"));
    assert_clean(&account);

    let items = sorted(account.lines(["items"]));
    let again = account.lines(["adopt", "--json"]).remove(0);
    assert_eq!((&again["persons"], &again["taggings"]), (&json!(0), &json!(0)), "{again}");
    assert_eq!(sorted(account.lines(["items"])), items, "a second adoption changes nothing");

    // A person in no other photo is forgotten: row, crop and signatures.
    for photo in [&photos[1], &photos[3], &new[1]] {
        account.text(["photo", "delete", image_of(photo).as_str()]);
    }
    assert!(account.store.get(&sparks_domain::Key::person(person_of(1))).await.unwrap().is_none());
    assert!(account.objects.head("persons/person20.jpg").await.unwrap().is_none());
    assert!(account.store.faces_of(&[person_of(1)]).await.unwrap().is_empty());
    assert_clean(&account);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_adoption_that_is_killed_can_be_repeated() {
    let identities: Vec<Vec<usize>> = (0..40).map(|n| vec![n % 12, (n + 5) % 12]).collect();
    let identities: Vec<&[usize]> = identities.iter().map(Vec::as_slice).collect();
    let (account, legacy) = legacy_account(&album(&identities)).await;
    let mut kills = 0;
    for events in [2, 9, 20, 40] {
        let mut adopting = account.command(["adopt"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while adopting.try_wait().unwrap().is_none() {
            let log = account.store.read_log(&sparks_domain::Position::default(), 1000).await.unwrap();
            if log.len() >= events {
                adopting.kill().unwrap();
                kills += usize::from(!adopting.wait().unwrap().success());
                break;
            }
        }
    }
    assert!(kills >= 2, "adoption finished before it was killed");
    account.text(["adopt"]);
    let events = account.lines(["events", "--json"]);
    let count = |name: &str| events.iter().filter(|event| event["event_type"] == name).count();
    assert_eq!(["NumbersReserved", "PersonAdopted", "PhotoAdopted"].map(count), [1, 12, 40]);
    assert_eq!(sorted(account.lines(["items"])), legacy.expected_after_adoption());
    assert_clean(&account);
}
