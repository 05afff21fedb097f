//! The state of the backend after a run.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use sparks_domain::{Difference, ImageId, Key, Merges, PersonId, object_keys};
use sparks_engine::{
    DeadLetter, DeadLetters, Drift, Filter, Maintenance, Objects, Query, Queue, Request, Store, parse_message,
};
use tokio::task::JoinSet;

use super::{ExpectedPhoto, GroundTruth, PersonRows, PhotoEvents};

/// The state of the backend after a run. Unless noted otherwise, only what belongs to the run.
#[derive(Debug, Clone, Default)]
pub struct FinalState {
    /// The events of each photo, by number.
    pub events: Vec<PhotoEvents>,
    /// The rows and variants of each photo, by number.
    pub rows: Vec<StoredPhotoRows>,
    /// All merges.
    pub merges: Merges,
    /// Keys of missing crops.
    pub missing_crops: Vec<String>,
    /// Dead letters with their reasons.
    pub dead_letters: Vec<String>,
    /// Messages in the queue, including those of others.
    pub queue_depth: u64,
    /// Differences between the table and the event log.
    pub drift: Vec<String>,
    /// All PERSON rows, if the run has the backend to itself.
    pub person_rows: Option<PersonRows>,
    /// Messages sent and messages processed, if the run has the backend to itself.
    pub deliveries: Option<(u64, u64)>,
    /// Workers that exited unexpectedly.
    pub worker_exits: Vec<String>,
    /// Why the run is incomplete, if it is.
    pub incomplete: Option<String>,
}

/// The rows and variants of a photo.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredPhotoRows {
    /// The persons listed in the IMAGE row; `None` if there is no row.
    pub persons: Option<BTreeSet<String>>,
    /// The persons that have a tag row.
    pub tagged: BTreeSet<String>,
    /// The keys of the variants listed in the IMAGE row.
    pub variants: Vec<String>,
    /// Those of them that are missing or empty.
    pub missing: Vec<String>,
}

/// The backend whose state is collected.
pub struct StateSource<'a> {
    /// The table.
    pub store: &'a Arc<dyn Maintenance>,
    /// The bucket.
    pub objects: &'a Arc<dyn Objects>,
    /// The queue.
    pub queue: &'a dyn Queue,
    /// The dead letters.
    pub dead_letters: &'a dyn DeadLetters,
    /// The bucket's name in messages.
    pub bucket: &'a str,
    /// All merges of the event log.
    pub merges: Merges,
    /// The differences between the table and the event log.
    pub drift: Drift,
}

/// Concurrent requests.
const CONCURRENCY: usize = 16;
const PAGE_SIZE: usize = 100;

impl FinalState {
    /// Collects the state of all photos and persons of the run. Calls `on_photo` for each photo.
    pub async fn collect(
        source: StateSource<'_>,
        truth: &GroundTruth,
        events: &[PhotoEvents],
        on_photo: impl Fn(),
    ) -> anyhow::Result<Self> {
        let StateSource { store, objects, queue, dead_letters, bucket, merges, drift } = source;
        let rows = photo_rows(store, objects, truth, on_photo).await?;
        let persons: BTreeSet<PersonId> = events
            .iter()
            .flat_map(|events| events.faces.iter().flatten().chain(&events.new_persons))
            .copied()
            .collect();
        let depth = queue.depth().await?;
        let is_ours = |found: &&Difference| belongs_to_run(key(found), truth, &persons);
        let mut differences: Vec<String> = drift.differences.iter().filter(is_ours).map(ToString::to_string).collect();
        if drift.total > drift.differences.len() as u64 {
            differences.push(format!("{} differences, too many to attribute them to this run", drift.total));
        }
        Ok(Self {
            events: events.to_vec(),
            rows,
            missing_crops: missing_crops(objects.as_ref(), &merges, &persons).await?,
            dead_letters: list_dead_letters(dead_letters, bucket, truth).await?,
            queue_depth: depth.waiting + depth.leased + depth.delayed,
            drift: differences,
            merges,
            ..Self::default()
        })
    }
}

