//! The numbers of a worker, in the text that Prometheus reads.

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

/// What [`Metrics::encode`] writes.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const OUTCOMES: [&str; 7] = ["committed", "already_committed", "rejected", "outdated", "deleted", "ignored", "profile"];
const STAGES: [&str; 6] = ["look_up", "fetch", "render", "analyze", "commit", "effects"];
const SETTLEMENTS: [&str; 5] = ["done", "retry", "wait", "release", "dead"];
const CLASSES: [&str; 3] = ["transient", "not_yet", "unavailable"];

/// From a look into memory to a photo that is almost given up, in seconds.
const BUCKETS: [f64; 15] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// All metrics of a worker; clones count into the same.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

/// One label and its value. Values are literals, so the number of series is bounded.
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
    breaker_open: Number,
}

impl Metrics {
    /// Everything at zero. Series whose labels are known exist from the start, so that a rate sees the first event.
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
            breaker_open: Gauge::default(),
        };
        OUTCOMES.iter().for_each(|outcome| drop(inner.photos.get_or_create(&[("outcome", outcome)])));
        STAGES.iter().for_each(|stage| drop(inner.stages.get_or_create(&[("stage", stage)])));
        SETTLEMENTS.iter().for_each(|settled| drop(inner.messages.get_or_create(&[("settlement", settled)])));
        CLASSES.iter().for_each(|class| drop(inner.retries.get_or_create(&[("class", class)])));
        let metrics = Self(Arc::new(inner.registered()));
        metrics.set_queue(0, 0, 0);
        metrics.set_slots(0, 0);
        metrics
    }

    /// A photo came to its end.
    pub fn photo(&self, outcome: &'static str) {
        self.0.photos.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// A stage of a photo is over.
    pub fn stage(&self, stage: &'static str, took: Duration) {
        self.0.stages.get_or_create(&[("stage", stage)]).observe(took.as_secs_f64());
    }

    /// A message was settled with the queue.
    pub fn settled(&self, settlement: &'static str) {
        self.0.messages.get_or_create(&[("settlement", settlement)]).inc();
    }

    /// Something will be tried again.
    pub fn retried(&self, class: &'static str) {
        self.0.retries.get_or_create(&[("class", class)]).inc();
    }

    /// How many commits were decided again so far. A lower total than before changes nothing.
    pub fn set_conflicts(&self, total: u64) {
        self.0.conflicts.inner().fetch_max(total, Ordering::Relaxed);
    }

    /// Messages that may be received now, that somebody works on, and that come later.
    pub fn set_queue(&self, waiting: u64, leased: u64, delayed: u64) {
        for (state, messages) in [("waiting", waiting), ("leased", leased), ("delayed", delayed)] {
            self.0.queue.get_or_create(&[("state", state)]).set(messages);
        }
    }

    /// The age of the oldest message in the queue; 0 if there is none.
    pub fn set_queue_oldest(&self, seconds: f64) {
        self.0.queue_oldest.set(seconds);
    }

    /// Messages that were given up.
    pub fn set_dead_letters(&self, messages: u64) {
        self.0.dead_letters.set(messages);
    }

    /// What faces are compared with.
    pub fn set_gallery(&self, templates: u64, persons: u64) {
        self.0.gallery_templates.set(templates);
        self.0.gallery_persons.set(persons);
    }

    /// Photos in work, and how many more there may be.
    pub fn set_slots(&self, busy: u64, free: u64) {
        for (state, slots) in [("busy", busy), ("free", free)] {
            self.0.slots.get_or_create(&[("state", state)]).set(slots);
        }
    }

    /// Whether the worker pauses because what it needs is unavailable.
    pub fn set_breaker_open(&self, open: bool) {
        self.0.breaker_open.set(open.into());
    }

    /// All of it as text, of type [`CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut text = String::new();
        if let Err(error) = text::encode(&mut text, &self.0.registry) {
            // The text lacks its end mark, by which whoever reads it knows.
            tracing::warn!(%error, "cannot write all metrics");
        }
        text
    }
}

impl Inner {
    /// Names end as their kind demands, which the registry does: `_total`, `_seconds`, `_info`.
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("photos", "Photos that came to their end, by outcome", self.photos.clone());
        registry.register_with_unit("stage", "Time that a stage of a photo took", Unit::Seconds, self.stages.clone());
        registry.register("messages", "Messages that were settled, by what the queue was told", self.messages.clone());
        registry.register("retries", "Failures that will be tried again, by class", self.retries.clone());
        registry.register("service_calls", "Calls of services that count them, by operation", self.calls.clone());
        registry.register("conflicts", "Commits that were decided again", self.conflicts.clone());
        registry.register("queue_messages", "Messages in the queue, by state", self.queue.clone());
        let oldest = "Age of the oldest message in the queue";
        registry.register_with_unit("queue_oldest", oldest, Unit::Seconds, self.queue_oldest.clone());
        registry.register("dead_letters", "Messages that were given up", self.dead_letters.clone());
        registry.register("gallery_templates", "Faces that persons are known by", self.gallery_templates.clone());
        registry.register("gallery_persons", "Persons that are known", self.gallery_persons.clone());
        registry.register("slots", "Photos that may be in work at once, by state", self.slots.clone());
        let breaker = "Whether the worker pauses because what it needs is unavailable";
        registry.register("breaker_open", breaker, self.breaker_open.clone());
        registry.register("build", "What is running", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        self
    }
}

impl sparks_engine::Meter for Metrics {
    fn stage(&self, stage: &'static str, took: Duration) {
        Metrics::stage(self, stage, took);
    }

    fn call(&self, operation: &'static str) {
        self.0.calls.get_or_create(&[("operation", operation)]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_metric_with_help_and_type() {
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
    fn clones_count_into_the_same() {
        let metrics = Metrics::new();
        let other = metrics.clone();
        metrics.photo("committed");
        other.photo("committed");
        other.stage("render", Duration::from_millis(40));
        other.settled("done");
        other.retried("not_yet");
        other.set_queue(3, 2, 1);
        other.set_queue_oldest(1.5);
        other.set_dead_letters(4);
        other.set_gallery(160, 12);
        other.set_slots(1, 7);
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
            "sparks_breaker_open 1",
            "sparks_conflicts_total 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
    }
}
