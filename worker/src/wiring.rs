//! Builds the worker from the settings: the only module that names more than one adapter.

mod cloud;
mod face_backends;

use std::{
    path::PathBuf,
    sync::{Arc, Once},
    time::Duration,
};

use anyhow::Context;
use sparks_config::{Backend as BackendKind, Loaded, Settings, TaggingKey as TaggingSetting};
use sparks_domain::{Projection, TaggingKey};
use sparks_embedded::{Embedded, FolderConfig, PublishedRetention, QueueConfig};
use sparks_engine::{
    Clock, ConsolidationConfig, Consolidator, Consumer, ConsumerConfig, CpuPool, GalleryIndex, ImageProcessor,
    Pipeline, PipelineConfig, Ports, PublishConfig, Rebuilder, RetryPolicy, SnapshotStore, Store, SystemClock,
    VariantStore,
};
use sparks_media::{CropSpec, Fit, Limits, LocalImageProcessor, VariantSpec};

pub use cloud::{doctor, setup};
#[cfg(feature = "tools")]
pub use face_backends::embedders;
pub use face_backends::{
    FaceBackends, gallery_policy, local_analyzer_only, local_engine, pinecone, policy, rekognition_collection,
    signature_dimensions,
};

use crate::{
    backend::Backend, cli::Global, decoder::IsolatedImageProcessor, telemetry::metrics::Metrics, upload::Uploader,
};

/// Wrong usage of a command or a wrong setting. Ends the program with exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The actor written to every event.
pub const ACTOR: &str = concat!("sparks/", env!("CARGO_PKG_VERSION"));

/// Loads the settings. `flags` (key, name of the flag, value) take precedence over file and environment.
pub fn settings(global: &Global, flags: &[(&str, &str, toml::Value)]) -> Result<Loaded, sparks_config::ConfigError> {
    // Some commands load the settings more than once, but each deprecated key is logged once.
    static WARN: Once = Once::new();
    let data = global.data.as_ref().map(|data| ("data", "--data", data.display().to_string().into()));
    let flags: Vec<_> = data.into_iter().chain(flags.iter().cloned()).collect();
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let loaded = sparks_config::load(global.config.as_deref(), environment, &flags)?;
    WARN.call_once(|| {
        for deprecation in &loaded.deprecations {
            tracing::warn!(origin = %deprecation.origin, "{deprecation}");
        }
    });
    Ok(loaded)
}

/// Opens the backend that the settings name. Returns an error if it does not exist.
pub async fn open(settings: &Settings) -> anyhow::Result<Backend> {
    match settings.backend {
        BackendKind::Aws => cloud::open(settings).await,
        BackendKind::Embedded => {
            let folder = Embedded::open(&settings.data, folder_config(settings)).map_err(|error| match error {
                sparks_embedded::OpenError::Missing(_) => UsageError(error.to_string()).into(),
                error => anyhow::Error::new(error).context("failed to open the data folder"),
            })?;
            Ok(Backend::in_folder(Arc::new(folder), settings.data.display().to_string()))
        }
    }
}

/// Opens the backend that the settings name. Creates a missing data folder, but no cloud resources: `sparks setup` does.
pub async fn open_or_create(settings: &Settings) -> anyhow::Result<Backend> {
    match settings.backend {
        BackendKind::Aws => cloud::open(settings).await,
        BackendKind::Embedded => {
            let context = || "failed to open the data folder; choose another with --data";
            let folder = Embedded::open_or_create(&settings.data, folder_config(settings)).with_context(context)?;
            Ok(Backend::in_folder(Arc::new(folder), settings.data.display().to_string()))
        }
    }
}

/// Returns the trimmed text of a setting, or `None` if it is empty.
fn optional(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the configuration of a data folder.
fn folder_config(settings: &Settings) -> FolderConfig {
    let (queue, publish) = (&settings.queue, &settings.publish);
    // 0 means without limit.
    let days = |days: u64| (days > 0).then(|| Duration::from_secs(days * 86_400));
    FolderConfig {
        queue: QueueConfig {
            visibility_timeout: Duration::from_secs(queue.visibility_timeout_seconds),
            max_crashes: queue.max_crashes,
            dead_letter_retention: days(queue.dead_letter_retention_days),
        },
        published: PublishedRetention {
            max_file_bytes: (publish.max_file_mib > 0).then_some(publish.max_file_mib << 20),
            max_age: days(publish.retention_days),
        },
    }
}

/// Returns the number of photos processed at the same time.
pub fn jobs(settings: &Settings) -> usize {
    match settings.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    }
}

/// Loads the gallery of all known persons. In the cloud it starts from a snapshot, which saves reading the whole log.
pub async fn gallery_index(settings: &Settings, backend: &Backend) -> anyhow::Result<Arc<GalleryIndex>> {
    let (store, candidates) = (Arc::clone(&backend.store), settings.faces.candidates);
    let index = match optional(&settings.aws.gallery_snapshot).filter(|_| settings.backend == BackendKind::Aws) {
        Some(key) => {
            let snapshots = SnapshotStore::new(Arc::clone(&backend.objects), key);
            GalleryIndex::load_with_snapshot(store, candidates, snapshots).await?
        }
        None => GalleryIndex::load(store, candidates).await?,
    };
    Ok(Arc::new(index))
}

