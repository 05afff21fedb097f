//! Metrics of a worker in the OpenMetrics text format, which Prometheus scrapes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};
use sparks_engine::{Meter, RetryClass};

/// The content type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const OUTCOMES: [&str; 7] = ["committed", "already_committed", "rejected", "outdated", "deleted", "ignored", "profile"];
const STAGES: [&str; 6] = ["look_up", "fetch", "render", "analyze", "commit", "effects"];
const SETTLEMENTS: [&str; 6] = ["done", "retry", "wait", "release", "dead", "lost"];

/// Histogram buckets in seconds: from a lookup in memory to a photo that nearly reaches its timeout.
const BUCKETS: [f64; 15] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// All metrics of a worker; clones share their values.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

/// One label and its value. Values are static strings, so the number of series is bounded.
type Label = [(&'static str, &'static str); 1];
type Number = Gauge<u64, AtomicU64>;

struct Inner {
    registry: Registry,
    photos: Family<Label, Counter>,
    stages: Family<Label, Histogram, fn() -> Histogram>,
    messages: Family<Label, Counter>,
    retries: Family<Label, Counter>,
    calls: Family<Label, Counter>,
    conflicts: Counter,
    queue: Family<Label, Number>,
    queue_oldest: Gauge<f64, AtomicU64>,
    dead_letters: Number,
    gallery_templates: Number,
    gallery_persons: Number,
    slots: Family<Label, Number>,
    concurrency_limit: Number,
    breaker_open: Number,
}

impl Metrics {
    /// Returns metrics at zero. Series with known labels exist from the start, so that a rate includes the first event.
    pub fn new() -> Self {
        let inner = Inner {
            registry: Registry::with_prefix("sparks"),
            photos: Family::default(),
            stages: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            messages: Family::default(),
            retries: Family::default(),
            calls: Family::default(),
            conflicts: Counter::default(),
            queue: Family::default(),
            queue_oldest: Gauge::default(),
            dead_letters: Gauge::default(),
            gallery_templates: Gauge::default(),
            gallery_persons: Gauge::default(),
            slots: Family::default(),
            concurrency_limit: Gauge::default(),
            breaker_open: Gauge::default(),
        };
        OUTCOMES.iter().for_each(|outcome| drop(inner.photos.get_or_create(&[("outcome", outcome)])));
        STAGES.iter().for_each(|stage| drop(inner.stages.get_or_create(&[("stage", stage)])));
        SETTLEMENTS.iter().for_each(|settled| drop(inner.messages.get_or_create(&[("settlement", settled)])));
        RetryClass::ALL.iter().for_each(|class| drop(inner.retries.get_or_create(&[("class", class.label())])));
        let metrics = Self(Arc::new(inner.registered()));
        metrics.set_queue(0, 0, 0);
        metrics.record_concurrency(0, 0, 0);
        metrics
    }

    /// Sets the total number of commit conflicts. A lower total than before is ignored.
    pub fn set_conflicts(&self, total: u64) {
        self.0.conflicts.inner().fetch_max(total, Ordering::Relaxed);
    }

    /// Sets the number of messages that are visible, in flight and delayed.
    pub fn set_queue(&self, waiting: u64, leased: u64, delayed: u64) {
        for (state, messages) in [("waiting", waiting), ("leased", leased), ("delayed", delayed)] {
            self.0.queue.get_or_create(&[("state", state)]).set(messages);
        }
    }

    /// Sets the age of the oldest message in the queue; 0 if it is empty.
    pub fn set_queue_oldest(&self, seconds: f64) {
        self.0.queue_oldest.set(seconds);
    }

    /// Sets the number of dead letters.
    pub fn set_dead_letters(&self, messages: u64) {
        self.0.dead_letters.set(messages);
    }

    /// Sets the size of the gallery.
    pub fn set_gallery(&self, templates: u64, persons: u64) {
        self.0.gallery_templates.set(templates);
        self.0.gallery_persons.set(persons);
    }

    /// Sets whether the circuit breaker is open.
    pub fn set_breaker_open(&self, open: bool) {
        self.0.breaker_open.set(open.into());
    }

    /// Encodes all metrics as text, of type [`CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut text = String::new();
        if let Err(error) = text::encode(&mut text, &self.0.registry) {
            // The text lacks its `# EOF`, so that scrapers reject it.
            tracing::warn!(%error, "failed to encode metrics");
        }
        text
    }
}

