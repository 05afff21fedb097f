//! `sparks ingest`

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use sparks_config::{Consolidation, Settings};
use sparks_domain::Email;
use sparks_embedded::Embedded;
use sparks_engine::{CpuPool, FaceSearch, Pipeline};

use crate::{
    backend::Backend,
    cli::{AnalyzerArg, Global, IngestArgs},
    consumer::SettledMessage,
    ingest::{IngestBatch, IngestSummary, discover, submit_files},
    output::{Output, progress_bar},
    telemetry::metrics::Metrics,
    wiring::{self, FaceBackends, UsageError},
};

/// Uploads the files as the platform would and processes them, until every file of this call is settled, possibly by
/// another process.
pub async fn run(global: &Global, args: IngestArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let settings = wiring::settings(global, &flags(&args))?.settings;
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
    let consolidator = wiring::consolidator(&settings, &backend, Arc::clone(&index))?;
    consolidator.apply_merges(|_| ()).await?; // finishes an interrupted call
    let pipeline = Arc::new(wiring::pipeline(&settings, &backend, cpu, &face_backends, Arc::clone(&index), &metrics)?);
    let image_processor = wiring::image_processor(&settings);
    let discovered = discover(&args.paths, &wiring::data_folder(&settings), image_processor.as_ref());

    let batch = Arc::new(IngestBatch::new(progress_bar(discovered.files.len() as u64, "photos")));
    for (path, reason) in discovered.unreadable {
        batch.add_failed(path, reason);
    }
    let uploader = wiring::uploader(&settings, folder, &pipeline)?;
    let ((), processed) = tokio::join!(
        submit_files(&uploader, discovered.files, &batch),
        process_queue(&settings, &backend, folder, &pipeline, &metrics, &batch)
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

/// Processes messages, several at the same time, until the batch is settled and the queue is empty.
async fn process_queue(
    settings: &Settings,
    backend: &Backend,
    folder: &Arc<Embedded>,
    pipeline: &Arc<Pipeline>,
    metrics: &Metrics,
    batch: &Arc<IngestBatch>,
) -> anyhow::Result<()> {
    let consumer = wiring::consumer(settings, backend, Arc::clone(pipeline), metrics);
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..wiring::jobs(settings) {
        let (consumer, folder, batch) = (consumer.clone(), Arc::clone(folder), Arc::clone(batch));
        workers.spawn(async move {
            loop {
                match consumer.receive(1).await?.pop() {
                    Some(message) => {
                        if let SettledMessage { id, is_final: true } = consumer.handle(message).await? {
                            batch.message_settled(&id);
                        }
                    }
                    None => {
                        batch.refresh(&folder.queue).await?;
                        if batch.is_settled() {
                            return Ok::<(), sparks_engine::QueueError>(());
                        }
                        tokio::time::sleep(Duration::from_millis(40)).await;
                    }
                }
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}
