//! The platform at work beside ours: a script of what it and its users do, and a model of all that they wrote.

mod check;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use fastrand::Rng;
use serde_json::{Value, json};
use sparks_domain::{Email, Key, Mutation, PersonId, Position, Presence, Timestamp};
use sparks_engine::{Clock, Commit, CommitError, Content, Filter, Maintenance, Objects, PutMode, Query, SystemClock};

use crate::{
    album::{Photo, photo},
    platform::original,
    samples::{nothing, set},
    worker::image_of,
};

/// Where the platform works.
#[async_trait]
pub trait Host: Sync {
    /// Its table.
    fn store(&self) -> &dyn Maintenance;
    /// Its bucket.
    fn objects(&self) -> &dyn Objects;
    /// What messages call the bucket.
    fn bucket(&self) -> &str;
    /// Puts a row whole, over whatever is there.
    async fn put_row(&self, key: &Key, row: &Value);
    /// Sends a message.
    async fn send(&self, message: Value);
    /// The bucket tells that an object is there, or is gone, if it does not tell by itself.
    async fn tell(&self, key: &str, is_there: bool);
}

/// When everything was uploaded: before anything that we write.
const UPLOADED: &str = "2025-08-01T09:24:28.957Z";

/// Those who are in most photos. Others are in one or two.
const REGULARS: usize = 4;

/// A photo as the platform knows it.
struct Upload {
    photo: Photo,
    owner: usize,
    row: Value,
    is_wiped: bool,
}

/// What the platform and its users have written.
pub struct Platform {
    random: Rng,
    uploads: BTreeMap<String, Upload>,
    deleted: BTreeMap<String, Upload>,
    next: u64,
    limits: BTreeMap<Email, i64>,
    users: BTreeMap<Email, Value>,
    pictured: BTreeSet<Email>,
    names: BTreeMap<PersonId, String>,
}

impl Platform {
    /// A platform with three users who do as this seed says.
    pub async fn open(seed: u64, host: &dyn Host) -> Self {
        let mut platform = Self {
            random: Rng::with_seed(seed),
            uploads: BTreeMap::new(),
            deleted: BTreeMap::new(),
            next: 0,
            limits: BTreeMap::new(),
            users: BTreeMap::new(),
            pictured: BTreeSet::new(),
            names: BTreeMap::new(),
        };
        for n in 0..3 {
            platform.sign_up(n, host).await;
        }
        platform
    }

    /// One thing that somebody does.
    pub async fn act(&mut self, host: &dyn Host) {
        match self.random.u32(0..100) {
            0..32 => self.upload(host).await,
            32..45 => self.complete(host).await,
            45..66 => self.edit(host).await,
            66..72 => self.rename(host).await,
            72..79 => self.delete_oneself(host).await,
            79..86 => self.ask_to_delete(host).await,
            86..94 => self.change_limit(host).await,
            94..97 => self.edit_user(host).await,
            _ => self.show_oneself(host).await,
        }
    }

    async fn sign_up(&mut self, n: usize, host: &dyn Host) {
        let email = email(n);
        let row = json!({ "entityType": "USER", "email": email, "username": format!("user {n}"), "karma": 7.25 });
        host.put_row(&Key::user(&email), &row).await;
        host.put_row(&Key::limit(&email), &json!({ "entityType": "DEFAULT_LIMIT", "limit": 500 })).await;
        self.users.insert(email.clone(), row);
        self.limits.insert(email, 500);
    }

    /// The client stores the object and the API makes the row, in this order or the other; the limit goes down.
    async fn upload(&mut self, host: &dyn Host) {
        let (number, owner) = (self.next, self.random.usize(0..3));
        self.next += 1;
        let mut cast = vec![self.random.usize(0..REGULARS)];
        if self.random.u32(0..4) == 0 {
            cast.push(REGULARS + self.random.usize(0..8));
        }
        let photo = photo(number, &cast);
        let (image, user) = (image_of(&photo), email(owner));
        let row = json!({ "entityType": "IMAGE", "imageId": image, "assetType": "IMAGE", "uploadedBy": user,
            "uploaded_datetime": UPLOADED, "lastModified": UPLOADED, "s3Key": original(&photo), "persons": [],
            "tags": [], "description": "", "stars": 4.50 });
        let upload = Upload { photo, owner, row, is_wiped: false };
        if self.random.bool() {
            put(host, &original(&upload.photo), upload.photo.jpeg.clone()).await;
            host.put_row(&upload.key(), &upload.row).await;
        } else {
            host.put_row(&upload.key(), &upload.row).await;
            put(host, &original(&upload.photo), upload.photo.jpeg.clone()).await;
        }
        self.add_to_limit(owner, -1, host).await;
        self.uploads.insert(image.to_string(), upload);
    }

