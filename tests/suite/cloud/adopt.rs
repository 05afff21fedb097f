//! A table in the cloud that another worker filled.

use std::process::Stdio;

use serde_json::{Value, json};
use sparks_engine::{Objects, Store};
use sparks_tests::{
    album::{Photo, album, photo},
    legacy::{Legacy, person_of, sorted},
    platform::original,
    samples::uploader,
    worker::image_of,
};

use super::account::Account;

/// The row that the platform makes of a photo.
fn row(photo: &Photo) -> Value {
    json!({ "PK": image_of(photo), "SK": format!("UPLOADED_BY#{}", uploader()), "entityType": "IMAGE",
        "imageId": image_of(photo), "s3Key": original(photo), "uploadedBy": uploader(), "tags": [] })
}

/// An account that another worker has worked in. Nobody heard of its objects.
async fn inherited(photos: &[Photo]) -> (Account, Legacy) {
    let (account, legacy) = (Account::new(&[]).await, Legacy::of(photos));
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
async fn persons_keep_their_numbers_and_are_recognised() {
    let photos = album(&[&[0], &[1], &[0, 2], &[1, 2]]);
    let (account, legacy) = inherited(&photos).await;
    let adopted = account.lines(["adopt", "--json"]).remove(0);
    let found = ["persons", "photos", "taggings", "numbers_reserved_up_to"].map(|name| adopted[name].clone());
    assert_eq!(found, [json!(3), json!(4), json!(6), json!(77)], "{adopted}");
    assert_eq!(sorted(account.lines(["items"])), legacy.adopted());
    assert_clean(&account);

    let new = [photo(20, &[0, 2]), photo(21, &[1]), photo(22, &[8])];
    for photo in &new {
        account.upload(&row(photo), photo.jpeg.clone()).await;
    }
    // And one that was there before, put once more: nothing is lost, nothing is there twice.
    account.put(&original(&photos[2]), photos[2].jpeg.clone()).await;
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
    assert_eq!(sorted(account.lines(["items"])), items, "a second time changes nothing");

    // Whoever is in no photo any more is forgotten: row, picture and all.
    for photo in [&photos[1], &photos[3], &new[1]] {
        account.text(["photo", "delete", image_of(photo).as_str()]);
    }
    assert!(account.store.get(&sparks_domain::Key::person(person_of(1))).await.unwrap().is_none());
    assert!(account.objects.head("persons/person20.jpg").await.unwrap().is_none());
    assert!(account.store.faces_of(&[person_of(1)]).await.unwrap().is_empty());
    assert_clean(&account);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_process_that_is_killed_is_gone_on_with() {
    let casts: Vec<Vec<usize>> = (0..40).map(|n| vec![n % 12, (n + 5) % 12]).collect();
    let casts: Vec<&[usize]> = casts.iter().map(Vec::as_slice).collect();
    let (account, legacy) = inherited(&album(&casts)).await;
    let mut kills = 0;
    for wanted in [2, 9, 20, 40] {
        let mut adopting = account.command(["adopt"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while adopting.try_wait().unwrap().is_none() {
            let log = account.store.read_log(&sparks_domain::Position::default(), 1000).await.unwrap();
            if log.len() >= wanted {
                adopting.kill().unwrap();
                kills += usize::from(!adopting.wait().unwrap().success());
                break;
            }
        }
    }
    assert!(kills >= 2, "it was never killed on its way");
    account.text(["adopt"]);
    let events = account.lines(["events", "--json"]);
    let count = |name: &str| events.iter().filter(|event| event["event_type"] == name).count();
    assert_eq!(["NumbersReserved", "PersonAdopted", "PhotoAdopted"].map(count), [1, 12, 40]);
    assert_eq!(sorted(account.lines(["items"])), legacy.adopted());
    assert_clean(&account);
}
