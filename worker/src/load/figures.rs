//! What a run measured.

use serde_json::{Value, json};
use sparks_domain::Timestamp;

use super::{Logged, Sample, scrape::Counts, usage::Usage};

/// What a run measured.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Photos that were decided.
    pub settled: usize,
    /// From the first message to the last decision, in seconds.
    pub seconds: f64,
    /// When each photo was decided after the first message, and how long after its own, in seconds, in order.
    pub latencies: Vec<(f64, f64)>,
    /// What the workers counted, where they are ours.
    pub counts: Option<Counts>,
    /// What each worker took at the end.
    pub usage: Vec<Usage>,
    /// How things were from moment to moment.
    pub samples: Vec<Sample>,
}

impl Figures {
    /// Reckons everything that is told.
    pub fn of(
        told: &[Option<Timestamp>],
        logged: &[Logged],
        samples: &[Sample],
        counts: Option<Counts>,
        usage: Vec<Usage>,
    ) -> Self {
        let seconds = |from: Timestamp, to: Timestamp| (to.as_millis() - from.as_millis()).max(0) as f64 / 1000.0;
        let first = told.iter().flatten().min().copied();
        let both = told.iter().zip(logged).filter_map(|(told, logged)| Some(((*told)?, logged.decided?)));
        let mut latencies: Vec<(f64, f64)> =
            both.map(|(told, decided)| (first.map_or(0.0, |f| seconds(f, decided)), seconds(told, decided))).collect();
        latencies.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            settled: logged.iter().filter(|logged| logged.decided.is_some()).count(),
            seconds: latencies.last().map_or(0.0, |(at, _)| *at),
            latencies,
            counts,
            usage,
            samples: samples.to_vec(),
        }
    }

    /// Photos a second, from the first message to the last decision.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.latencies.len() as f64 / self.seconds } else { 0.0 }
    }

    /// How long it took from a message to its decision: so many of a hundred were quicker.
    pub fn latency(&self, percent: f64) -> Option<f64> {
        let mut sorted: Vec<f64> = self.latencies.iter().map(|(_, latency)| *latency).collect();
        sorted.sort_by(f64::total_cmp);
        percentile(&sorted, percent)
    }

    /// Seconds of computing of all workers, with those that decode for them.
    pub fn cpu(&self) -> f64 {
        self.usage.iter().map(|usage| usage.cpu).sum()
    }

    /// The most bytes that a worker had in memory, with those that decode for it.
    pub fn peak(&self) -> u64 {
        self.usage.iter().map(|usage| usage.peak).max().unwrap_or_default()
    }

    /// The most messages that stood in the queue.
    pub fn deepest(&self) -> u64 {
        self.samples.iter().map(Sample::left).max().unwrap_or_default()
    }

    /// For scripts.
    pub fn to_json(&self) -> Value {
        let workers = |usage: &Usage| json!({ "cpu_seconds": rounded(usage.cpu), "peak_bytes": usage.peak });
        let sample = |sample: &Sample| {
            json!({
                "seconds": rounded(sample.at),
                "sent": sample.told,
                "settled": sample.settled,
                "waiting": sample.waiting,
                "leased": sample.leased,
                "delayed": sample.delayed,
                "cpu_seconds": rounded(sample.usage.iter().map(|usage| usage.cpu).sum()),
                "memory_bytes": sample.usage.iter().map(|usage| usage.memory).sum::<u64>(),
            })
        };
        json!({
            "settled": self.settled,
            "seconds": rounded(self.seconds),
            "photos_per_second": rounded(self.rate()),
            "latency_seconds": {
                "p50": self.latency(50.0).map(rounded),
                "p90": self.latency(90.0).map(rounded),
                "p99": self.latency(99.0).map(rounded),
                "max": self.latency(100.0).map(rounded),
            },
            "retries": self.counts.as_ref().map(|counts| counts.retries),
            "not_yet": self.counts.as_ref().map(|counts| counts.not_yet),
            "conflicts": self.counts.as_ref().map(|counts| counts.conflicts),
            "cpu_seconds": rounded(self.cpu()),
            "queue_deepest": self.deepest(),
            "workers": self.usage.iter().map(workers).collect::<Vec<_>>(),
            "samples": self.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    }
}

/// The least of these sorted values that so many of a hundred are not above.
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
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
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        let of = |percent| percentile(&values, percent);
        assert_eq!([of(50.0), of(90.0), of(99.0), of(100.0)], [Some(100.0), Some(180.0), Some(198.0), Some(200.0)]);
        assert_eq!((of(0.0), percentile(&[7.0], 50.0), percentile(&[], 50.0)), (Some(1.0), Some(7.0), None));
        assert_eq!(percentile(&[1.0, 2.0, 3.0], 99.0), Some(3.0));
    }

    #[test]
    fn latency_is_from_the_message_to_its_decision() {
        let at = |millis| Some(Timestamp::from_millis(millis));
        let decided = |millis| Logged { decided: at(millis), ..Logged::default() };
        let told = [at(1000), at(2000), at(2500), at(9000)];
        let logged = [decided(1500), decided(6000), decided(2500), Logged::default()];
        let figures = Figures::of(&told, &logged, &[], None, Vec::new());
        assert_eq!(figures.latencies, [(0.5, 0.5), (1.5, 0.0), (5.0, 4.0)]);
        assert_eq!((figures.settled, figures.seconds, figures.rate()), (3, 5.0, 0.6));
        assert_eq!((figures.latency(50.0), figures.latency(100.0)), (Some(0.5), Some(4.0)));
        assert_eq!(Figures::default().rate(), 0.0);
    }
}