/// Builds the pipeline that processes a photo.
pub fn pipeline(
    settings: &Settings,
    backend: &Backend,
    cpu: CpuPool,
    face_backends: &FaceBackends,
    gallery: Arc<GalleryIndex>,
    metrics: &Metrics,
) -> Result<Pipeline, UsageError> {
    let index = face_backends.index(settings, backend, &cpu, gallery)?;
    let ports = Ports {
        objects: Arc::clone(&backend.objects),
        store: Arc::clone(&backend.store) as Arc<dyn Store>,
        image_processor: image_processor(settings),
        analyzer: Arc::clone(&face_backends.analyzer),
        index,
        publisher: Arc::clone(&backend.publisher),
        meter: Arc::new(metrics.clone()),
        clock: clock(),
    };
    let config = PipelineConfig {
        policy: policy(settings)?,
        projection: projection(settings),
        max_bytes: settings.limits.max_bytes,
        actor: ACTOR.to_owned(),
        bucket: settings.bucket.clone(),
        publish: PublishConfig { thumbnails: settings.publish.thumbnails, events: settings.publish.events },
    };
    Ok(Pipeline::new(ports, cpu, config))
}

/// Builds the consumer of the work queue.
pub fn consumer(settings: &Settings, backend: &Backend, pipeline: &Arc<Pipeline>) -> Consumer {
    let config = ConsumerConfig {
        visibility_timeout: Duration::from_secs(settings.queue.visibility_timeout_seconds),
        retry_policy: RetryPolicy {
            max_attempts: settings.queue.max_attempts,
            prerequisite_timeout: Duration::from_secs(settings.queue.prerequisite_timeout_seconds),
        },
    };
    Consumer::new(Arc::clone(&backend.queue), Arc::clone(pipeline), config)
}

/// Builds the uploader that stores files and rows as the platform does.
pub fn uploader(settings: &Settings, folder: &Arc<Embedded>, pipeline: &Arc<Pipeline>) -> Result<Uploader, UsageError> {
    Ok(Uploader {
        backend: Arc::clone(folder),
        bucket: settings.bucket.clone(),
        image_processor: pipeline.image_processor(),
        pipeline: Arc::clone(pipeline),
        clock: clock(),
        uploader: settings.uploader.parse().map_err(|error| UsageError(format!("uploader: {error}")))?,
        max_bytes: settings.limits.max_bytes,
    })
}

/// Builds the consolidator, which finds and merges persons that are the same.
pub fn consolidator(
    settings: &Settings,
    backend: &Backend,
    index: Arc<GalleryIndex>,
    pipeline: Arc<Pipeline>,
) -> Result<Consolidator, UsageError> {
    let config = ConsolidationConfig {
        policy: gallery_policy(settings)?,
        scale: sparks_faces::scale,
        projection: projection(settings),
        actor: ACTOR.to_owned(),
        // Global secondary indexes in the cloud are eventually consistent, by seconds; those of a data folder never lag.
        index_lag: match settings.backend {
            BackendKind::Aws => Duration::from_secs(settings.queue.visibility_timeout_seconds),
            BackendKind::Embedded => Duration::ZERO,
        },
        // A thread of its own, so that photos do not wait.
        cpu: CpuPool::new(1),
    };
    Ok(Consolidator::new(pipeline, Arc::clone(&backend.store), index, config))
}

/// Builds the rebuilder, which compares the table with the event log.
pub fn rebuilder(settings: &Settings, backend: &Backend) -> Rebuilder {
    Rebuilder::new(Arc::clone(&backend.store), clock(), projection(settings), ACTOR.to_owned())
}

/// Builds the access to the variants of photos.
pub fn variant_store(settings: &Settings, backend: &Backend) -> VariantStore {
    VariantStore {
        objects: Arc::clone(&backend.objects),
        image_processor: image_processor(settings),
        cpu: CpuPool::new(jobs(settings)),
        max_bytes: settings.limits.max_bytes,
    }
}

/// Returns the system clock.
pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// Builds the image processor: with decoder processes, unless `decoder.isolate` is off.
pub fn image_processor(settings: &Settings) -> Arc<dyn ImageProcessor> {
    match settings.decoder.isolate {
        true => Arc::new(IsolatedImageProcessor::new(local_image_processor(settings), settings)),
        false => Arc::new(local_image_processor(settings)),
    }
}

/// Builds the image processor that works inside this process.
pub fn local_image_processor(settings: &Settings) -> LocalImageProcessor {
    let limits = Limits {
        max_bytes: settings.limits.max_bytes,
        max_pixels: u64::from(settings.limits.max_megapixels) * 1_000_000,
        max_side: settings.limits.max_side,
        max_metadata_bytes: settings.limits.max_metadata_bytes,
        max_frames: settings.limits.max_frames,
        max_scans: settings.limits.max_scans,
        max_memory: settings.limits.max_memory_mib << 20,
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
    LocalImageProcessor::new(limits, variant(&settings.variants.large), variant(&settings.variants.medium), crop)
}

fn projection(settings: &Settings) -> Projection {
    let tagging_key = match settings.table.tagging_s3_key {
        TaggingSetting::Large => TaggingKey::Large,
        TaggingSetting::Original => TaggingKey::Original,
    };
    Projection { tagging_key }
}

/// Returns the absolute path of the data folder, which `sparks ingest` must not walk into.
pub fn data_folder(settings: &Settings) -> PathBuf {
    settings.data.canonicalize().unwrap_or_else(|_| settings.data.clone())
}
