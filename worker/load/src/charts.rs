//! The plots of a run.

use super::{
    Measurements, Sample,
    measurements::percentile,
    plot::{Axis, Plot, Series},
};

/// Returns all plots for which there are measurements.
pub fn charts(measured: &Measurements) -> Vec<Plot> {
    let unit = TimeUnit::of(measured.samples.last().map_or(0.0, |sample| sample.at).max(measured.seconds));
    let mut charts =
        vec![throughput(measured, unit), queue(measured, unit), latency(measured, unit), distribution(measured)];
    if !measured.usage.is_empty() {
        charts.extend([cpu(measured, unit), memory(measured, unit)]);
    }
    charts
}

/// A unit of time that gives short numbers.
#[derive(Clone, Copy)]
struct TimeUnit {
    name: &'static str,
    seconds: f64,
}

/// A part of the run with the sorted latencies of the photos decided in it.
struct Interval {
    from: f64,
    to: f64,
    latencies: Vec<f64>,
}

/// Maximum number of intervals; a plot cannot show more.
const MAX_INTERVALS: usize = 60;

impl TimeUnit {
    fn of(seconds: f64) -> Self {
        match seconds {
            ..2.0 => Self { name: "milliseconds", seconds: 0.001 },
            2.0..300.0 => Self { name: "seconds", seconds: 1.0 },
            300.0..18_000.0 => Self { name: "minutes", seconds: 60.0 },
            _ => Self { name: "hours", seconds: 3600.0 },
        }
    }

    fn axis(self) -> Axis {
        Axis { name: self.name.into(), whole: false }
    }

    /// Converts the first coordinate from seconds.
    fn convert(self, points: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
        points.into_iter().map(|(x, y)| (x / self.seconds, y)).collect()
    }
}

fn axis(name: &str, whole: bool) -> Axis {
    Axis { name: name.into(), whole }
}

/// Splits the run into equal intervals of at least a second.
fn intervals(measured: &Measurements) -> Vec<Interval> {
    let count = (measured.seconds.floor() as usize).clamp(1, MAX_INTERVALS);
    let width = (measured.seconds / count as f64).max(f64::MIN_POSITIVE);
    let interval = |n: usize| Interval { from: n as f64 * width, to: (n + 1) as f64 * width, latencies: Vec::new() };
    let mut intervals: Vec<Interval> = (0..count).map(interval).collect();
    for (at, latency) in &measured.latencies {
        intervals[((at / width) as usize).min(count - 1)].latencies.push(*latency);
    }
    intervals.iter_mut().for_each(|interval| interval.latencies.sort_by(f64::total_cmp));
    intervals
}

fn throughput(measured: &Measurements, unit: TimeUnit) -> Plot {
    let steps = intervals(measured).into_iter().flat_map(|Interval { from, to, latencies }| {
        let rate = latencies.len() as f64 / (to - from);
        [(from, rate), (to, rate)]
    });
    let points = if measured.latencies.is_empty() { Vec::new() } else { unit.convert(steps) };
    let series = vec![Series { name: "decided".into(), points }];
    Plot { title: "Throughput".into(), x: unit.axis(), y: axis("photos/s", false), series }
}

fn queue(measured: &Measurements, unit: TimeUnit) -> Plot {
    let line = |name: &str, of: fn(&Sample) -> u64| {
        let points = unit.convert(measured.samples.iter().map(|sample| (sample.at, of(sample) as f64)));
        Series { name: name.into(), points }
    };
    let series = vec![
        line("waiting", |sample| sample.waiting),
        line("in flight", |sample| sample.leased),
        line("delayed", |sample| sample.delayed),
    ];
    Plot { title: "Queue".into(), x: unit.axis(), y: axis("messages", true), series }
}

fn latency(measured: &Measurements, unit: TimeUnit) -> Plot {
    let latency_unit = TimeUnit::of(measured.latency(100.0).unwrap_or_default());
    let intervals = intervals(measured);
    let line = |name: &str, percent: f64| {
        let middle = |Interval { from, to, latencies }: &Interval| {
            Some((f64::midpoint(*from, *to), percentile(latencies, percent)? / latency_unit.seconds))
        };
        Series { name: name.into(), points: unit.convert(intervals.iter().filter_map(middle)) }
    };
    let series = vec![line("median", 50.0), line("90%", 90.0), line("slowest", 100.0)];
    let title = "Latency, from message to decision".into();
    Plot { title, x: unit.axis(), y: latency_unit.axis(), series }
}

