//! From settings to a running worker: the only place that names two adapters.

mod senses;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use sparks_aws::{
    Access, CloudPlatform, Connection, DynamoStore, Endpoints, Estate, Queues, S3Objects, Setup, SnsPublisher,
    SqsQueue, Tables, Timing, Topics,
};
use sparks_config::{Backend as Where, Loaded, Settings, TaggingKey as TaggingSetting};
use sparks_domain::{Projection, TaggingKey};
use sparks_embedded::{Embedded, Patience};
use sparks_engine::{
    Announcements, Clock, Cpu, Darkroom, GalleryIndex, Perseverance, Pipeline, Ports, Publisher, Rebuilder, Register,
    RegisterRules, Rules, Silent, Snapshots, Store, SystemClock,
};
use sparks_media::{CropSpec, Fit, Lab, Limits, VariantSpec};

pub use senses::{
    Senses, collection, dimensions, gallery_policy, local_engine, pinecone, policy, recogniser, without_service,
};

use crate::{
    backend::Backend, cli::Global, consumer::Consumer, darkroom::Isolated, telemetry::metrics::Metrics,
    upload::Uploader,
};

/// A call that cannot be meant like this. Exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub String);

/// Who the log says decided.
pub const ACTOR: &str = concat!("sparks/", env!("CARGO_PKG_VERSION"));

/// The settings, with these flags of a command over the rest.
pub fn settings(global: &Global, flags: &[(&str, &str, toml::Value)]) -> Result<Loaded, sparks_config::ConfigError> {
    let data = global.data.as_ref().map(|data| ("data", "--data", data.display().to_string().into()));
    let flags: Vec<_> = data.into_iter().chain(flags.iter().cloned()).collect();
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    sparks_config::load(global.config.as_deref(), environment, &flags)
}

/// Opens the backend that the settings name, which must be there.
pub async fn open(settings: &Settings) -> anyhow::Result<Backend> {
    match settings.backend {
        Where::Aws => open_cloud(settings).await,
        Where::Embedded => {
            let folder = Embedded::open(&settings.data, patience(settings)).map_err(|error| match error {
                sparks_embedded::OpenError::NotThere(_) => WrongUse(error.to_string()).into(),
                error => anyhow::Error::new(error).context("cannot open the data folder"),
            })?;
            Ok(Backend::of_folder(Arc::new(folder), settings.data.display().to_string()))
        }
    }
}

/// Opens the backend that the settings name. A data folder is made; what is in the cloud, `sparks setup` makes.
pub async fn open_or_create(settings: &Settings) -> anyhow::Result<Backend> {
    match settings.backend {
        Where::Aws => open_cloud(settings).await,
        Where::Embedded => {
            let context = || "cannot open the data folder (another one can be named with --data)";
            let folder = Embedded::open_or_create(&settings.data, patience(settings)).with_context(context)?;
            Ok(Backend::of_folder(Arc::new(folder), settings.data.display().to_string()))
        }
    }
}

async fn open_cloud(settings: &Settings) -> anyhow::Result<Backend> {
    let (aws, connection) = (&settings.aws, connection(settings).await);
    let lanes = u16::try_from(aws.lanes).unwrap_or(u16::MAX);
    let store = DynamoStore::open(&connection, tables(settings), lanes).await.context("cannot open the tables")?;
    let dead = SqsQueue::url(&connection, &aws.dead_letter_queue).await?;
    let waiting = match optional(&aws.waiting_queue) {
        Some(waiting) => Some(SqsQueue::url(&connection, &waiting).await?),
        None => None,
    };
    let queues = Queues { work: SqsQueue::url(&connection, &aws.queue).await?, waiting, dead };
    let timing = Timing {
        visibility: Duration::from_secs(settings.queue.visibility_seconds),
        poll: Duration::from_secs(aws.poll_seconds),
    };
    let topics = Topics {
        thumbnail_completed: topic(&connection, &aws.thumbnails_topic).await?,
        events: topic(&connection, &aws.events_topic).await?,
    };
    let queue = Arc::new(SqsQueue::new(&connection, queues, timing, settings.queue.max_deaths));
    let uploads = optional(&aws.uploads_topic);
    let platform = CloudPlatform::new(&connection, &settings.bucket, &aws.table, &aws.queue, uploads.as_deref());
    Ok(Backend {
        store: Arc::new(store),
        objects: Arc::new(S3Objects::new(&connection, &settings.bucket)),
        platform: Arc::new(platform),
        letters: Arc::clone(&queue) as Arc<_>,
        queue,
        publisher: Arc::new(SnsPublisher::new(&connection, topics)),
        place: format!("table {}", aws.table),
        folder: None,
    })
}

