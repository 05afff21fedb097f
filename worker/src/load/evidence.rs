//! What is there once all is settled.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use sparks_config::Settings;
use sparks_domain::{Difference, ImageId, Key, Merges, PersonId};
use sparks_engine::{DeadLetter, DeadLetters, FaceIndex, Filter, Objects, Query, Request, Store, understand};
use tokio::task::JoinSet;

use super::{Census, Logged, Made, Truth};
use crate::{backend::Backend, wiring};

/// What is there of a run.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// What the log says of each photo, by number.
    pub logged: Vec<Logged>,
    /// What is shown of each photo, by number.
    pub shown: Vec<Shown>,
    /// Who was joined since.
    pub merges: Merges,
    /// Crops of persons of ours that are missing.
    pub missing_crops: Vec<String>,
    /// What could not be done, as far as it is ours.
    pub letters: Vec<String>,
    /// Messages that are not settled.
    pub left: u64,
    /// Where the table is not what the log says, as far as it is ours.
    pub drift: Vec<String>,
    /// Everybody in the table, where nobody else works.
    pub census: Option<Census>,
    /// Messages sent, and messages that our own workers say are done, where nobody else works.
    pub deliveries: Option<(u64, u64)>,
    /// Workers that ended by themselves.
    pub deaths: Vec<String>,
    /// Why the check came too early, if it did.
    pub unfinished: Option<String>,
}

/// What is shown of a photo.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// The persons that its row names; nothing where there is no row.
    pub persons: Option<BTreeSet<String>>,
    /// The persons that it has tags of.
    pub tagged: BTreeSet<String>,
    /// The pictures that its row names.
    pub pictures: Vec<String>,
    /// Those of them that are missing or empty.
    pub missing: Vec<String>,
}

/// Questions that are asked at once.
const AT_ONCE: usize = 16;
const PAGE: usize = 100;

impl Evidence {
    /// Looks at everything that is ours. `progress` hears of each photo.
    pub async fn gather(
        settings: &Settings,
        backend: &Backend,
        truth: &Truth,
        logged: &[Logged],
        progress: impl Fn(),
    ) -> anyhow::Result<Self> {
        let mut shown = vec![Shown::default(); truth.photos().len()];
        let mut tasks = JoinSet::new();
        for (n, made) in truth.photos().iter().enumerate() {
            while tasks.len() >= AT_ONCE {
                keep(&mut shown, tasks.join_next().await, &progress)?;
            }
            let (store, objects) = (Arc::clone(&backend.store) as Arc<dyn Store>, Arc::clone(&backend.objects));
            let made = made.clone();
            tasks.spawn(async move { Ok((n, Shown::of(store.as_ref(), objects.as_ref(), &made).await?)) });
        }
        while !tasks.is_empty() {
            keep(&mut shown, tasks.join_next().await, &progress)?;
        }
        let index = wiring::index(settings, backend).await?;
        let merges = index.merges().as_ref().clone();
        let persons: BTreeSet<PersonId> =
            logged.iter().flat_map(|logged| logged.faces.iter().flatten().chain(&logged.founded)).copied().collect();
        let depth = backend.queue.depth().await?;
        let is_ours = |key: &Key| is_ours(key, truth, &persons);
        let drift = wiring::rebuilder(settings, backend).run(false, |_| ()).await?;
        let mut differences: Vec<String> =
            drift.differences.iter().filter(|found| is_ours(key(found))).map(ToString::to_string).collect();
        if drift.total > drift.differences.len() as u64 {
            differences.push(format!("{} differences are too many to tell whose they are", drift.total));
        }
        Ok(Self {
            logged: logged.to_vec(),
            shown,
            missing_crops: missing_crops(backend.objects.as_ref(), &merges, &persons).await?,
            letters: letters(backend.letters.as_ref(), &settings.bucket, truth).await?,
            left: depth.waiting + depth.leased + depth.delayed,
            drift: differences,
            merges,
            ..Self::default()
        })
    }
}

impl Shown {
    async fn of(store: &dyn Store, objects: &dyn Objects, made: &Made) -> anyhow::Result<Self> {
        let filter = Filter::Partition { pk: made.image.to_string(), sk_prefix: String::new() };
        let mut shown = Self::default();
        for row in store.query(&Query { filter, after: None, limit: PAGE, backwards: false }).await?.items {
            if let Some(person) = row.key.sk.strip_prefix("PERSON#") {
                shown.tagged.insert(person.to_owned());
                continue;
            }
            let persons =
                row.attributes.get("persons").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            shown.persons = Some(persons.iter().filter_map(Value::as_str).map(str::to_owned).collect());
            let images = row.attributes.get("images");
            let picture = |size: &str| images.and_then(|images| images.get(size)?.as_str()).map(str::to_owned);
            shown.pictures = ["large", "medium"].into_iter().filter_map(picture).collect();
        }
        for picture in &shown.pictures {
            if objects.head(picture).await?.is_none_or(|bytes| bytes == 0) {
                shown.missing.push(picture.clone());
            }
        }
        Ok(shown)
    }
}

type Looked = Result<anyhow::Result<(usize, Shown)>, tokio::task::JoinError>;

fn keep(shown: &mut [Shown], looked: Option<Looked>, progress: impl Fn()) -> anyhow::Result<()> {
    if let Some(looked) = looked {
        let (n, found) = looked??;
        shown[n] = found;
        progress();
    }
    Ok(())
}

async fn missing_crops(
    objects: &dyn Objects,
    merges: &Merges,
    persons: &BTreeSet<PersonId>,
) -> anyhow::Result<Vec<String>> {
    let mut missing = Vec::new();
    for person in persons.iter().filter(|person| !merges.is_absorbed(**person)) {
        let key = format!("persons/{person}.jpg");
        if objects.head(&key).await?.is_none_or(|bytes| bytes == 0) {
            missing.push(key);
        }
    }
    Ok(missing)
}

/// Dead letters about photos of ours.
async fn letters(letters: &dyn DeadLetters, bucket: &str, truth: &Truth) -> anyhow::Result<Vec<String>> {
    let (mut ours, mut after) = (Vec::new(), None);
    loop {
        let page = letters.list(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(ours) };
        after = Some(last.id.clone());
        let is_ours = |letter: &&DeadLetter| images(&letter.body, bucket).any(|image| truth.number(&image).is_some());
        ours.extend(page.iter().filter(is_ours).map(|letter| format!("{}: {}", letter.id.0, letter.reason)));
    }
}

/// The photos that a message is about.
fn images(body: &str, bucket: &str) -> impl Iterator<Item = ImageId> {
    understand(body, bucket).unwrap_or_default().into_iter().filter_map(|request| match request {
        Request::Photo(photo) => Some(photo.image),
        _ => None,
    })
}

fn key(difference: &Difference) -> &Key {
    match difference {
        Difference::Missing(key) | Difference::Stale(key) | Difference::Differs { key, .. } => key,
    }
}

fn is_ours(key: &Key, truth: &Truth, persons: &BTreeSet<PersonId>) -> bool {
    let image = key.pk.parse::<ImageId>().ok().and_then(|image| truth.number(&image));
    image.is_some() || key.sk.parse::<PersonId>().is_ok_and(|person| persons.contains(&person))
}
