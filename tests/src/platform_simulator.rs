//! A simulated platform that works beside the workers: random actions of its users, and a model of every row it wrote.

mod verification;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use fastrand::Rng;
use serde_json::{Value, json};
use sparks_domain::{Email, Key, Mutation, PersonId, Position, Presence, Timestamp};
use sparks_engine::{Clock, Commit, CommitError, Content, Filter, Maintenance, Objects, PutMode, Query, SystemClock};

use crate::{
    album::{Photo, photo},
    platform_actions::original_key,
    samples::{empty_commit, set},
    worker::image_of,
};

/// The backend that the simulated platform shares with the workers.
#[async_trait]
pub trait PlatformHost: Sync {
    /// The platform's table.
    fn store(&self) -> &dyn Maintenance;
    /// The platform's bucket.
    fn objects(&self) -> &dyn Objects;
    /// The bucket's name in messages.
    fn bucket(&self) -> &str;
    /// Replaces a whole row (`PutItem`).
    async fn put_row(&self, key: &Key, row: &Value);
    /// Sends a message.
    async fn send(&self, message: Value);
    /// Sends the notification that an object was created or removed, unless the bucket sends it itself.
    async fn notify_object_change(&self, key: &str, is_there: bool);
}

/// The upload time of every photo, earlier than every time that a worker writes.
const UPLOADED: &str = "2025-08-01T09:24:28.957Z";

/// The number of identities that are in most photos; each other identity is in one or two.
const REGULARS: usize = 4;

/// A photo and its row as the platform last wrote it.
struct Upload {
    photo: Photo,
    owner: usize,
    row: Value,
    is_overwritten: bool,
}

/// Performs random actions of three users and remembers what they wrote.
pub struct PlatformSimulator {
    random: Rng,
    uploads: BTreeMap<String, Upload>,
    deleted: BTreeMap<String, Upload>,
    next: u64,
    limits: BTreeMap<Email, i64>,
    users: BTreeMap<Email, Value>,
    profiled_users: BTreeSet<Email>,
    names: BTreeMap<PersonId, String>,
}

impl PlatformSimulator {
    /// Signs up three users. The seed determines every later action.
    pub async fn start(seed: u64, host: &dyn PlatformHost) -> Self {
        let mut platform = Self {
            random: Rng::with_seed(seed),
            uploads: BTreeMap::new(),
            deleted: BTreeMap::new(),
            next: 0,
            limits: BTreeMap::new(),
            users: BTreeMap::new(),
            profiled_users: BTreeSet::new(),
            names: BTreeMap::new(),
        };
        for n in 0..3 {
            platform.sign_up(n, host).await;
        }
        platform
    }

    /// Performs one random action.
    pub async fn perform_random_action(&mut self, host: &dyn PlatformHost) {
        match self.random.u32(0..100) {
            0..32 => self.upload(host).await,
            32..45 => self.replace_row(host).await,
            45..66 => self.edit_photo(host).await,
            66..72 => self.rename_person(host).await,
            72..79 => self.delete_directly(host).await,
            79..86 => self.delete_by_message(host).await,
            86..94 => self.change_limit(host).await,
            94..97 => self.edit_user(host).await,
            _ => self.upload_profile_picture(host).await,
        }
    }

    async fn sign_up(&mut self, n: usize, host: &dyn PlatformHost) {
        let email = email(n);
        let row = json!({ "entityType": "USER", "email": email, "username": format!("user {n}"), "karma": 7.25 });
        host.put_row(&Key::user(&email), &row).await;
        host.put_row(&Key::limit(&email), &json!({ "entityType": "DEFAULT_LIMIT", "limit": 500 })).await;
        self.users.insert(email.clone(), row);
        self.limits.insert(email, 500);
    }

    /// Stores the object and creates the row, in random order, and lowers the user's upload limit.
    async fn upload(&mut self, host: &dyn PlatformHost) {
        let (number, owner) = (self.next, self.random.usize(0..3));
        self.next += 1;
        let mut identities = vec![self.random.usize(0..REGULARS)];
        if self.random.u32(0..4) == 0 {
            identities.push(REGULARS + self.random.usize(0..8));
        }
        let photo = photo(number, &identities);
        let (image, user) = (image_of(&photo), email(owner));
        let row = json!({ "entityType": "IMAGE", "imageId": image, "assetType": "IMAGE", "uploadedBy": user,
            "uploaded_datetime": UPLOADED, "lastModified": UPLOADED, "s3Key": original_key(&photo), "persons": [],
            "tags": [], "description": "", "stars": 4.50 });
        let upload = Upload { photo, owner, row, is_overwritten: false };
        if self.random.bool() {
            put(host, &original_key(&upload.photo), upload.photo.jpeg.clone()).await;
            host.put_row(&upload.key(), &upload.row).await;
        } else {
            host.put_row(&upload.key(), &upload.row).await;
            put(host, &original_key(&upload.photo), upload.photo.jpeg.clone()).await;
        }
        self.add_to_limit(owner, -1, host).await;
        self.uploads.insert(image.to_string(), upload);
    }

