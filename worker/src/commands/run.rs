//! `sparks run`

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use rustix::process::{Signal, set_parent_process_death_signal};
use sparks_config::Settings;
use sparks_engine::{Cpu, Pipeline, Publisher, Silent, Store, Unadopted};

use crate::{
    backend::Backend,
    cli::{Faces, Global, RunArgs},
    consumer::{Breaker, Consumer},
    inbox::Inbox,
    run::{Housekeeping, Service, Shutdown, Vitals},
    telemetry::{http::HealthServer, metrics::Metrics},
    wiring::{self, Senses, WrongUse},
};

/// Works off the queue until told to stop, and watches the inbox.
pub async fn run(global: &Global, args: RunArgs) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &flags(&args))?.settings;
    if args.end_with_parent {
        set_parent_process_death_signal(Some(Signal::TERM)).context("cannot end with whoever started this")?;
    }
    let cpu = Cpu::new(wiring::jobs(&settings));
    let metrics = Metrics::new();
    let senses = Senses::of(&settings, &cpu, &metrics).await?;
    let shutdown = Shutdown::listen().context("cannot listen for signals")?;
    let backend = wiring::open_or_create(&settings).await?;
    refuse_unadopted(&backend).await?;
    let index = wiring::index(&settings, &backend).await?;
    let pipeline =
        wiring::pipeline(&settings, &backend, cpu.clone(), &senses, Arc::clone(&index), &metrics).map(Arc::new)?;
    let breaker = Breaker::new(
        Arc::clone(&backend.objects),
        Arc::clone(&backend.store) as Arc<dyn Store>,
        publisher(&settings, &backend),
        senses,
    );
    let vitals = Arc::new(Vitals::new(metrics.clone(), breaker.clone()));
    let health = HealthServer::start(&settings.run.listen, Arc::clone(&vitals) as Arc<_>).await;
    let health = health.map_err(|e| WrongUse(format!("run.listen: cannot listen on {}: {e}", settings.run.listen)))?;

    let housekeeping = Housekeeping {
        queue: Arc::clone(&backend.queue),
        store: Arc::clone(&backend.store),
        register: wiring::register(&settings, &backend, Arc::clone(&index))?,
        index: Arc::clone(&index),
        pipeline: Arc::clone(&pipeline),
        consolidation: settings.faces.consolidation,
        clock: wiring::clock(),
        breaker: breaker.clone(),
        metrics: metrics.clone(),
    };
    let housekeeping = tokio::spawn(housekeeping.run());
    let inbox = if args.drain { None } else { inbox(&settings, &backend, &pipeline, &cpu)? };
    let inbox = inbox.map(|inbox| tokio::spawn(inbox.watch(shutdown.watch())));

    let service = Service {
        consumer: Consumer {
            breaker: Some(breaker.clone()),
            ..wiring::consumer(&settings, &backend, pipeline, &metrics)
        },
        breaker,
        slots: wiring::jobs(&settings),
        grace: Duration::from_secs(settings.run.grace_seconds),
        drain: args.drain,
        vitals,
    };
    tracing::info!(data = backend.place, health = %health.address(), slots = service.slots, "running");
    service.run(shutdown.watch()).await;
    shutdown.stop();
    housekeeping.abort();
    if let Some(inbox) = inbox {
        inbox.await?;
    }
    if let Err(error) = index.keep_snapshot(true).await {
        tracing::warn!(%error, "cannot keep a snapshot of the gallery: whoever starts next reads more");
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// A table with persons that the log does not know: a worker would found all of them again.
async fn refuse_unadopted(backend: &Backend) -> anyhow::Result<()> {
    match Unadopted::find(backend.store.as_ref()).await.context("cannot read the log")? {
        Some(unadopted) => Err(WrongUse(format!("{} ({}): {}", unadopted, backend.place, Unadopted::REMEDY)).into()),
        None => Ok(()),
    }
}

/// Who must be there for others to be told, if they are told anything.
fn publisher(settings: &Settings, backend: &Backend) -> Arc<dyn Publisher> {
    match settings.publish.thumbnails || settings.publish.events {
        true => Arc::clone(&backend.publisher),
        false => Arc::new(Silent),
    }
}

fn inbox(settings: &Settings, backend: &Backend, pipeline: &Arc<Pipeline>, cpu: &Cpu) -> anyhow::Result<Option<Inbox>> {
    let Some(data) = backend.folder.as_ref().filter(|_| settings.run.inbox) else { return Ok(None) };
    let folder = settings.data.join("inbox");
    let uploader = wiring::uploader(settings, data, pipeline)?;
    let inbox = Inbox::open(folder.clone(), uploader, cpu.clone());
    Ok(Some(inbox.with_context(|| format!("cannot watch {}", folder.display()))?))
}

fn flags(args: &RunArgs) -> Vec<(&'static str, &'static str, toml::Value)> {
    let faces = args.faces.map(|faces| ("faces.analyzer", "--faces", Faces::name(faces).into()));
    let jobs = args.jobs.map(|jobs| ("jobs", "--jobs", i64::from(jobs).into()));
    // Whoever waits for the end does not wait for messages.
    let poll = args.drain.then(|| ("aws.poll_seconds", "--drain", 1.into()));
    let listen = args.listen.as_ref().map(|listen| ("run.listen", "--listen", listen.clone().into()));
    [faces, jobs, poll, listen].into_iter().flatten().collect()
}
