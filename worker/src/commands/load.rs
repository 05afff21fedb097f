//! `sparks load`

use std::{fs, future::pending, path::Path, process::ExitCode, sync::Arc};

use anyhow::Context;
use indicatif::ProgressBar;
use sparks_config::{Analyzer, Backend as Where, Settings};
use sparks_domain::Email;
use sparks_engine::{Filter, Query};

use crate::{
    backend::Backend,
    cli::{Global, LoadArgs, Through},
    load::{
        Census, Check, Ended, Evidence, Figures, Fleet, Ledger, Orders, Outcome, Plan, Report, Sample, Scratch, Sender,
        Teller, Truth, Watch, Wish, machine,
    },
    output::{Output, progress},
    run::Shutdown,
    wiring::{self, WrongUse},
};

/// Looks in a row that must find an empty queue. Those of the cloud count a little behind.
const QUIET_FOLDER: u32 = 3;
const QUIET_CLOUD: u32 = 8;

/// Uploads, watches, checks and tells.
pub async fn run(global: &Global, args: LoadArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let now = wiring::clock().now();
    let name = format!("load-{:x}-{}", now.as_millis(), std::process::id());
    let (scratch, settings) = place(global, &args, &name)?;
    let uploader: Email = format!("{name}@sparks.invalid").parse()?;
    if let Some(report) = &args.report {
        can_write(report).map_err(|error| WrongUse(format!("--report: {error:#}")))?;
    }
    let shutdown = Shutdown::listen().context("cannot listen for signals")?;
    let backend = wiring::open_or_create(&settings).await?;
    leave_others_alone(&args, &backend).await?;
    let plan = Arc::new(Plan::of(&wish(&args)));
    let truth = Arc::new(Truth::of(&plan, uploader, now));
    let sender = sender(&args, &settings, &backend, &plan, &truth).await?;

    let mut stop = shutdown.watch();
    let bar = progress(truth.photos().len() as u64, "originals");
    let prepared = tokio::select! {
        prepared = sender.prepare(|| bar.inc(1)) => Some(prepared),
        _ = stop.changed() => None,
    };
    bar.finish_and_clear();
    prepared.context("interrupted before anything was sent")??;

    let fleet = Fleet::start(&orders(global, &settings, &args, scratch.as_ref())).await?;
    let (store, queue) = (Arc::clone(&backend.store), Arc::clone(&backend.queue));
    let mut watch = Watch::start(store, queue, Arc::clone(&truth), Arc::clone(&sender.ledger), fleet).await?;
    let bar = progress(truth.photos().len() as u64, "photos");
    let ended = {
        let quiet = if backend.folder.is_some() { QUIET_FOLDER } else { QUIET_CLOUD };
        let messages = plan.messages() as u64;
        let watching = watch.until_settled(quiet, args.timeout.0, messages, |sample| show(&bar, sample, messages));
        // Whoever watches knows when it is over; sending ends it only where it fails.
        let sending = async {
            sender.send().await?;
            pending::<anyhow::Result<Ended>>().await
        };
        tokio::select! {
            ended = watching => Some(ended?),
            failed = sending => Some(failed?),
            _ = stop.changed() => None,
        }
    };
    bar.finish_and_clear();
    let report = report(&args, &settings, &backend, &sender, &mut watch, ended, scratch.is_some()).await?;
    report.print(output)?;
    if let Some(file) = &args.report {
        fs::write(file, report.to_html()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(scratch) = scratch.as_ref().filter(|_| args.keep && !output.is_json()) {
        output.line(format!("kept in {}", scratch.path().display()))?;
    }
    Ok(if report.outcome.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where it happens: in a folder of its own, unless another place is named.
fn place(global: &Global, args: &LoadArgs, name: &str) -> anyhow::Result<(Option<Scratch>, Settings)> {
    // Only what reads markers sees these faces: that, or a Rekognition that does.
    let which = match wiring::settings(global, &[])?.settings.faces.analyzer {
        Analyzer::Rekognition => "faces.companion",
        Analyzer::Off | Analyzer::Synthetic | Analyzer::Local => "faces.analyzer",
    };
    let synthetic = (which, "load", toml::Value::from("synthetic"));
    let settings = wiring::settings(global, std::slice::from_ref(&synthetic))?.settings;
    if settings.backend == Where::Aws || global.data.is_some() {
        return Ok((None, settings));
    }
    if args.workers == 0 {
        let why = "--workers 0 needs --data: nobody else works in a folder that is made for this test";
        return Err(WrongUse(why.into()).into());
    }
    let scratch = Scratch::make(&format!("sparks-{name}"), args.keep)?;
    let data = ("data", "load", toml::Value::from(scratch.path().display().to_string()));
    let settings = wiring::settings(global, &[synthetic, data])?.settings;
    Ok((Some(scratch), settings))
}

fn wish(args: &LoadArgs) -> Wish {
    Wish {
        photos: args.photos as usize,
        identities: args.identities as usize,
        faces_per_photo: usize::from(args.faces_per_photo),
        duplicates: args.duplicates,
        corrupt: args.corrupt,
        shuffle: args.shuffle,
        seed: args.seed,
    }
}

/// Synthetic persons stay: among those of others only if somebody says so.
async fn leave_others_alone(args: &LoadArgs, backend: &Backend) -> anyhow::Result<()> {
    let query = Query { filter: Filter::EntityType("PERSON".into()), after: None, limit: 1, backwards: false };
    if args.yes || backend.store.query(&query).await?.items.is_empty() {
        return Ok(());
    }
    let why = "has persons already, and synthetic ones would stay among them";
    Err(WrongUse(format!("{} {why}: name another place, or say --yes", backend.place)).into())
}

async fn sender(
    args: &LoadArgs,
    settings: &Settings,
    backend: &Backend,
    plan: &Arc<Plan>,
    truth: &Arc<Truth>,
) -> anyhow::Result<Sender> {
    let bucket_tells = backend.platform.tells().await.context("cannot tell whom the bucket tells")?;
    let teller = match args.through {
        Some(Through::Queue) => Teller::Sender,
        Some(Through::Bucket) if !bucket_tells => {
            let bucket = &settings.bucket;
            let why = "does not tell the queue of new originals; `sparks setup` sees to that";
            return Err(WrongUse(format!("--through bucket: the bucket {bucket} {why}")).into());
        }
        None if !bucket_tells => Teller::Sender,
        _ => Teller::Bucket,
    };
    Ok(Sender {
        platform: Arc::clone(&backend.platform),
        queue: Arc::clone(&backend.queue),
        clock: wiring::clock(),
        bucket: settings.bucket.clone(),
        teller,
        bucket_tells,
        rate: args.rate,
        ledger: Arc::new(Ledger::new(truth.photos().len())),
        plan: Arc::clone(plan),
        truth: Arc::clone(truth),
    })
}

fn orders(global: &Global, settings: &Settings, args: &LoadArgs, scratch: Option<&Scratch>) -> Orders {
    Orders {
        workers: usize::from(args.workers),
        data: scratch.map(|scratch| scratch.path().to_owned()).or_else(|| global.data.clone()),
        config: global.config.clone(),
        faces: match settings.faces.analyzer {
            Analyzer::Rekognition => "SPARKS_FACES_COMPANION",
            Analyzer::Off | Analyzer::Synthetic | Analyzer::Local => "SPARKS_FACES_ANALYZER",
        },
        jobs: args.jobs,
    }
}

fn show(bar: &ProgressBar, sample: &Sample, messages: u64) {
    bar.set_message(format!("sent {}/{messages}, decided", sample.told));
    bar.set_position(sample.settled as u64);
}

/// Stops everybody, then looks at what there is.
async fn report(
    args: &LoadArgs,
    settings: &Settings,
    backend: &Backend,
    sender: &Sender,
    watch: &mut Watch,
    ended: Option<Ended>,
    alone: bool,
) -> anyhow::Result<Report> {
    watch.look().await?;
    let (counts, usage, deaths) = (watch.fleet.counts(), watch.fleet.usage(), watch.fleet.deaths());
    watch.fleet.stop().await;
    let ours = args.workers > 0;
    let figures =
        Figures::of(&sender.ledger.told(), watch.logged(), watch.samples(), ours.then(|| counts.clone()), usage);
    let photos = sender.truth.photos().len();
    let unfinished = match ended {
        Some(Ended::Settled) => None,
        Some(Ended::Stuck) => Some("nothing happened any more (--timeout)".to_owned()),
        Some(Ended::Deserted) => Some("all workers have ended".to_owned()),
        None => Some(format!("interrupted when {} of {photos} photos were decided", figures.settled)),
    };
    let outcome = match ended {
        // What is not done yet is not wrong.
        None => {
            let failures = unfinished.into_iter().collect();
            Outcome(vec![Check { name: "everything came to its end", about: String::new(), failures }])
        }
        Some(_) => {
            let bar = progress(photos as u64, "checking");
            let evidence = Evidence::gather(settings, backend, &sender.truth, watch.logged(), || bar.inc(1)).await?;
            bar.finish_and_clear();
            let deliveries = alone.then(|| (sender.ledger.messages(), counts.done));
            let census = if alone { Some(Census::take(backend.store.as_ref()).await?) } else { None };
            Outcome::of(&sender.truth, &Evidence { deliveries, census, deaths, unfinished, ..evidence })
        }
    };
    Ok(Report { settings: asked_for(args, backend, sender), machine: machine(), figures, outcome })
}

fn asked_for(args: &LoadArgs, backend: &Backend, sender: &Sender) -> Vec<(&'static str, String)> {
    let plan = &sender.plan;
    let damaged = plan.damage.iter().flatten().count();
    let order = if args.shuffle { format!("shuffled, {} before their row", plan.early) } else { "as uploaded".into() };
    let teller = if sender.teller == Teller::Bucket { "the bucket" } else { "this command" };
    let workers = if args.workers == 0 { "elsewhere".into() } else { args.workers.to_string() };
    let jobs = args.jobs.map(|jobs| ("jobs a worker", jobs.to_string()));
    let rows = [
        ("photos", args.photos.to_string()),
        ("identities", args.identities.to_string()),
        ("faces a photo", format!("up to {}", args.faces_per_photo)),
        ("messages", plan.messages().to_string()),
        ("duplicates", format!("{} ({})", plan.duplicates, args.duplicates)),
        ("damaged files", format!("{damaged} ({})", args.corrupt)),
        ("order", order),
        ("rate", args.rate.map_or_else(|| "as quickly as possible".into(), |rate| rate.to_string())),
        ("seed", args.seed.to_string()),
        ("workers", workers),
        ("place", backend.place.clone()),
        ("told by", teller.to_owned()),
        ("uploader", sender.truth.uploader.to_string()),
    ];
    rows.into_iter().chain(jobs).collect()
}

/// Whether a report can be written, asked before hours of work. What is there stays until there is another.
fn can_write(file: &Path) -> anyhow::Result<()> {
    let is_new = fs::symlink_metadata(file).is_err();
    let opened = fs::OpenOptions::new().append(true).create(true).open(file);
    opened.with_context(|| format!("cannot write {}", file.display()))?;
    if is_new {
        fs::remove_file(file)?;
    }
    Ok(())
}