    /// Replaces the whole row, which removes the worker's attributes. A message, sent at random, makes the worker write them again.
    async fn replace_row(&mut self, host: &dyn PlatformHost) {
        let (sends_message, bucket) = (self.random.bool(), host.bucket().to_owned());
        let Some(upload) = self.random_upload() else { return };
        upload.row["lastModified"] = edit_time().into();
        upload.is_overwritten = !sends_message;
        host.put_row(&upload.key(), &upload.row).await;
        if sends_message {
            host.send(json!({ "bucketName": bucket, "objectKey": original_key(&upload.photo) })).await;
        }
    }

    async fn edit_photo(&mut self, host: &dyn PlatformHost) {
        let (time, text) = (edit_time(), format!("word {}", self.random.u32(..)));
        let (tags, stars) = (self.random.bool(), self.random.u32(0..5));
        let Some(upload) = self.random_upload() else { return };
        let edited = match tags {
            true => json!({ "tags": [text, "sea"], "lastModified": time }),
            false => json!({ "description": text, "stars": stars, "lastModified": time }),
        };
        assert!(update(host, &upload.key(), edited.clone()).await, "the row of {} is missing", upload.key());
        apply_changes(&mut upload.row, &edited);
    }

    /// Renames a person who is in many photos.
    async fn rename_person(&mut self, host: &dyn PlatformHost) {
        let persons = query_all(host, Filter::EntityType("PERSON".into())).await;
        let mut known = Vec::new();
        for row in &persons {
            let Ok(person) = row["SK"].as_str().unwrap_or_default().parse::<PersonId>() else { continue };
            if query_all(host, Filter::EntityType(format!("TAGGING#{person}"))).await.len() >= 8 {
                known.push(person);
            }
        }
        let Some(person) = self.random.choice(known) else { return };
        let name = format!("Name {}", self.random.u32(..));
        if update(host, &Key::person(person), json!({ "displayName": name })).await {
            self.names.insert(person, name);
        }
    }

    /// Deletes a photo without the worker: objects, then rows, then credits the upload limit.
    async fn delete_directly(&mut self, host: &dyn PlatformHost) {
        let Some(upload) = self.take_random_upload() else { return };
        let image = image_of(&upload.photo);
        host.objects().delete(&original_key(&upload.photo)).await.expect("object is deleted");
        host.notify_object_change(&original_key(&upload.photo), false).await;
        for size in ["large", "medium"] {
            host.objects().delete(&format!("processed/{image}_{size}.webp")).await.expect("object is deleted");
        }
        let tags = query_all(host, Filter::Partition { pk: image.to_string(), sk_prefix: "PERSON#".into() }).await;
        let tags = tags.iter().filter_map(|row| Some(Key::new(row["PK"].as_str()?, row["SK"].as_str()?)));
        for key in [upload.key()].into_iter().chain(tags) {
            commit(host, Mutation::Delete { key }).await.expect("row is deleted");
        }
        self.add_to_limit(upload.owner, 1, host).await;
        self.deleted.insert(image.to_string(), upload);
    }

    /// Requests a deletion by message, perhaps twice. The worker must credit the upload limit once.
    async fn delete_by_message(&mut self, host: &dyn PlatformHost) {
        let Some(upload) = self.take_random_upload() else { return };
        let (image, user) = (image_of(&upload.photo), email(upload.owner));
        for _ in 0..self.random.u32(1..3) {
            host.send(json!({ "action": "delete", "imageId": image, "uploadedBy": user })).await;
        }
        *self.limits.entry(user).or_default() += 1;
        self.deleted.insert(image.to_string(), upload);
    }

    async fn change_limit(&mut self, host: &dyn PlatformHost) {
        let (owner, amount) = (self.random.usize(0..3), self.random.i64(-20..60));
        self.add_to_limit(owner, amount, host).await;
    }

    async fn edit_user(&mut self, host: &dyn PlatformHost) {
        let user = email(self.random.usize(0..3));
        let edited = json!({ "username": format!("user {}", self.random.u32(..)), "city": "Ulm" });
        assert!(update(host, &Key::user(&user), edited.clone()).await, "the row of {user} is missing");
        apply_changes(self.users.entry(user).or_default(), &edited);
    }