    /// The API puts the whole row again, and may say so: then it is asserted what is ours there.
    async fn complete(&mut self, host: &dyn Host) {
        let (tells, bucket) = (self.random.bool(), host.bucket().to_owned());
        let Some(upload) = self.any_upload() else { return };
        upload.row["lastModified"] = edited().into();
        upload.is_wiped = !tells;
        host.put_row(&upload.key(), &upload.row).await;
        if tells {
            host.send(json!({ "bucketName": bucket, "objectKey": original(&upload.photo) })).await;
        }
    }

    async fn edit(&mut self, host: &dyn Host) {
        let (time, word) = (edited(), format!("word {}", self.random.u32(..)));
        let (tags, stars) = (self.random.bool(), self.random.u32(0..5));
        let Some(upload) = self.any_upload() else { return };
        let edited = match tags {
            true => json!({ "tags": [word, "sea"], "lastModified": time }),
            false => json!({ "description": word, "stars": stars, "lastModified": time }),
        };
        assert!(update(host, &upload.key(), edited.clone()).await, "the row of {} is gone", upload.key());
        merge(&mut upload.row, &edited);
    }

    /// Somebody names a person who is in many photos.
    async fn rename(&mut self, host: &dyn Host) {
        let persons = all(host, Filter::EntityType("PERSON".into())).await;
        let mut known = Vec::new();
        for row in &persons {
            let Ok(person) = row["SK"].as_str().unwrap_or_default().parse::<PersonId>() else { continue };
            if all(host, Filter::EntityType(format!("TAGGING#{person}"))).await.len() >= 8 {
                known.push(person);
            }
        }
        let Some(person) = self.random.choice(known) else { return };
        let name = format!("Name {}", self.random.u32(..));
        if update(host, &Key::person(person), json!({ "displayName": name })).await {
            self.names.insert(person, name);
        }
    }

    /// The platform deletes in its own way: objects, then rows, and it gives the upload back itself.
    async fn delete_oneself(&mut self, host: &dyn Host) {
        let Some(upload) = self.take_upload() else { return };
        let image = image_of(&upload.photo);
        host.objects().delete(&original(&upload.photo)).await.expect("a deletion");
        host.tell(&original(&upload.photo), false).await;
        for size in ["large", "medium"] {
            host.objects().delete(&format!("processed/{image}_{size}.webp")).await.expect("a deletion");
        }
        let tags = all(host, Filter::Partition { pk: image.to_string(), sk_prefix: "PERSON#".into() }).await;
        let tags = tags.iter().filter_map(|row| Some(Key::new(row["PK"].as_str()?, row["SK"].as_str()?)));
        for key in [upload.key()].into_iter().chain(tags) {
            commit(host, Mutation::Delete { key }).await.expect("a deleted row");
        }
        self.add_to_limit(upload.owner, 1, host).await;
        self.deleted.insert(image.to_string(), upload);
    }

    /// A user deletes their photo by message, perhaps twice: we give the upload back, once.
    async fn ask_to_delete(&mut self, host: &dyn Host) {
        let Some(upload) = self.take_upload() else { return };
        let (image, user) = (image_of(&upload.photo), email(upload.owner));
        for _ in 0..self.random.u32(1..3) {
            host.send(json!({ "action": "delete", "imageId": image, "uploadedBy": user })).await;
        }
        *self.limits.entry(user).or_default() += 1;
        self.deleted.insert(image.to_string(), upload);
    }

    async fn change_limit(&mut self, host: &dyn Host) {
        let (owner, amount) = (self.random.usize(0..3), self.random.i64(-20..60));
        self.add_to_limit(owner, amount, host).await;
    }

    async fn edit_user(&mut self, host: &dyn Host) {
        let user = email(self.random.usize(0..3));
        let edited = json!({ "username": format!("user {}", self.random.u32(..)), "city": "Ulm" });
        assert!(update(host, &Key::user(&user), edited.clone()).await, "{user} is gone");
        merge(self.users.entry(user).or_default(), &edited);
    }

