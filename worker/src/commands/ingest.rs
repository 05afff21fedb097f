//! `sparks ingest`

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use sparks_config::{Consolidation, Settings};
use sparks_domain::Email;
use sparks_embedded::Embedded;
use sparks_engine::{Cpu, FaceIndex, Pipeline};

use crate::{
    backend::Backend,
    cli::{Faces, Global, IngestArgs},
    consumer::Worked,
    ingest::{Album, Submitter, Summary, discover},
    output::{Output, progress},
    telemetry::metrics::Metrics,
    wiring::{self, Senses, WrongUse},
};

/// Acts as the platform, which uploads, and as the worker, until every file of this call is settled, by whichever process.
pub async fn run(global: &Global, args: IngestArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let settings = wiring::settings(global, &flags(&args))?.settings;
    let _: Email = settings.uploader.parse().map_err(|error| WrongUse(format!("uploader: {error}")))?;
    if let Some(missing) = args.paths.iter().find(|path| !path.exists() && !path.is_symlink()) {
        return Err(WrongUse(format!("{}: there is no such file or folder", missing.display())).into());
    }
    let cpu = Cpu::new(wiring::jobs(&settings));
    let metrics = Metrics::new();
    let senses = Senses::of(&settings, &cpu, &metrics).await?;
    let backend = wiring::open_or_create(&settings).await?;
    let instead = "in the cloud, put files into the bucket, and the IMAGE rows into the table, as the platform does";
    let folder = backend.folder("`sparks ingest`", instead)?;
    let index = wiring::index(&settings, &backend).await?;
    let register = wiring::register(&settings, &backend, Arc::clone(&index))?;
    register.follow(|_| ()).await?; // what an interrupted call left undone
    let pipeline = Arc::new(wiring::pipeline(&settings, &backend, cpu, &senses, Arc::clone(&index), &metrics)?);
    let darkroom = wiring::darkroom(&settings);
    let found = discover(&args.paths, &wiring::data_folder(&settings), darkroom.as_ref());

    let album = Arc::new(Album::new(progress(found.files.len() as u64, "photos")));
    for (path, reason) in found.unreadable {
        album.failed(path, reason);
    }
    let uploader = wiring::uploader(&settings, folder, &pipeline)?;
    let submitter = Submitter { uploader };
    let ((), worked) = tokio::join!(
        submitter.submit_all(found.files, &album),
        work(&settings, &backend, folder, &pipeline, &metrics, &album)
    );
    worked?;

    drop(submitter);
    let mut tidied = register.tidy(settings.faces.consolidation != Consolidation::Suggest).await?;
    tidied.recognised += register.review().await?;
    let album = Arc::into_inner(album).ok_or_else(|| anyhow::anyhow!("a worker is still running"))?;
    let (photos, failed) = album.into_parts();
    let mut summary = Summary::of(photos, failed, folder, &index.merges()).await?;
    summary.tidied = tidied;
    summary.ignored = found.ignored;
    summary.conflicts = pipeline.conflicts();
    summary.took = started.elapsed();
    summary.print(output)?;
    Ok(if summary.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn flags(args: &IngestArgs) -> Vec<(&'static str, &'static str, toml::Value)> {
    let faces = args.faces.map(|faces| ("faces.analyzer", "--faces", Faces::name(faces).into()));
    let uploader = args.uploader.as_ref().map(|email| ("uploader", "--uploader", email.clone().into()));
    let jobs = args.jobs.map(|jobs| ("jobs", "--jobs", i64::from(jobs).into()));
    [faces, uploader, jobs].into_iter().flatten().collect()
}

/// Works on whatever is in the queue, several photos at once, until the album is settled and nothing is left to do.
async fn work(
    settings: &Settings,
    backend: &Backend,
    folder: &Arc<Embedded>,
    pipeline: &Arc<Pipeline>,
    metrics: &Metrics,
    album: &Arc<Album>,
) -> anyhow::Result<()> {
    let consumer = wiring::consumer(settings, backend, Arc::clone(pipeline), metrics);
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..wiring::jobs(settings) {
        let (consumer, folder, album) = (consumer.clone(), Arc::clone(folder), Arc::clone(album));
        workers.spawn(async move {
            loop {
                match consumer.receive(1).await?.pop() {
                    Some(raw) => {
                        if let Worked { message, settled: true } = consumer.work_off(raw).await? {
                            album.message_settled(&message);
                        }
                    }
                    None => {
                        album.look_again(&folder.queue).await?;
                        if album.is_settled() {
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