async fn topic(connection: &Connection, name: &str) -> anyhow::Result<Option<String>> {
    match optional(name) {
        Some(name) => Ok(Some(SnsPublisher::arn(connection, &name).await?)),
        None => Ok(None),
    }
}

/// The way to the cloud.
async fn connection(settings: &Settings) -> Connection {
    let aws = &settings.aws;
    let access = Access {
        region: optional(&aws.region),
        endpoint: optional(&aws.endpoint),
        endpoints: Endpoints {
            dynamodb: optional(&aws.endpoints.dynamodb),
            s3: optional(&aws.endpoints.s3),
            sqs: optional(&aws.endpoints.sqs),
            sns: optional(&aws.endpoints.sns),
            rekognition: optional(&aws.endpoints.rekognition),
            ssm: optional(&aws.endpoints.ssm),
            sts: optional(&aws.endpoints.sts),
        },
        keys: None,
    };
    Connection::open(&access).await
}

fn tables(settings: &Settings) -> Tables {
    let aws = &settings.aws;
    Tables { platform: aws.table.clone(), log: aws.log_table.clone(), faces: aws.faces_table.clone() }
}

/// Who makes what is missing in the cloud, and what that is.
pub async fn setup(settings: &Settings, dry_run: bool) -> (Setup, Estate) {
    (Setup::new(&connection(settings).await, dry_run), estate(settings))
}

/// Who looks at what is there in the cloud, and what that should be.
pub async fn doctor(settings: &Settings) -> (sparks_aws::Doctor, Estate) {
    let doctor = sparks_aws::Doctor::new(&connection(settings).await, settings.queue.max_receives);
    (doctor, estate(settings))
}

/// Everything in the cloud, by name.
fn estate(settings: &Settings) -> Estate {
    let aws = &settings.aws;
    Estate {
        tables: tables(settings),
        bucket: settings.bucket.clone(),
        prefixes: ["originals/", "profiles/", "profile-pictures/"].map(str::to_owned).to_vec(),
        work: aws.queue.clone(),
        waiting: optional(&aws.waiting_queue),
        dead: aws.dead_letter_queue.clone(),
        uploads: optional(&aws.uploads_topic),
        notices: [&aws.thumbnails_topic, &aws.events_topic].into_iter().filter_map(|name| optional(name)).collect(),
        visibility: settings.queue.visibility_seconds,
        max_deaths: settings.queue.max_deaths,
    }
}

/// A setting that is left empty says nothing.
fn optional(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn patience(settings: &Settings) -> Patience {
    let queue = &settings.queue;
    Patience { visibility: Duration::from_secs(queue.visibility_seconds), max_deaths: queue.max_deaths }
}

/// How many photos are worked on at once.
pub fn jobs(settings: &Settings) -> usize {
    match settings.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    }
}

/// Everybody known. A data folder tells that at once; what is far away, a snapshot tells.
pub async fn index(settings: &Settings, backend: &Backend) -> anyhow::Result<Arc<GalleryIndex>> {
    let (store, candidates) = (Arc::clone(&backend.store), settings.faces.candidates);
    let index = match optional(&settings.aws.gallery_snapshot).filter(|_| settings.backend == Where::Aws) {
        Some(key) => {
            let snapshots = Snapshots::new(Arc::clone(&backend.objects), key);
            GalleryIndex::resume(store, candidates, snapshots).await?
        }
        None => GalleryIndex::load(store, candidates).await?,
    };
    Ok(Arc::new(index))
}

/// The way of a photo over this backend.
pub fn pipeline(
    settings: &Settings,
    backend: &Backend,
    cpu: Cpu,
    senses: &Senses,
    gallery: Arc<GalleryIndex>,
    metrics: &Metrics,
) -> Result<Pipeline, WrongUse> {
    let index = senses.index(settings, backend, &cpu, gallery)?;
    let ports = Ports {
        objects: Arc::clone(&backend.objects),
        store: Arc::clone(&backend.store) as Arc<dyn Store>,
        darkroom: darkroom(settings),
        analyzer: Arc::clone(&senses.analyzer),
        index,
        publisher: Arc::clone(&backend.publisher),
        meter: Arc::new(metrics.clone()),
        clock: clock(),
    };
    let rules = Rules {
        policy: policy(settings)?,
        projection: projection(settings),
        max_bytes: settings.limits.max_bytes,
        actor: ACTOR.to_owned(),
        bucket: settings.bucket.clone(),
        announcements: Announcements { thumbnails: settings.publish.thumbnails, events: settings.publish.events },
    };
    Ok(Pipeline::new(ports, cpu, rules))
}

