//! The queries of the platform's API through boto3 return the documented rows with their DynamoDB types.

use std::{collections::BTreeSet, path::Path, process::Command};

use serde_json::{Map, Value, json};
use sparks_domain::Key;
use sparks_tests::{
    album::{Photo, photo},
    platform_actions::original_key,
    samples::uploader,
    venv::interpreter,
    worker::image_of,
};

use super::account::Account;

/// The Python package of the client and the version that the tests were written against.
pub const CLIENT: &str = "boto3==1.44.0";

/// The number of rows per page.
const PAGE: usize = 3;

/// Runs an action of the script.
pub async fn platform(account: &Account, args: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/cloud/platform_api.py");
    let (endpoint, environment) = (account.emulator.endpoint(), account.emulator.environment());
    let (args, folder): (Vec<String>, _) = (args.iter().map(ToString::to_string).collect(), account.path("."));
    let run = move || {
        let mut command = Command::new(interpreter("boto3", CLIENT));
        command.arg(script).args(args).current_dir(folder).envs(environment);
        command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_DEFAULT_REGION", "eu-central-1").output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the rows and objects that the platform writes: users, limits, and photos of two uploaders.
fn manifest(account: &Account, photos: &[Photo]) -> Value {
    let (ann, bob) = (uploader(), "bob@example.org");
    let mut rows = Vec::new();
    for user in [ann.as_str(), bob] {
        rows.push(
            json!({ "PK": user, "SK": user, "entityType": "USER", "email": user, "username": "x", "karma": 7.25 }),
        );
        rows.push(json!({ "PK": format!("LIMIT#{user}"), "SK": user, "entityType": "DEFAULT_LIMIT", "limit": 500 }));
    }
    let mut objects = Map::new();
    for photo in photos {
        let user = if photo.number % 4 == 3 { bob } else { ann.as_str() };
        let (image, file) = (image_of(photo), format!("{}.jpg", photo.number));
        rows.push(json!({ "PK": image, "SK": format!("UPLOADED_BY#{user}"), "entityType": "IMAGE", "imageId": image,
            "assetType": "IMAGE", "uploadedBy": user, "uploaded_datetime": "2025-08-01T09:24:28.957Z",
            "lastModified": "2025-08-01T09:24:28.957Z", "s3Key": original_key(photo), "persons": [], "tags": ["sea"],
            "description": "ümläut", "stars": 4.5 }));
        std::fs::write(account.path(&file), &photo.jpeg).unwrap();
        objects.insert(original_key(photo), file.into());
    }
    json!({ "rows": rows, "objects": objects })
}

/// Returns the value without DynamoDB types, as `sparks query` prints it.
fn plain(value: &Value) -> Value {
    let (kind, inner) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "N" => serde_json::from_str(inner.as_str().unwrap()).unwrap(),
        "M" => plain_item(inner),
        "L" => inner.as_array().unwrap().iter().map(plain).collect(),
        "NULL" => Value::Null,
        _ => inner.clone(),
    }
}

fn plain_item(item: &Value) -> Value {
    item.as_object().unwrap().iter().map(|(name, value)| (name.clone(), plain(value))).collect::<Map<_, _>>().into()
}

/// Returns the row as the API returns it to clients.
fn api_row(item: &Value, more: &[(&str, &str)]) -> Value {
    let mut row = plain_item(item);
    let fields = row.as_object_mut().unwrap();
    for (name, from) in more {
        let value = fields[*from].clone();
        fields.insert((*name).into(), value);
    }
    for name in ["PK", "SK", "entityType"] {
        fields.remove(name);
    }
    row
}

/// Returns the attribute names of a row with their types.
fn types(item: &Value) -> BTreeSet<String> {
    let kind = |value: &Value| value.as_object().unwrap().keys().next().unwrap().clone();
    item.as_object().unwrap().iter().map(|(name, value)| format!("{name} {}", kind(value))).collect()
}

fn set_of(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

fn all(pages: &Value) -> Vec<Value> {
    pages.as_array().unwrap().iter().flat_map(|page| page["items"].as_array().unwrap().clone()).collect()
}

fn is_time(value: &Value) -> bool {
    let text = value["S"].as_str().unwrap_or_default();
    text.len() == 24 && text.ends_with('Z') && text.as_bytes()[19] == b'.' && text.as_bytes()[10] == b'T'
}

/// Asserts that each page of `sparks query` has the rows of boto3's page in the same order, and the same last key.
fn assert_same_pages(account: &Account, query: &[&str], list: &str, pages: &Value, more: &[(&str, &str)]) {
    let (limit, mut after) = (PAGE.to_string(), None::<String>);
    for page in pages.as_array().unwrap() {
        let rows = page["items"].as_array().unwrap();
        // After a page that ends with the last row, DynamoDB returns an empty page; `sparks query` returns no last key.
        if rows.is_empty() {
            assert_eq!(after, None, "{query:?}");
            return;
        }
        let mut args: Vec<&str> = [&["query"], query, &["--limit", &limit, "--json"]].concat();
        args.extend(after.iter().flat_map(|token| ["--after", token.as_str()]));
        let page_of_sparks = account.lines(args).remove(0);
        let expected: Vec<Value> = rows.iter().map(|row| api_row(row, more)).collect();
        assert_eq!(page_of_sparks[list], Value::Array(expected), "{query:?}");
        after = page_of_sparks["lastEvaluatedKey"].as_str().map(str::to_owned);
        if let Some(token) = &after {
            let decoded = percent_decoded(token);
            assert_eq!(serde_json::from_str::<Value>(&decoded).unwrap(), plain_item(&page["last"]), "{query:?}");
        }
    }
    assert_eq!(after, None, "{query:?}");
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// Checks all queries of the API with this value of `table.tagging_s3_key`.
async fn check_queries(tagging_key: &str) {
    let account = Account::new(&[
        ("SPARKS_AWS_THUMBNAILS_TOPIC", "thumbnail-completed"),
        ("SPARKS_TABLE_TAGGING_S3_KEY", tagging_key),
    ])
    .await;
    let identities: [&[usize]; 8] = [&[0], &[0, 1], &[1], &[0], &[2, 0], &[0], &[0, 2], &[0]];
    let photos: Vec<Photo> = (0..).zip(identities).map(|(number, identities)| photo(number, identities)).collect();
    let queue = platform(&account, &["subscribe", "thumbnail-completed"]).await;
    std::fs::write(account.path("manifest.json"), manifest(&account, &photos).to_string()).unwrap();
    platform(&account, &["write", "manifest.json"]).await;
    account.text(["run", "--drain"]);
    let (both, user) = (image_of(&photos[1]).to_string(), uploader().to_string());
    let queries = json!({ "image": both, "person": "person1", "user": user, "limit": PAGE });
    let seen = platform(&account, &["read", &queries.to_string()]).await;

    check_photos(&seen, &photos, tagging_key, &both);
    check_persons_and_users(&seen);
    check_objects(&seen, photos.len());
    let notifications = platform(&account, &["receive", queue.as_str().unwrap()]).await;
    check_notifications(&notifications, &photos);

    let by = ["photos", "--by", user.as_str()];
    assert_same_pages(&account, &["photos"], "images", &seen["feed"], &[]);
    assert_same_pages(&account, &by, "images", &seen["by_user"], &[]);
    assert_same_pages(&account, &["photos-of", "person1"], "images", &seen["person_photos"], &[("imageId", "PK")]);
    let one = |args: &[&str]| account.lines([&["query"], args, &["--json"]].concat()).remove(0);
    assert_eq!(one(&["person", "person1"]), api_row(&seen["person"], &[("personId", "SK")]));
    assert_eq!(one(&["user", &user]), api_row(&seen["user"], &[]));
    assert_eq!(one(&["limit", &user]), api_row(&seen["limit"], &[("email", "SK")]));
    let persons: Vec<Value> = all(&seen["persons"]).iter().map(|row| api_row(row, &[("personId", "SK")])).collect();
    assert_eq!(one(&["persons"])["persons"], Value::Array(persons));
    let users: Vec<Value> = all(&seen["users"]).iter().map(|row| api_row(row, &[])).collect();
    assert_eq!(one(&["users"])["users"], Value::Array(users));
}

fn check_photos(seen: &Value, photos: &[Photo], tagging_key: &str, both: &str) {
    let mut newest: Vec<String> = photos.iter().map(|photo| image_of(photo).to_string()).collect();
    newest.sort_unstable_by(|a, b| b.cmp(a));
    let names =
        |pages: &Value| all(pages).iter().map(|row| row["PK"]["S"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&seen["feed"]), newest, "newest first");
    assert_eq!(seen["feed"][0]["items"].as_array().unwrap().len(), PAGE);
    assert_eq!(names(&seen["by_user"]).len(), 6);
    for image in all(&seen["feed"]) {
        let platform =
            ["PK S", "SK S", "entityType S", "imageId S", "assetType S", "uploadedBy S", "uploaded_datetime S"];
        let more = ["lastModified S", "s3Key S", "persons L", "tags L", "description S", "stars N", "images M"];
        assert_eq!(types(&image), set_of(&[&platform[..], &more].concat()));
        let images = &image["images"]["M"];
        assert_eq!(types(images), set_of(&["large S", "medium S", "processedAt S"]));
        let id = image["PK"]["S"].as_str().unwrap();
        assert_eq!(images["large"]["S"], format!("processed/{id}_large.webp"));
        assert_eq!(images["medium"]["S"], format!("processed/{id}_medium.webp"));
        assert!(is_time(&images["processedAt"]) && is_time(&image["lastModified"]), "{image}");
        assert_eq!((&image["stars"]["N"], &image["description"]["S"]), (&json!("4.5"), &json!("ümläut")));
        let photo = photos.iter().find(|photo| image_of(photo).as_str() == id).unwrap();
        let persons: BTreeSet<String> = photo.identities.iter().map(|n| format!("person{}", n + 1)).collect();
        assert_eq!(plain(&image["persons"]), json!(persons));
    }
    let key = match tagging_key {
        "large" => format!("processed/{both}_large.webp"),
        _ => format!("originals/{both}.jpg"),
    };
    let tags = all(&seen["photo_persons"]);
    assert_eq!(tags.iter().map(|tag| tag["SK"]["S"].clone()).collect::<Vec<_>>(), ["PERSON#person1", "PERSON#person2"]);
    for tag in &tags {
        assert_eq!(types(tag), set_of(&["PK S", "SK S", "entityType S", "s3Key S", "images M", "createdAt N"]));
        assert_eq!(tag["s3Key"]["S"], key.as_str());
        assert_eq!(types(&tag["images"]["M"]), set_of(&["large S", "medium S"]));
        assert_eq!(tag["entityType"]["S"], tag["SK"]["S"].as_str().unwrap().replace("PERSON#", "TAGGING#"));
    }
    // `GET /photos/:id` returns the first item of the partition, which is a tag: browsers display its s3Key.
    assert_eq!(seen["photo"], json!([tags[0]]));
    let mut of_person: Vec<String> =
        photos.iter().filter(|p| p.identities.contains(&0)).map(|p| image_of(p).to_string()).collect();
    of_person.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(names(&seen["person_photos"]), of_person, "newest first");
}

fn check_persons_and_users(seen: &Value) {
    let persons = all(&seen["persons"]);
    assert_eq!(persons.iter().map(|row| row["SK"]["S"].clone()).collect::<Vec<_>>(), ["person1", "person2", "person3"]);
    for person in &persons {
        let id = person["SK"]["S"].as_str().unwrap();
        assert_eq!(types(person), set_of(&["PK S", "SK S", "entityType S", "displayName S", "s3Key S", "createdAt N"]));
        let values = ["PK", "displayName", "s3Key"].map(|name| person[name]["S"].as_str().unwrap().to_owned());
        assert_eq!(values, [format!("PERSON#{id}"), id.to_owned(), format!("persons/{id}.jpg")]);
        let created: u64 = person["createdAt"]["N"].as_str().unwrap().parse().unwrap();
        assert!((1_600_000_000..10_000_000_000).contains(&created), "{created} is not in seconds");
    }
    assert_eq!(seen["person"], persons[0]);
    assert_eq!(seen["counter"]["limit"], json!({ "N": "3" }));
    assert_eq!(types(&seen["counter"]), set_of(&["PK S", "SK S", "entityType S", "limit N"]));
    let Key { pk, .. } = Key::user(&uploader());
    assert_eq!((&seen["user"]["email"]["S"], &seen["user"]["karma"]["N"]), (&json!(pk), &json!("7.25")));
    assert_eq!(all(&seen["users"]).len(), 2);
    assert_eq!(seen["limit"]["limit"], json!({ "N": "500" }));
    assert_eq!(all(&seen["limit_by_index"]), [seen["limit"].clone()]);
}

fn check_objects(seen: &Value, photos: usize) {
    let objects = seen["objects"].as_object().unwrap();
    assert_eq!(objects.len(), photos * 2 + 3);
    for (key, object) in objects {
        let kind = if key.ends_with(".webp") { "image/webp" } else { "image/jpeg" };
        assert_eq!(
            (&object["ContentType"], &object["CacheControl"]),
            (&json!(kind), &json!("max-age=31536000")),
            "{key}"
        );
        assert!(object["ContentLength"].as_u64().unwrap() > 100, "{key}");
    }
}

fn check_notifications(notifications: &Value, photos: &[Photo]) {
    let notifications = notifications.as_array().unwrap();
    let mut images = BTreeSet::new();
    for notification in notifications {
        let body = &notification["body"];
        let id = body["fileNameWithoutExt"].as_str().unwrap();
        let [large, medium] = ["large", "medium"].map(|size| format!("processed/{id}_{size}.webp"));
        let mut expected = json!({
            "bucketName": "photos",
            "originalObjectKey": format!("originals/{id}.jpg"),
            "processedImages": [{ "key": large, "suffix": "large" }, { "key": medium, "suffix": "medium" }],
            "fileNameWithoutExt": id,
            "largeImageKey": large,
            "mediumImageKey": medium,
        });
        assert!(is_time(&json!({ "S": body["timestamp"] })), "{body}");
        expected["timestamp"] = body["timestamp"].clone();
        assert_eq!(*body, expected);
        let kind = &notification["attributes"]["eventType"];
        assert_eq!((&kind["DataType"], &kind["StringValue"]), (&json!("String"), &json!("thumbnail-completed")));
        images.insert(id.to_owned());
    }
    assert_eq!(images, photos.iter().map(|photo| image_of(photo).to_string()).collect());
    assert_eq!(notifications.len(), photos.len(), "one notification per photo");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_api_reads_the_rows_of_the_data_model() {
    check_queries("large").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_api_reads_original_keys_if_configured() {
    check_queries("original").await;
}
