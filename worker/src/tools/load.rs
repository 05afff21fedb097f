//! `sparks load`

use std::{fs, future::pending, path::Path, process::ExitCode, sync::Arc};

use anyhow::Context;
use indicatif::ProgressBar;
use sparks_config::{Analyzer, Backend as BackendKind, Settings};
use sparks_domain::Email;
use sparks_engine::{FaceSearch, Filter, Query};
use sparks_load::{
    CheckReport, EndReason, FinalState, GroundTruth, LoadReport, LoadSpec, Measurements, Monitor, MonitorTarget,
    NotificationSource, PersonRows, Plan, ReportEntry, Sample, SendProgress, Sender, StateSource, TemporaryFolder,
    WorkerOptions, WorkerPool, describe_machine,
};

use super::{
    cli::{LoadArgs, NotificationRoute},
    load_output,
};
use crate::{
    backend::Backend,
    cli::Global,
    output::{Output, progress_bar},
    rate::Rate,
    run::Shutdown,
    wiring::{self, UsageError},
};

/// Consecutive samples that must find an empty queue. More for SQS, whose counts are eventually consistent.
const STABLE_SAMPLES_FOLDER: u32 = 3;
const STABLE_SAMPLES_CLOUD: u32 = 8;

/// A run: its options and where it happens.
struct LoadTest {
    args: LoadArgs,
    settings: Settings,
    backend: Backend,
    /// The temporary data folder. If there is one, nothing else uses the backend.
    folder: Option<TemporaryFolder>,
}