impl Inner {
    /// Registers every metric. The registry appends the suffix of its type: `_total`, `_seconds` or `_info`.
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("photos", "Photos processed, by outcome", self.photos.clone());
        registry.register_with_unit(
            "stage",
            "Duration of a processing stage of a photo",
            Unit::Seconds,
            self.stages.clone(),
        );
        registry.register("messages", "Messages settled with the queue, by settlement", self.messages.clone());
        registry.register("retries", "Failures that will be retried, by failure class", self.retries.clone());
        registry.register("service_calls", "Calls to billed external services, by operation", self.calls.clone());
        registry.register(
            "conflicts",
            "Commits that conflicted with another worker and were decided again",
            self.conflicts.clone(),
        );
        registry.register("queue_messages", "Messages in the work queue, by state", self.queue.clone());
        let oldest = "Age of the oldest message in the work queue";
        registry.register_with_unit("queue_oldest", oldest, Unit::Seconds, self.queue_oldest.clone());
        registry.register("dead_letters", "Messages in the dead-letter queue", self.dead_letters.clone());
        registry.register("gallery_templates", "Enrolled faces in the gallery", self.gallery_templates.clone());
        registry.register("gallery_persons", "Persons in the gallery", self.gallery_persons.clone());
        registry.register("slots", "Slots for photos processed at the same time, by state", self.slots.clone());
        let limit = "Photos that may be processed at the same time: fewer than slots while a dependency throttles";
        registry.register("concurrency_limit", limit, self.concurrency_limit.clone());
        let breaker = "1 while the worker pauses because a dependency is unavailable, else 0";
        registry.register("breaker_open", breaker, self.breaker_open.clone());
        registry.register(
            "build",
            "Version of the running worker",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        self
    }
}

impl Meter for Metrics {
    fn record_stage(&self, stage: &'static str, took: Duration) {
        self.0.stages.get_or_create(&[("stage", stage)]).observe(took.as_secs_f64());
    }

    fn record_call(&self, operation: &'static str) {
        self.0.calls.get_or_create(&[("operation", operation)]).inc();
    }

    fn record_request(&self, outcome: &'static str) {
        self.0.photos.get_or_create(&[("outcome", outcome)]).inc();
    }

    fn record_settlement(&self, settlement: &'static str) {
        self.0.messages.get_or_create(&[("settlement", settlement)]).inc();
    }

    fn record_retry(&self, class: RetryClass) {
        self.0.retries.get_or_create(&[("class", class.label())]).inc();
    }

    fn record_concurrency(&self, in_flight: usize, limit: usize, slots: usize) {
        let free = slots.saturating_sub(in_flight);
        for (state, slots) in [("busy", in_flight), ("free", free)] {
            self.0.slots.get_or_create(&[("state", state)]).set(slots as u64);
        }
        self.0.concurrency_limit.set(limit as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_help_and_type() {
        let text = Metrics::new().encode();
        for (name, kind) in [
            ("photos", "counter"),
            ("stage_seconds", "histogram"),
            ("messages", "counter"),
            ("retries", "counter"),
            ("conflicts", "counter"),
            ("queue_messages", "gauge"),
            ("queue_oldest_seconds", "gauge"),
            ("dead_letters", "gauge"),
            ("gallery_templates", "gauge"),
            ("gallery_persons", "gauge"),
            ("slots", "gauge"),
            ("concurrency_limit", "gauge"),
            ("breaker_open", "gauge"),
            ("build", "info"),
        ] {
            assert!(text.contains(&format!("# HELP sparks_{name} ")), "{name} has no help: {text}");
            assert!(text.contains(&format!("# TYPE sparks_{name} {kind}\n")), "{name} is no {kind}: {text}");
        }
        assert!(text.contains(&format!("sparks_build_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION"))));
        assert!(text.contains("sparks_photos_total{outcome=\"profile\"} 0\n"), "known series start at zero: {text}");
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn clones_share_their_values() {
        let metrics = Metrics::new();
        let other = metrics.clone();
        metrics.record_request("committed");
        other.record_request("committed");
        other.record_stage("render", Duration::from_millis(40));
        other.record_settlement("done");
        other.record_retry(RetryClass::NotYet);
        other.set_queue(3, 2, 1);
        other.set_queue_oldest(1.5);
        other.set_dead_letters(4);
        other.set_gallery(160, 12);
        other.record_concurrency(1, 4, 8);
        other.set_breaker_open(true);
        other.set_conflicts(5);
        other.set_conflicts(2);
        let text = metrics.encode();
        for line in [
            "sparks_photos_total{outcome=\"committed\"} 2",
            "sparks_stage_seconds_count{stage=\"render\"} 1",
            "sparks_stage_seconds_bucket{le=\"0.025\",stage=\"render\"} 0",
            "sparks_stage_seconds_bucket{le=\"0.05\",stage=\"render\"} 1",
            "sparks_messages_total{settlement=\"done\"} 1",
            "sparks_retries_total{class=\"not_yet\"} 1",
            "sparks_queue_messages{state=\"delayed\"} 1",
            "sparks_queue_oldest_seconds 1.5",
            "sparks_dead_letters 4",
            "sparks_gallery_persons 12",
            "sparks_slots{state=\"free\"} 7",
            "sparks_concurrency_limit 4",
            "sparks_retries_total{class=\"denied\"} 0",
            "sparks_breaker_open 1",
            "sparks_conflicts_total 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
    }
}
