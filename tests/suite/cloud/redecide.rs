//! `sparks redecide` with an event log in several lanes.

use serde_json::{Value, json};
use sparks_tests::{
    album::{Photo, photo_with_noise},
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

fn persons(account: &Account) -> usize {
    account.items().iter().filter(|item| item["entityType"] == "PERSON").count()
}

/// Two identities are split into several persons, which a lower threshold matches.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lower_threshold_is_applied_once() {
    let account = Account::new(&[("SPARKS_FACES_CONSOLIDATION", "suggest")]).await;
    for n in 0..12 {
        let photo = photo_with_noise(n, (n % 2) as usize, 1.1);
        account.upload(&row(&photo), photo.jpeg.clone()).await;
    }
    account.text(["run", "--drain"]);
    assert!(persons(&account) > 4, "{:?}", account.items());
    let before = account.lines(["items"]);
    let redecide = ["redecide", "--threshold", "0.35", "--json"];
    let report = account.lines(redecide).remove(0);
    assert_eq!(account.lines(["items"]), before, "nothing is written");
    let apply = ["redecide", "--threshold", "0.35", "--apply", "--json"];
    let done = account.lines(apply).remove(0);
    assert_eq!((&done["differences"], &done["photos"]), (&report["differences"], &json!(12)));
    assert_eq!(persons(&account), 2, "{done}");
    let verified = account.lines(["verify", "--json"]).remove(0);
    assert_eq!(verified["clean"], true, "{verified}");
    let rebuilt = account.lines(["rebuild", "--json"]).remove(0);
    assert_eq!((&rebuilt["before"], &rebuilt["changed"]), (&rebuilt["after"], &json!(0)));
    assert_eq!(account.lines(apply).remove(0)["photos_changed"], 0);
}