/// Uploads photos, waits until workers have processed them, checks the result and prints a report.
pub async fn run(global: &Global, args: LoadArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let now = wiring::clock().now();
    let name = format!("load-{:x}-{}", now.as_millis(), std::process::id());
    let (folder, settings) = select_backend(global, &args, &name)?;
    let uploader: Email = format!("{name}@sparks.invalid").parse()?;
    if let Some(report) = &args.report {
        check_writable(report).map_err(|error| UsageError(format!("--report: {error:#}")))?;
    }
    let shutdown = Shutdown::listen().context("failed to listen for signals")?;
    let backend = wiring::open_or_create(&settings).await?;
    check_no_persons(&args, &backend).await?;
    let test = LoadTest { args, settings, backend, folder };
    let plan = Arc::new(Plan::of(&test.spec()));
    let truth = Arc::new(GroundTruth::of(&plan, uploader, now));
    let sender = test.sender(&plan, &truth).await?;

    let mut stop = shutdown.watch();
    let bar = progress_bar(truth.photos().len() as u64, "originals");
    let prepared = tokio::select! {
        prepared = sender.prepare(|| bar.inc(1)) => Some(prepared),
        _ = stop.changed() => None,
    };
    bar.finish_and_clear();
    prepared.context("interrupted before anything was sent")??;

    let workers = WorkerPool::start(&test.worker_options(global)).await?;
    let (store, queue) = (Arc::clone(&test.backend.store), Arc::clone(&test.backend.queue));
    let mut monitor = Monitor::start(store, queue, Arc::clone(&truth), Arc::clone(&sender.progress), workers).await?;
    let bar = progress_bar(truth.photos().len() as u64, "photos");
    let ended = {
        let target = test.target(&plan);
        let monitoring = monitor.wait_until_complete(target, |sample| show_progress(&bar, sample, target.messages));
        // The monitor decides when the run is complete; the sender ends it only by failing.
        let sending = async {
            sender.send(test.args.rate.map(Rate::interval)).await?;
            pending::<anyhow::Result<EndReason>>().await
        };
        tokio::select! {
            ended = monitoring => Some(ended?),
            failed = sending => Some(failed?),
            _ = stop.changed() => None,
        }
    };
    bar.finish_and_clear();
    let report = test.report(&sender, &mut monitor, ended).await?;
    load_output::print(&report, output)?;
    if let Some(file) = &test.args.report {
        fs::write(file, report.to_html()).with_context(|| format!("failed to write {}", file.display()))?;
    }
    if let Some(folder) = test.folder.as_ref().filter(|_| test.args.keep && !output.is_json()) {
        output.line(format!("kept in {}", folder.path().display()))?;
    }
    Ok(if report.checks.has_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Selects a temporary data folder, unless a folder or the cloud is configured. Returns it with the settings.
fn select_backend(global: &Global, args: &LoadArgs, name: &str) -> anyhow::Result<(Option<TemporaryFolder>, Settings)> {
    // Synthetic faces are detected by the synthetic analyzer only, or by a Rekognition emulator that uses it.
    let key = match wiring::settings(global, &[])?.settings.faces.analyzer {
        Analyzer::Rekognition => "faces.secondary_analyzer",
        Analyzer::Off | Analyzer::Synthetic | Analyzer::Local => "faces.analyzer",
    };
    let synthetic = (key, "load", toml::Value::from("synthetic"));
    let settings = wiring::settings(global, std::slice::from_ref(&synthetic))?.settings;
    if settings.backend == BackendKind::Aws || global.data.is_some() {
        return Ok((None, settings));
    }
    if args.workers == 0 {
        let reason = "--workers 0 requires --data: no other worker uses a temporary data folder";
        return Err(UsageError(reason.into()).into());
    }
    let folder = TemporaryFolder::create(&format!("sparks-{name}"), args.keep)?;
    let data = ("data", "load", toml::Value::from(folder.path().display().to_string()));
    let settings = wiring::settings(global, &[synthetic, data])?.settings;
    Ok((Some(folder), settings))
}

/// Refuses a backend that has persons, because synthetic persons would remain among them, unless `--yes` is given.
async fn check_no_persons(args: &LoadArgs, backend: &Backend) -> anyhow::Result<()> {
    let query = Query { filter: Filter::EntityType("PERSON".into()), after: None, limit: 1, backwards: false };
    if args.yes || backend.store.query(&query).await?.items.is_empty() {
        return Ok(());
    }
    let reason = "has persons already, and synthetic persons would remain among them";
    Err(UsageError(format!("{} {reason}; select another backend or pass --yes", backend.location)).into())
}

fn show_progress(bar: &ProgressBar, sample: &Sample, messages: u64) {
    bar.set_message(format!("sent {}/{messages}, decided", sample.sent));
    bar.set_position(sample.decided as u64);
}

impl LoadTest {
    fn spec(&self) -> LoadSpec {
        let args = &self.args;
        let photos = args.photos as usize;
        LoadSpec {
            photos,
            identities: args.identities as usize,
            faces_per_photo: usize::from(args.faces_per_photo),
            duplicates: args.duplicates.of(photos),
            corrupt: args.corrupt.of(photos),
            shuffle: args.shuffle,
            seed: args.seed,
        }
    }

    async fn sender(&self, plan: &Arc<Plan>, truth: &Arc<GroundTruth>) -> anyhow::Result<Sender> {
        let (backend, bucket) = (&self.backend, &self.settings.bucket);
        let bucket_notifies = backend.platform.has_upload_notifications().await;
        let bucket_notifies = bucket_notifies.context("failed to read the notification settings of the bucket")?;
        let notifications = match self.args.through {
            Some(NotificationRoute::Queue) => NotificationSource::Sender,
            Some(NotificationRoute::Bucket) if !bucket_notifies => {
                let reason = "does not notify the queue of new originals; `sparks setup` configures it";
                return Err(UsageError(format!("--through bucket: the bucket {bucket} {reason}")).into());
            }
            None if !bucket_notifies => NotificationSource::Sender,
            _ => NotificationSource::Bucket,
        };
        Ok(Sender {
            platform: Arc::clone(&backend.platform),
            queue: Arc::clone(&backend.queue),
            clock: wiring::clock(),
            bucket: bucket.clone(),
            notifications,
            bucket_notifies,
            progress: Arc::new(SendProgress::new(truth.photos().len())),
            plan: Arc::clone(plan),
            truth: Arc::clone(truth),
        })
    }

    fn worker_options(&self, global: &Global) -> WorkerOptions {
        WorkerOptions {
            workers: usize::from(self.args.workers),
            data: self.folder.as_ref().map(|folder| folder.path().to_owned()).or_else(|| global.data.clone()),
            config: global.config.clone(),
            analyzer_variable: match self.settings.faces.analyzer {
                Analyzer::Rekognition => "SPARKS_FACES_SECONDARY_ANALYZER",
                Analyzer::Off | Analyzer::Synthetic | Analyzer::Local => "SPARKS_FACES_ANALYZER",
            },
            jobs: self.args.jobs,
        }
    }

    fn target(&self, plan: &Plan) -> MonitorTarget {
        let is_folder = self.backend.folder.is_some();
        MonitorTarget {
            messages: plan.messages() as u64,
            stable_samples: if is_folder { STABLE_SAMPLES_FOLDER } else { STABLE_SAMPLES_CLOUD },
            timeout: self.args.timeout.0,
        }
    }

    /// Stops the workers, then checks the final state. `ended` is `None` if the run was interrupted.
    async fn report(
        &self,
        sender: &Sender,
        monitor: &mut Monitor,
        ended: Option<EndReason>,
    ) -> anyhow::Result<LoadReport> {
        monitor.sample().await?;
        let (counters, usage, worker_exits) =
            (monitor.workers.counters(), monitor.workers.usage(), monitor.workers.exits());
        monitor.workers.stop().await;
        let own_counters = (self.args.workers > 0).then(|| counters.clone());
        let notified_at = sender.progress.notified_at();
        let measurements = Measurements::of(&notified_at, monitor.events(), monitor.samples(), own_counters, usage);
        let photos = sender.truth.photos().len();
        let incomplete = match ended {
            Some(EndReason::Completed) => None,
            Some(EndReason::Timeout) => Some("timeout: no progress for the time given by --timeout".to_owned()),
            Some(EndReason::WorkersExited) => Some("all workers have exited".to_owned()),
            None => {
                let reason = format!("interrupted when {} of {photos} photos were decided", measurements.decided);
                let checks = CheckReport::interrupted(reason);
                let options = self.report_options(sender);
                return Ok(LoadReport { options, machine: describe_machine(), measurements, checks });
            }
        };
        let state = self.final_state(sender, monitor).await?;
        let is_alone = self.folder.is_some();
        let deliveries = is_alone.then(|| (sender.progress.messages(), counters.done));
        let person_rows = if is_alone { Some(PersonRows::read(self.backend.store.as_ref()).await?) } else { None };
        let state = FinalState { deliveries, person_rows, worker_exits, incomplete, ..state };
        let checks = CheckReport::of(&sender.truth, &state);
        Ok(LoadReport { options: self.report_options(sender), machine: describe_machine(), measurements, checks })
    }

    async fn final_state(&self, sender: &Sender, monitor: &Monitor) -> anyhow::Result<FinalState> {
        let backend = &self.backend;
        let index = wiring::gallery_index(&self.settings, backend).await?;
        let source = StateSource {
            store: &backend.store,
            objects: &backend.objects,
            queue: backend.queue.as_ref(),
            dead_letters: backend.dead_letters.as_ref(),
            bucket: &self.settings.bucket,
            merges: index.merges().as_ref().clone(),
            drift: wiring::rebuilder(&self.settings, backend).run(false, |_| ()).await?,
        };
        let bar = progress_bar(sender.truth.photos().len() as u64, "checking");
        let state = FinalState::collect(source, &sender.truth, monitor.events(), || bar.inc(1)).await?;
        bar.finish_and_clear();
        Ok(state)
    }

    fn report_options(&self, sender: &Sender) -> Vec<ReportEntry> {
        let (args, plan) = (&self.args, &sender.plan);
        let damaged = plan.damage.iter().flatten().count();
        let order =
            if args.shuffle { format!("shuffled, {} before their row", plan.early) } else { "as uploaded".into() };
        let notifications = match sender.notifications {
            NotificationSource::Bucket => "the bucket",
            NotificationSource::Sender => "this command",
        };
        let workers = if args.workers == 0 { "elsewhere".into() } else { args.workers.to_string() };
        let jobs = args.jobs.map(|jobs| ReportEntry::new("jobs_a_worker", "jobs per worker", jobs.to_string()));
        let rate = args.rate.map_or_else(|| "as quickly as possible".into(), |rate| rate.to_string());
        let entries = [
            ReportEntry::new("photos", "photos", args.photos.to_string()),
            ReportEntry::new("identities", "identities", args.identities.to_string()),
            ReportEntry::new("faces_a_photo", "faces per photo", format!("up to {}", args.faces_per_photo)),
            ReportEntry::new("messages", "messages", plan.messages().to_string()),
            ReportEntry::new("duplicates", "duplicates", format!("{} ({})", plan.duplicates, args.duplicates)),
            ReportEntry::new("damaged_files", "damaged files", format!("{damaged} ({})", args.corrupt)),
            ReportEntry::new("order", "order", order),
            ReportEntry::new("rate", "rate", rate),
            ReportEntry::new("seed", "seed", args.seed.to_string()),
            ReportEntry::new("workers", "workers", workers),
            ReportEntry::new("place", "backend", self.backend.location.clone()),
            ReportEntry::new("told_by", "notifications from", notifications),
            ReportEntry::new("uploader", "uploader", sender.truth.uploader.to_string()),
        ];
        entries.into_iter().chain(jobs).collect()
    }
}

/// Checks that the report can be written, before hours of work. Leaves an existing file unchanged.
fn check_writable(file: &Path) -> anyhow::Result<()> {
    let is_new = fs::symlink_metadata(file).is_err();
    let opened = fs::OpenOptions::new().append(true).create(true).open(file);
    opened.with_context(|| format!("failed to write {}", file.display()))?;
    if is_new {
        fs::remove_file(file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sparks_engine::{Meter, RetryClass};
    use sparks_load::WorkerCounters;

    use crate::telemetry::metrics::Metrics;

    #[test]
    fn the_load_test_reads_the_metrics_that_a_worker_exports() {
        let metrics = Metrics::new();
        metrics.record_settlement("done");
        metrics.record_settlement("done");
        metrics.record_settlement("wait");
        metrics.record_retry(RetryClass::Transient);
        metrics.record_retry(RetryClass::NotYet);
        metrics.record_retry(RetryClass::Unavailable);
        metrics.set_conflicts(7);
        let counters = WorkerCounters::parse(&metrics.encode());
        assert_eq!(counters, WorkerCounters { done: 2, retries: 2, not_yet: 1, conflicts: 7 });
        assert_eq!(counters.plus(&counters).conflicts, 14);
    }
}