    /// A user stores a picture of themselves: one of those who are in most photos.
    async fn show_oneself(&mut self, host: &dyn Host) {
        let n = self.random.usize(0..3);
        let (user, number) = (email(n), 100_000 + self.next * 10 + n as u64);
        let key = format!("profiles/{user}/{number}.jpg");
        put(host, &key, photo(number, &[n]).jpeg).await;
        let picture = json!({ "profilePicture": key });
        assert!(update(host, &Key::user(&user), picture.clone()).await, "{user} is gone");
        merge(self.users.entry(user.clone()).or_default(), &picture);
        self.pictured.insert(user);
    }

    async fn add_to_limit(&mut self, owner: usize, amount: i64, host: &dyn Host) {
        let (user, attribute) = (email(owner), "limit".to_owned());
        commit(host, Mutation::Add { key: Key::limit(&user), attribute, amount }).await.expect("a limit");
        *self.limits.entry(user).or_default() += amount;
    }

    fn any_upload(&mut self) -> Option<&mut Upload> {
        let image = self.random.choice(self.uploads.keys().cloned().collect::<Vec<_>>())?;
        self.uploads.get_mut(&image)
    }

    fn take_upload(&mut self) -> Option<Upload> {
        let image = self.random.choice(self.uploads.keys().cloned().collect::<Vec<_>>())?;
        self.uploads.remove(&image)
    }
}

impl Upload {
    fn key(&self) -> Key {
        Key::image(&image_of(&self.photo), &email(self.owner))
    }
}

/// When something is edited. The platform's clock is ahead of ours, so that no edit is older than what it edits.
fn edited() -> String {
    Timestamp::from_millis(SystemClock.now().as_millis() + 60_000).to_string()
}

fn email(n: usize) -> Email {
    format!("user{n}@example.org").parse().expect("an address")
}

fn merge(row: &mut Value, changes: &Value) {
    let changes = changes.as_object().expect("attributes").clone();
    row.as_object_mut().expect("a row").extend(changes);
}

async fn put(host: &dyn Host, key: &str, bytes: Vec<u8>) {
    let content = Content::picture("image/jpeg");
    host.objects().put(key, bytes, content, PutMode::Replace).await.expect("a stored object");
    host.tell(key, true).await;
}

/// Gives attributes of a row other values; false where the row is gone.
async fn update(host: &dyn Host, key: &Key, changes: Value) -> bool {
    match commit(host, set(key, Presence::Required, changes)).await {
        Ok(()) => true,
        Err(CommitError::RowMissing(_)) => false,
        Err(error) => panic!("{key}: {error}"),
    }
}

async fn commit(host: &dyn Host, mutation: Mutation) -> Result<(), CommitError> {
    host.store().commit(&Commit { mutations: vec![mutation], ..nothing() }).await.map(drop)
}

async fn all(host: &dyn Host, filter: Filter) -> Vec<Value> {
    let query = Query { filter, after: None, limit: 10_000, backwards: false };
    let page = host.store().query(&query).await.expect("rows");
    page.items.into_iter().map(sparks_domain::Item::into_json).collect()
}

/// Lets the platform do so many things, workers being at work; they are waited for now and then, so that both go on together.
///
/// # Panics
///
/// Where the workers get nowhere.
pub async fn work_together(platform: &mut Platform, host: &dyn Host, acts: usize) {
    for n in 0..acts {
        platform.act(host).await;
        if n % 50 == 49 {
            let wanted = platform.next as usize / 2;
            let mut patience = 2_400;
            while decided(host).await < wanted {
                assert!(patience > 0, "only {} of {} photos are decided", decided(host).await, platform.next);
                patience -= 1;
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

/// The seed of a scenario: another one each time, and the same where `SPARKS_TEST_SEED` says so.
pub fn seed() -> u64 {
    let given = std::env::var("SPARKS_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("SPARKS_TEST_SEED={seed}");
    seed
}

/// How many photos the log has decided.
async fn decided(host: &dyn Host) -> usize {
    let log = host.store().read_log(&Position::default(), 1_000_000).await.expect("the log");
    crate::snapshot::count(&log, "PhotoProcessed")
}