async fn photo_rows(
    store: &Arc<dyn Maintenance>,
    objects: &Arc<dyn Objects>,
    truth: &GroundTruth,
    on_photo: impl Fn(),
) -> anyhow::Result<Vec<StoredPhotoRows>> {
    let mut rows = vec![StoredPhotoRows::default(); truth.photos().len()];
    let mut tasks: JoinSet<anyhow::Result<(usize, StoredPhotoRows)>> = JoinSet::new();
    for (n, photo) in truth.photos().iter().enumerate() {
        if tasks.len() >= CONCURRENCY
            && let Some(read) = tasks.join_next().await
        {
            let (n, found) = read??;
            rows[n] = found;
            on_photo();
        }
        let (store, objects) = (Arc::clone(store) as Arc<dyn Store>, Arc::clone(objects));
        let photo = photo.clone();
        tasks.spawn(async move { Ok((n, StoredPhotoRows::read(store.as_ref(), objects.as_ref(), &photo).await?)) });
    }
    while let Some(read) = tasks.join_next().await {
        let (n, found) = read??;
        rows[n] = found;
        on_photo();
    }
    Ok(rows)
}

impl StoredPhotoRows {
    async fn read(store: &dyn Store, objects: &dyn Objects, photo: &ExpectedPhoto) -> anyhow::Result<Self> {
        let filter = Filter::Partition { pk: photo.image.to_string(), sk_prefix: String::new() };
        let mut rows = Self::default();
        for row in store.query(&Query { filter, after: None, limit: PAGE_SIZE, backwards: false }).await?.items {
            if let Some(person) = row.key.sk.strip_prefix("PERSON#") {
                rows.tagged.insert(person.to_owned());
                continue;
            }
            let persons =
                row.attributes.get("persons").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            rows.persons = Some(persons.iter().filter_map(Value::as_str).map(str::to_owned).collect());
            let images = row.attributes.get("images");
            let variant = |size: &str| images.and_then(|images| images.get(size)?.as_str()).map(str::to_owned);
            rows.variants = object_keys::VARIANT_NAMES.into_iter().filter_map(variant).collect();
        }
        for key in &rows.variants {
            if is_missing(objects, key).await? {
                rows.missing.push(key.clone());
            }
        }
        Ok(rows)
    }
}

/// Returns whether the object does not exist or is empty.
async fn is_missing(objects: &dyn Objects, key: &str) -> anyhow::Result<bool> {
    Ok(objects.head(key).await?.is_none_or(|info| info.bytes == 0))
}

async fn missing_crops(
    objects: &dyn Objects,
    merges: &Merges,
    persons: &BTreeSet<PersonId>,
) -> anyhow::Result<Vec<String>> {
    let mut missing = Vec::new();
    for person in persons.iter().filter(|person| !merges.is_absorbed(**person)) {
        let key = object_keys::crop(*person);
        if is_missing(objects, &key).await? {
            missing.push(key);
        }
    }
    Ok(missing)
}

/// Returns the dead letters about photos of the run.
async fn list_dead_letters(
    dead_letters: &dyn DeadLetters,
    bucket: &str,
    truth: &GroundTruth,
) -> anyhow::Result<Vec<String>> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = dead_letters.list(after.as_ref(), PAGE_SIZE).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.id.clone());
        let is_ours = |letter: &&DeadLetter| images(&letter.body, bucket).any(|image| truth.number(&image).is_some());
        found.extend(page.iter().filter(is_ours).map(|letter| format!("{}: {}", letter.id.0, letter.reason)));
    }
}

/// Returns the photos that a message is about.
fn images(body: &str, bucket: &str) -> impl Iterator<Item = ImageId> {
    parse_message(body, bucket).unwrap_or_default().into_iter().filter_map(|request| match request {
        Request::Photo(photo) => Some(photo.image),
        _ => None,
    })
}

fn key(difference: &Difference) -> &Key {
    match difference {
        Difference::Missing(key) | Difference::Stale(key) | Difference::Differs { key, .. } => key,
    }
}

fn belongs_to_run(key: &Key, truth: &GroundTruth, persons: &BTreeSet<PersonId>) -> bool {
    let image = key.pk.parse::<ImageId>().ok().and_then(|image| truth.number(&image));
    image.is_some() || key.sk.parse::<PersonId>().is_ok_and(|person| persons.contains(&person))
}
