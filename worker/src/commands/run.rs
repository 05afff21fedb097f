//! `sparks run`

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use rustix::process::{Signal, set_parent_process_death_signal};
use sparks_config::Settings;
use sparks_engine::{CpuPool, Pipeline, Queue, ReceiveLoop, UnadoptedTable};

use crate::{
    backend::Backend,
    cli::{AnalyzerArg, Global, RunArgs},
    inbox::Inbox,
    run::{Announcer, BackgroundTasks, Shutdown, WorkerHealth},
    telemetry::{http::HealthServer, metrics::Metrics},
    wiring::{self, FaceBackends, UsageError},
};

/// The delay before an empty queue is polled again.
const POLL: Duration = Duration::from_millis(200);

/// Processes messages from the queue until stopped, and files from the inbox.
pub async fn run(global: &Global, args: RunArgs) -> anyhow::Result<ExitCode> {
    let mut settings = wiring::settings(global, &flags(&args))?.settings;
    if args.end_with_parent {
        set_parent_process_death_signal(Some(Signal::TERM)).context("failed to set the parent death signal")?;
    }
    let cpu = CpuPool::new(wiring::jobs(&settings));
    let metrics = Metrics::new();
    let face_backends = FaceBackends::from_settings(&settings, &cpu, &metrics).await?;
    let shutdown = Shutdown::listen().context("failed to listen for signals")?;
    let backend = wiring::open_or_create(&settings).await?;
    check_adopted(&backend).await?;
    let index = wiring::gallery_index(&settings, &backend).await?;
    let face_backends = face_backends.for_enrolled_persons(&mut settings, &index, &cpu, &metrics).await?;
    let pipeline = wiring::pipeline(&settings, &backend, cpu.clone(), &face_backends, Arc::clone(&index), &metrics)
        .map(Arc::new)?;
    let consumer = wiring::consumer(&settings, &backend, &pipeline);
    let drained = args.drain.then(|| Arc::clone(&backend.queue) as Arc<dyn Queue>);
    let health = Arc::new(WorkerHealth::new(metrics.clone(), consumer.breaker().clone(), drained));
    let server = HealthServer::start(&settings.run.listen, Arc::clone(&health) as Arc<_>).await;
    let server = server.map_err(|e| {
        UsageError(format!(
            "run.listen: failed to listen on {}: {e}; set run.listen to HOST:PORT of this machine",
            settings.run.listen
        ))
    })?;

    let background_tasks = BackgroundTasks {
        queue: Arc::clone(&backend.queue),
        store: Arc::clone(&backend.store),
        consolidator: wiring::consolidator(&settings, &backend, Arc::clone(&index), Arc::clone(&pipeline))?,
        index: Arc::clone(&index),
        pipeline: Arc::clone(&pipeline),
        consolidation: settings.faces.consolidation,
        clock: wiring::clock(),
        breaker: consumer.breaker().clone(),
        metrics: metrics.clone(),
    };
    let background_tasks = tokio::spawn(background_tasks.run());
    let announcer = Announcer::new(Arc::clone(&backend.workers), wiring::clock());
    let announcing = tokio::spawn(announcer.clone().run());
    let inbox = if args.drain { None } else { inbox(&settings, &backend, &pipeline, &cpu)? };
    let inbox = inbox.map(|inbox| tokio::spawn(inbox.watch(shutdown.watch())));

    let receive_loop = ReceiveLoop {
        consumer,
        slots: wiring::jobs(&settings),
        poll: POLL,
        grace: Duration::from_secs(settings.run.grace_seconds),
        max_outage: None,
        observer: health,
    };
    tracing::info!(data = backend.location, health = %server.address(), slots = receive_loop.slots, "worker started");
    receive_loop.run(shutdown.watch()).await?;
    shutdown.stop();
    background_tasks.abort();
    announcing.abort();
    announcer.withdraw().await;
    if let Some(inbox) = inbox {
        inbox.await?;
    }
    if let Err(error) = index.save_snapshot(true).await {
        tracing::warn!(%error, "failed to save the gallery snapshot; the next start reads more of the log");
    }
    tracing::info!("worker stopped");
    Ok(ExitCode::SUCCESS)
}

/// Refuses a table with persons that the event log does not contain: the worker would create all of them again.
async fn check_adopted(backend: &Backend) -> anyhow::Result<()> {
    match UnadoptedTable::find(backend.store.as_ref()).await.context("failed to read the event log")? {
        Some(unadopted) => {
            Err(UsageError(format!("{} ({}): {}", unadopted, backend.location, UnadoptedTable::REMEDY)).into())
        }
        None => Ok(()),
    }
}

fn inbox(
    settings: &Settings,
    backend: &Backend,
    pipeline: &Arc<Pipeline>,
    cpu: &CpuPool,
) -> anyhow::Result<Option<Inbox>> {
    let Some(data) = backend.folder.as_ref().filter(|_| settings.run.inbox) else { return Ok(None) };
    let folder = settings.data.join("inbox");
    let uploader = wiring::uploader(settings, data, pipeline)?;
    let inbox = Inbox::open(folder.clone(), uploader, cpu.clone());
    Ok(Some(inbox.with_context(|| format!("failed to watch {}", folder.display()))?))
}

fn flags(args: &RunArgs) -> Vec<(&'static str, &'static str, toml::Value)> {
    let faces = args.faces.map(|faces| ("faces.analyzer", "--faces", AnalyzerArg::name(faces).into()));
    let jobs = args.jobs.map(|jobs| ("jobs", "--jobs", i64::from(jobs).into()));
    // Short polling, so that an empty queue is noticed soon.
    let poll = args.drain.then(|| ("aws.poll_seconds", "--drain", 1.into()));
    let listen = args.listen.as_ref().map(|listen| ("run.listen", "--listen", listen.clone().into()));
    [faces, jobs, poll, listen].into_iter().flatten().collect()
}
