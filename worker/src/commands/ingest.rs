//! `sparks ingest`

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use async_trait::async_trait;
use sparks_config::{Consolidation, Settings};
use sparks_domain::Email;
use sparks_embedded::Embedded;
use sparks_engine::{CpuPool, FaceSearch, LoopObserver, Pipeline, ReceiveLoop, SettledMessage};
use tokio::sync::watch;

use crate::{
    backend::Backend,
    cli::{AnalyzerArg, Global, IngestArgs},
    ingest::{IngestBatch, IngestSummary, discover, submit_files},
    output::{Output, progress_bar},
    telemetry::metrics::Metrics,
    wiring::{self, FaceBackends, UsageError},
};

/// The delay before an empty queue is polled again: files are submitted while others are processed.
const POLL: Duration = Duration::from_millis(40);
/// The longest outage, such as a full disk, that a call waits for.
const MAX_OUTAGE: Duration = Duration::from_secs(60);

/// Uploads the files as the platform would and processes them, until every file of this call is settled, possibly by
/// another process.
pub async fn run(global: &Global, args: IngestArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let mut settings = wiring::settings(global, &flags(&args))?.settings;
    let _: Email = settings.uploader.parse().map_err(|error| UsageError(format!("uploader: {error}")))?;
    if let Some(missing) = args.paths.iter().find(|path| !path.exists() && !path.is_symlink()) {
        return Err(UsageError(format!("{}: no such file or folder", missing.display())).into());
    }
    let cpu = CpuPool::new(wiring::jobs(&settings));
    let metrics = Metrics::new();
    let face_backends = FaceBackends::from_settings(&settings, &cpu, &metrics).await?;
    let backend = wiring::open_or_create(&settings).await?;
    let instead = "in the cloud, upload files to the bucket and add their IMAGE rows, as the platform does";
    let folder = backend.require_folder("`sparks ingest`", instead)?;
    let index = wiring::gallery_index(&settings, &backend).await?;
    let face_backends = face_backends.for_enrolled_persons(&mut settings, &index, &cpu, &metrics).await?;
    let pipeline = Arc::new(wiring::pipeline(&settings, &backend, cpu, &face_backends, Arc::clone(&index), &metrics)?);
    let consolidator = wiring::consolidator(&settings, &backend, Arc::clone(&index), Arc::clone(&pipeline))?;
    consolidator.apply_merges(|_| ()).await?; // finishes an interrupted call
    let image_processor = wiring::image_processor(&settings);
    let discovered = discover(&args.paths, &wiring::data_folder(&settings), image_processor.as_ref());

    let batch = Arc::new(IngestBatch::new(progress_bar(discovered.files.len() as u64, "photos")));
    for (path, reason) in discovered.unreadable {
        batch.add_failed(path, reason);
    }
    let uploader = wiring::uploader(&settings, folder, &pipeline)?;
    let ((), processed) = tokio::join!(
        submit_files(&uploader, discovered.files, &batch),
        process_queue(&settings, &backend, folder, &pipeline, &batch)
    );
    processed?;

    drop(uploader);
    let consolidation = consolidator.run_to_end(settings.faces.consolidation != Consolidation::Suggest).await?;
    let batch = Arc::into_inner(batch)
        .ok_or_else(|| anyhow::anyhow!("failed to collect the results: a task is still running"))?;
    let (photos, failed) = batch.into_parts();
    let mut summary = IngestSummary::of(photos, failed, folder, &index.merges()).await?;
    summary.consolidation = consolidation;
    summary.ignored = discovered.ignored;
    summary.conflicts = pipeline.conflicts();
    summary.took = started.elapsed();
    summary.print(output)?;
    Ok(if summary.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn flags(args: &IngestArgs) -> Vec<(&'static str, &'static str, toml::Value)> {
    let faces = args.faces.map(|faces| ("faces.analyzer", "--faces", AnalyzerArg::name(faces).into()));
    let uploader = args.uploader.as_ref().map(|email| ("uploader", "--uploader", email.clone().into()));
    let jobs = args.jobs.map(|jobs| ("jobs", "--jobs", i64::from(jobs).into()));
    [faces, uploader, jobs].into_iter().flatten().collect()
}

/// Processes messages until the batch is settled and no message is visible.
async fn process_queue(
    settings: &Settings,
    backend: &Backend,
    folder: &Arc<Embedded>,
    pipeline: &Arc<Pipeline>,
    batch: &Arc<IngestBatch>,
) -> anyhow::Result<()> {
    let receive_loop = ReceiveLoop {
        consumer: wiring::consumer(settings, backend, pipeline),
        slots: wiring::jobs(settings),
        poll: POLL,
        grace: Duration::MAX,
        max_outage: Some(MAX_OUTAGE),
        observer: Arc::new(BatchObserver { folder: Arc::clone(folder), batch: Arc::clone(batch) }),
    };
    // Nothing stops it: a signal ends the process, and the next call continues.
    let (_running, stop) = watch::channel(false);
    receive_loop.run(stop).await.context("photos that are not processed stay in the queue; run the command again")
}

/// Ends the receive loop when all messages of the batch are settled, here or by another process.
struct BatchObserver {
    folder: Arc<Embedded>,
    batch: Arc<IngestBatch>,
}

#[async_trait]
impl LoopObserver for BatchObserver {
    fn message_settled(&self, message: &SettledMessage) {
        if message.is_final {
            self.batch.message_settled(&message.id);
        }
    }

    async fn is_done(&self) -> bool {
        match self.batch.refresh(&self.folder.queue).await {
            Ok(()) => self.batch.is_settled(),
            Err(error) => {
                tracing::warn!(%error, "failed to read the queue");
                false
            }
        }
    }
}