fn distribution(measured: &Measurements) -> Plot {
    let mut latencies: Vec<f64> = measured.latencies.iter().map(|(_, latency)| *latency).collect();
    latencies.sort_by(f64::total_cmp);
    let unit = TimeUnit::of(latencies.last().copied().unwrap_or_default());
    let point = |percent: u32| Some((percentile(&latencies, f64::from(percent))?, f64::from(percent)));
    let points = unit.convert((0..=100).filter_map(point));
    let series = vec![Series { name: "photos".into(), points }];
    let title = "Latency, cumulative distribution".into();
    Plot { title, x: unit.axis(), y: axis("% of photos", false), series }
}

/// Returns the distance between samples whose difference exceeds the resolution of the system's CPU time, 10 ms.
fn sample_stride(samples: &[Sample]) -> usize {
    samples.len().div_ceil(MAX_INTERVALS).max(2)
}

fn cpu(measured: &Measurements, unit: TimeUnit) -> Plot {
    let total = |sample: &Sample| sample.usage.iter().map(|usage| usage.cpu).sum::<f64>();
    let used = |before: &Sample, after: &Sample| {
        let cores = (total(after) - total(before)).max(0.0) / (after.at - before.at).max(0.001);
        [(before.at, cores), (after.at, cores)]
    };
    let samples: Vec<&Sample> = measured.samples.iter().step_by(sample_stride(&measured.samples)).collect();
    let steps = samples.windows(2).flat_map(|pair| used(pair[0], pair[1]));
    let series = vec![Series { name: "all workers".into(), points: unit.convert(steps) }];
    let title = "CPU of all workers, with decoder processes".into();
    Plot { title, x: unit.axis(), y: axis("cores", false), series }
}

fn memory(measured: &Measurements, unit: TimeUnit) -> Plot {
    let line = |n: usize| {
        let used = |sample: &Sample| Some((sample.at, sample.usage.get(n)?.memory as f64 / 1e6));
        let maximum = |samples: &[Sample]| samples.iter().filter_map(used).max_by(|a, b| a.1.total_cmp(&b.1));
        let chunks = measured.samples.chunks(sample_stride(&measured.samples));
        Series { name: format!("worker {}", n + 1), points: unit.convert(chunks.filter_map(maximum)) }
    };
    let series = (0..measured.usage.len()).map(line).collect();
    let title = "Memory of each worker, with decoder processes".into();
    Plot { title, x: unit.axis(), y: axis("MB", false), series }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurements() -> Measurements {
        let latencies = (1..=400).map(|n| (f64::from(n) * 0.1, 0.2 + f64::from(n % 7) * 0.05)).collect();
        let sample = |n: u32| Sample { at: f64::from(n), waiting: u64::from(40 - n), ..Sample::default() };
        let samples = (0..=40).map(sample).collect();
        Measurements { decided: 400, seconds: 40.0, latencies, samples, ..Measurements::default() }
    }

    #[test]
    fn throughput_is_the_number_of_decisions_per_second() {
        let plot = throughput(&measurements(), TimeUnit::of(40.0));
        let points = &plot.series[0].points;
        assert_eq!(points.len(), 80, "forty intervals of a second each");
        let area: f64 = points.chunks(2).map(|part| (part[1].0 - part[0].0) * part[0].1).sum();
        assert!((area - 400.0).abs() < 1e-6, "{area} photos under the line");
        assert!(points.iter().all(|(_, rate)| (8.0..=12.0).contains(rate)), "{points:?}");
    }

    #[test]
    fn the_distribution_rises_from_the_fastest_photo_to_all() {
        let plot = distribution(&measurements());
        let points = &plot.series[0].points;
        assert_eq!((points.first(), points.last()), (Some(&(200.0, 0.0)), Some(&(500.0, 100.0))));
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1));
        assert_eq!(plot.x.name, "milliseconds");
    }

    #[test]
    fn an_empty_run_has_plots_without_points() {
        for plot in charts(&Measurements::default()) {
            assert!(plot.series.iter().all(|series| series.points.is_empty()), "{plot:?}");
            assert!(plot.to_svg().ends_with("</svg>"));
        }
    }

    #[test]
    fn long_runs_are_plotted_in_minutes() {
        assert_eq!(TimeUnit::of(299.0).name, "seconds");
        assert_eq!(TimeUnit::of(301.0).name, "minutes");
        assert_eq!(TimeUnit::of(301.0).convert([(120.0, 7.0)]), [(2.0, 7.0)]);
    }
}