/// Who works messages off.
pub fn consumer(settings: &Settings, backend: &Backend, pipeline: Arc<Pipeline>, metrics: &Metrics) -> Consumer {
    Consumer {
        queue: Arc::clone(&backend.queue),
        pipeline,
        clock: clock(),
        breaker: None,
        metrics: metrics.clone(),
        bucket: settings.bucket.as_str().into(),
        visibility: Duration::from_secs(settings.queue.visibility_seconds),
        perseverance: Perseverance {
            max_receives: settings.queue.max_receives,
            max_wait: Duration::from_secs(settings.queue.wait_seconds),
        },
        line: Arc::default(),
    }
}

/// Who uploads files, as the platform does.
pub fn uploader(settings: &Settings, folder: &Arc<Embedded>, pipeline: &Arc<Pipeline>) -> Result<Uploader, WrongUse> {
    Ok(Uploader {
        backend: Arc::clone(folder),
        bucket: settings.bucket.clone(),
        darkroom: pipeline.darkroom(),
        pipeline: Arc::clone(pipeline),
        clock: clock(),
        uploader: settings.uploader.parse().map_err(|error| WrongUse(format!("uploader: {error}")))?,
        max_bytes: settings.limits.max_bytes,
    })
}

/// Who knows who is who.
pub fn register(settings: &Settings, backend: &Backend, index: Arc<GalleryIndex>) -> Result<Register, WrongUse> {
    let rules = RegisterRules {
        policy: gallery_policy(settings)?,
        scale: sparks_faces::scale,
        projection: projection(settings),
        actor: ACTOR.to_owned(),
        // A data folder's indexes are the table's own; those in the cloud come after it, by seconds at the most.
        lag: match settings.backend {
            Where::Aws => Duration::from_secs(settings.queue.visibility_seconds),
            Where::Embedded => Duration::ZERO,
        },
    };
    let (store, objects) = (Arc::clone(&backend.store), Arc::clone(&backend.objects));
    let publisher: Arc<dyn Publisher> =
        if settings.publish.events { Arc::clone(&backend.publisher) } else { Arc::new(Silent) };
    Ok(Register::new(store, objects, index, publisher, clock(), rules))
}

/// Who compares the table with the log.
pub fn rebuilder(settings: &Settings, backend: &Backend) -> Rebuilder {
    Rebuilder::new(Arc::clone(&backend.store), clock(), projection(settings), ACTOR.to_owned())
}

/// The machine's clock.
pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// Who makes the pictures: in processes of their own, unless the operator wants none.
pub fn darkroom(settings: &Settings) -> Arc<dyn Darkroom> {
    match settings.darkroom.isolate {
        true => Arc::new(Isolated::new(lab(settings), settings)),
        false => Arc::new(lab(settings)),
    }
}

/// Who makes the pictures, wherever that is.
pub fn lab(settings: &Settings) -> Lab {
    let limits = Limits {
        max_bytes: settings.limits.max_bytes,
        max_pixels: u64::from(settings.limits.max_megapixels) * 1_000_000,
        max_side: settings.limits.max_side,
        max_metadata_bytes: settings.limits.max_metadata_bytes,
        max_frames: settings.limits.max_frames,
        max_scans: settings.limits.max_scans,
        max_memory: settings.limits.max_memory_mb << 20,
    };
    let variant = |v: &sparks_config::Variant| VariantSpec {
        fit: match v.fit {
            sparks_config::Fit::Inside => Fit::Inside,
            sparks_config::Fit::Cover => Fit::Cover,
        },
        width: v.width,
        height: v.height,
        quality: v.quality as f32,
        method: v.method,
        sharp_yuv: v.sharp_yuv,
    };
    let crop = &settings.crop;
    let crop = CropSpec { padding: crop.padding as f32, side: crop.side, quality: crop.quality };
    Lab::new(limits, variant(&settings.variants.large), variant(&settings.variants.medium), crop)
}

fn projection(settings: &Settings) -> Projection {
    let tagging_key = match settings.table.tagging_s3_key {
        TaggingSetting::Large => TaggingKey::Large,
        TaggingSetting::Original => TaggingKey::Original,
    };
    Projection { tagging_key }
}

/// The folder itself, for whoever walks around it.
pub fn data_folder(settings: &Settings) -> PathBuf {
    settings.data.canonicalize().unwrap_or_else(|_| settings.data.clone())
}
