//! Throughput, latency and resource usage of a run.

use serde_json::{Value, json};
use sparks_domain::Timestamp;

use super::{PhotoEvents, ProcessUsage, Sample, WorkerCounters};

/// What was measured during a run.
#[derive(Debug, Clone, Default)]
pub struct Measurements {
    /// Photos that were decided.
    pub decided: usize,
    /// Seconds from the first message to the last decision.
    pub seconds: f64,
    /// For each decided photo, in order of decision: seconds from the first message of the run to its decision, and
    /// from its own message to its decision.
    pub latencies: Vec<(f64, f64)>,
    /// The counters of the workers, if this run started them.
    pub counters: Option<WorkerCounters>,
    /// The usage of each worker at the end.
    pub usage: Vec<ProcessUsage>,
    /// The samples over time.
    pub samples: Vec<Sample>,
}

impl Measurements {
    /// Computes the measurements.
    pub fn of(
        notified_at: &[Option<Timestamp>],
        events: &[PhotoEvents],
        samples: &[Sample],
        counters: Option<WorkerCounters>,
        usage: Vec<ProcessUsage>,
    ) -> Self {
        let seconds = |from: Timestamp, to: Timestamp| (to.as_millis() - from.as_millis()).max(0) as f64 / 1000.0;
        let first = notified_at.iter().flatten().min().copied();
        let both = notified_at.iter().zip(events).filter_map(|(sent, events)| Some(((*sent)?, events.decided_at?)));
        let mut latencies: Vec<(f64, f64)> =
            both.map(|(sent, decided)| (first.map_or(0.0, |f| seconds(f, decided)), seconds(sent, decided))).collect();
        latencies.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            decided: events.iter().filter(|events| events.decided_at.is_some()).count(),
            seconds: latencies.last().map_or(0.0, |(at, _)| *at),
            latencies,
            counters,
            usage,
            samples: samples.to_vec(),
        }
    }

    /// Returns photos per second, from the first message to the last decision.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.latencies.len() as f64 / self.seconds } else { 0.0 }
    }

    /// Returns a percentile of the seconds from a message to its decision.
    pub fn latency(&self, percent: f64) -> Option<f64> {
        let mut sorted: Vec<f64> = self.latencies.iter().map(|(_, latency)| *latency).collect();
        sorted.sort_by(f64::total_cmp);
        percentile(&sorted, percent)
    }

    /// Returns the CPU seconds of all workers and their decoder processes.
    pub fn cpu_seconds(&self) -> f64 {
        self.usage.iter().map(|usage| usage.cpu).sum()
    }

    /// Returns the highest peak memory of a worker with its decoder processes, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.usage.iter().map(|usage| usage.peak).max().unwrap_or_default()
    }

    /// Returns how fast the memory of all workers grows in the second half of the time in which messages are sent, in bytes per
    /// minute: the slope of the line that fits the samples best (least squares). `None` if there are too few samples.
    pub fn memory_growth(&self) -> Option<f64> {
        let all = self.samples.last()?.sent;
        let sending = self.samples.iter().filter(|sample| !sample.usage.is_empty() && sample.sent < all);
        let points: Vec<(f64, f64)> = sending.map(|sample| (sample.at / 60.0, sample.memory() as f64)).collect();
        let points = &points[points.len() / 2..];
        let count = points.len() as f64;
        let (mean_time, mean_memory) =
            points.iter().fold((0.0, 0.0), |(t, m), (time, memory)| (t + time / count, m + memory / count));
        let (covariance, variance) = points.iter().fold((0.0, 0.0), |(covariance, variance), (time, memory)| {
            let distance = time - mean_time;
            (covariance + distance * (memory - mean_memory), variance + distance * distance)
        });
        (points.len() >= 10 && variance > 0.0).then(|| covariance / variance)
    }

    /// Returns the highest number of messages in the queue.
    pub fn max_queue_depth(&self) -> u64 {
        self.samples.iter().map(Sample::queue_depth).max().unwrap_or_default()
    }

    /// Returns the measurements for scripts.
    pub fn to_json(&self) -> Value {
        let workers = |usage: &ProcessUsage| json!({ "cpu_seconds": rounded(usage.cpu), "peak_bytes": usage.peak });
        let sample = |sample: &Sample| {
            json!({
                "seconds": rounded(sample.at),
                "sent": sample.sent,
                "settled": sample.decided,
                "waiting": sample.waiting,
                "leased": sample.leased,
                "delayed": sample.delayed,
                "cpu_seconds": rounded(sample.usage.iter().map(|usage| usage.cpu).sum()),
                "memory_bytes": sample.memory(),
            })
        };
        json!({
            "settled": self.decided,
            "seconds": rounded(self.seconds),
            "photos_per_second": rounded(self.rate()),
            "latency_seconds": {
                "p50": self.latency(50.0).map(rounded),
                "p90": self.latency(90.0).map(rounded),
                "p99": self.latency(99.0).map(rounded),
                "max": self.latency(100.0).map(rounded),
            },
            "retries": self.counters.as_ref().map(|counters| counters.retries),
            "not_yet": self.counters.as_ref().map(|counters| counters.not_yet),
            "conflicts": self.counters.as_ref().map(|counters| counters.conflicts),
            "cpu_seconds": rounded(self.cpu_seconds()),
            "memory_bytes_per_minute": self.memory_growth().map(f64::round),
            "queue_deepest": self.max_queue_depth(),
            "workers": self.usage.iter().map(workers).collect::<Vec<_>>(),
            "samples": self.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    }
}

/// Returns the percentile of sorted values by the nearest-rank method.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).checked_sub(1)?).copied()
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        let of = |percent| percentile(&values, percent);
        assert_eq!([of(50.0), of(90.0), of(99.0), of(100.0)], [Some(100.0), Some(180.0), Some(198.0), Some(200.0)]);
        assert_eq!((of(0.0), percentile(&[7.0], 50.0), percentile(&[], 50.0)), (Some(1.0), Some(7.0), None));
        assert_eq!(percentile(&[1.0, 2.0, 3.0], 99.0), Some(3.0));
    }

    #[test]
    fn memory_growth_is_that_of_the_second_half() {
        // 2 MB a second while the worker starts, then 1 kB a second.
        let memory = |second: u64| if second < 50 { second * 2_000_000 } else { 100_000_000 + second * 1000 };
        let sample = |second: u64| Sample {
            at: second as f64,
            sent: second,
            usage: vec![ProcessUsage { memory: memory(second), ..ProcessUsage::default() }],
            ..Sample::default()
        };
        let samples: Vec<Sample> = (0..=100).map(sample).collect();
        let growth = |samples| Measurements { samples, ..Measurements::default() }.memory_growth();
        assert_eq!(growth(samples.clone()).map(f64::round), Some(60_000.0));
        assert_eq!(growth(samples[..12].to_vec()), None, "too few samples");
    }

    #[test]
    fn latency_is_from_the_message_to_its_decision() {
        let at = |millis| Some(Timestamp::from_millis(millis));
        let decided = |millis| PhotoEvents { decided_at: at(millis), ..PhotoEvents::default() };
        let notified_at = [at(1000), at(2000), at(2500), at(9000)];
        let events = [decided(1500), decided(6000), decided(2500), PhotoEvents::default()];
        let measured = Measurements::of(&notified_at, &events, &[], None, Vec::new());
        assert_eq!(measured.latencies, [(0.5, 0.5), (1.5, 0.0), (5.0, 4.0)]);
        assert_eq!((measured.decided, measured.seconds, measured.rate()), (3, 5.0, 0.6));
        assert_eq!((measured.latency(50.0), measured.latency(100.0)), (Some(0.5), Some(4.0)));
        assert_eq!(Measurements::default().rate(), 0.0);
    }
}