    /// Stores a profile picture of an identity that is in most photos.
    async fn upload_profile_picture(&mut self, host: &dyn PlatformHost) {
        let n = self.random.usize(0..3);
        let (user, number) = (email(n), 100_000 + self.next * 10 + n as u64);
        let key = format!("profiles/{user}/{number}.jpg");
        put(host, &key, photo(number, &[n]).jpeg).await;
        let profile = json!({ "profilePicture": key });
        assert!(update(host, &Key::user(&user), profile.clone()).await, "the row of {user} is missing");
        apply_changes(self.users.entry(user.clone()).or_default(), &profile);
        self.profiled_users.insert(user);
    }

    async fn add_to_limit(&mut self, owner: usize, amount: i64, host: &dyn PlatformHost) {
        let (user, attribute) = (email(owner), "limit".to_owned());
        commit(host, Mutation::Add { key: Key::limit(&user), attribute, amount }).await.expect("limit is changed");
        *self.limits.entry(user).or_default() += amount;
    }

    fn random_upload(&mut self) -> Option<&mut Upload> {
        let image = self.random.choice(self.uploads.keys().cloned().collect::<Vec<_>>())?;
        self.uploads.get_mut(&image)
    }

    fn take_random_upload(&mut self) -> Option<Upload> {
        let image = self.random.choice(self.uploads.keys().cloned().collect::<Vec<_>>())?;
        self.uploads.remove(&image)
    }
}

impl Upload {
    fn key(&self) -> Key {
        Key::image(&image_of(&self.photo), &email(self.owner))
    }
}

/// Returns a time ahead of the workers' clock, so that no edit is older than the row it changes.
fn edit_time() -> String {
    Timestamp::from_millis(SystemClock.now().as_millis() + 60_000).to_string()
}

fn email(n: usize) -> Email {
    format!("user{n}@example.org").parse().expect("valid email address")
}

fn apply_changes(row: &mut Value, changes: &Value) {
    let changes = changes.as_object().expect("attributes are an object").clone();
    row.as_object_mut().expect("row is an object").extend(changes);
}

async fn put(host: &dyn PlatformHost, key: &str, bytes: Vec<u8>) {
    let content = Content::image("image/jpeg");
    host.objects().put(key, bytes, content, PutMode::Replace).await.expect("object is stored");
    host.notify_object_change(key, true).await;
}

/// Changes attributes of a row. Returns false if the row does not exist.
async fn update(host: &dyn PlatformHost, key: &Key, changes: Value) -> bool {
    match commit(host, set(key, Presence::Required, changes)).await {
        Ok(()) => true,
        Err(CommitError::RowMissing(_)) => false,
        Err(error) => panic!("{key}: {error}"),
    }
}

async fn commit(host: &dyn PlatformHost, mutation: Mutation) -> Result<(), CommitError> {
    host.store().commit(&Commit { mutations: vec![mutation], ..empty_commit() }).await.map(drop)
}

async fn query_all(host: &dyn PlatformHost, filter: Filter) -> Vec<Value> {
    let query = Query { filter, after: None, limit: 10_000, backwards: false };
    let page = host.store().query(&query).await.expect("query succeeds");
    page.items.into_iter().map(sparks_domain::Item::into_json).collect()
}

/// Performs `actions` random actions while workers run, and waits for the workers every 50 actions so that neither side finishes
/// alone.
///
/// # Panics
///
/// Panics if the workers decide about too few photos in time.
pub async fn run_beside_workers(platform: &mut PlatformSimulator, host: &dyn PlatformHost, actions: usize) {
    for n in 0..actions {
        platform.perform_random_action(host).await;
        if n % 50 == 49 {
            let wanted = platform.next as usize / 2;
            let mut polls_left = 2_400;
            while count_decided(host).await < wanted {
                assert!(polls_left > 0, "only {} of {} photos were decided", count_decided(host).await, platform.next);
                polls_left -= 1;
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

/// Returns the seed from `SPARKS_TEST_SEED`, or a random one, and prints it so that a failing run can be repeated.
pub fn seed() -> u64 {
    let given = std::env::var("SPARKS_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("SPARKS_TEST_SEED={seed}");
    seed
}

/// Returns the number of photos that the log has a decision about. The platform may remove a photo before it is processed.
async fn count_decided(host: &dyn PlatformHost) -> usize {
    let log = host.store().read_log(&Position::default(), 1_000_000).await.expect("log is readable");
    log.iter().filter_map(|recorded| recorded.event.image()).collect::<BTreeSet<_>>().len()
}
