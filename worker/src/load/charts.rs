//! The plots of a run.

use super::{
    Figures, Sample,
    figures::percentile,
    plot::{Axis, Line, Plot},
};

/// Every plot that there is something to draw for.
pub fn charts(figures: &Figures) -> Vec<Plot> {
    let time = Time::of(figures.samples.last().map_or(0.0, |sample| sample.at).max(figures.seconds));
    let mut charts = vec![throughput(figures, time), queue(figures, time), latency(figures, time), shares(figures)];
    if !figures.usage.is_empty() {
        charts.extend([cpu(figures, time), memory(figures, time)]);
    }
    charts
}

/// The unit of time that gives short numbers.
#[derive(Clone, Copy)]
struct Time {
    name: &'static str,
    seconds: f64,
}

/// More parts of a run than this are too many to see.
const PARTS: usize = 60;

impl Time {
    fn of(seconds: f64) -> Self {
        match seconds {
            ..2.0 => Self { name: "milliseconds", seconds: 0.001 },
            2.0..300.0 => Self { name: "seconds", seconds: 1.0 },
            300.0..18_000.0 => Self { name: "minutes", seconds: 60.0 },
            _ => Self { name: "hours", seconds: 3600.0 },
        }
    }

    fn axis(self, what: &str) -> Axis {
        Axis { name: format!("{what}{}", self.name), whole: false }
    }

    fn scaled(self, points: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
        points.into_iter().map(|(x, y)| (x / self.seconds, y)).collect()
    }
}

fn plain(name: &str, whole: bool) -> Axis {
    Axis { name: name.into(), whole }
}

/// The run in equal parts of a second or more, and what was decided in each.
fn parts(figures: &Figures) -> Vec<(f64, f64, Vec<f64>)> {
    let parts = (figures.seconds.floor() as usize).clamp(1, PARTS);
    let width = (figures.seconds / parts as f64).max(f64::MIN_POSITIVE);
    let mut found: Vec<(f64, f64, Vec<f64>)> =
        (0..parts).map(|n| (n as f64 * width, (n + 1) as f64 * width, Vec::new())).collect();
    for (at, latency) in &figures.latencies {
        found[((at / width) as usize).min(parts - 1)].2.push(*latency);
    }
    found.iter_mut().for_each(|(.., latencies)| latencies.sort_by(f64::total_cmp));
    found
}

fn throughput(figures: &Figures, time: Time) -> Plot {
    let steps = parts(figures).into_iter().flat_map(|(from, to, decided)| {
        let rate = decided.len() as f64 / (to - from);
        [(from, rate), (to, rate)]
    });
    let points = if figures.latencies.is_empty() { Vec::new() } else { time.scaled(steps) };
    let lines = vec![Line { name: "decided".into(), points }];
    Plot { title: "Throughput".into(), x: time.axis(""), y: plain("photos/s", false), lines }
}

fn queue(figures: &Figures, time: Time) -> Plot {
    let line = |name: &str, of: fn(&Sample) -> u64| {
        let points = time.scaled(figures.samples.iter().map(|sample| (sample.at, of(sample) as f64)));
        Line { name: name.into(), points }
    };
    let lines = vec![
        line("waiting", |sample| sample.waiting),
        line("in work", |sample| sample.leased),
        line("for later", |sample| sample.delayed),
    ];
    Plot { title: "Queue".into(), x: time.axis(""), y: plain("messages", true), lines }
}

fn latency(figures: &Figures, time: Time) -> Plot {
    let unit = Time::of(figures.latency(100.0).unwrap_or_default());
    let parts = parts(figures);
    let line = |name: &str, percent: f64| {
        let middle = |(from, to, latencies): &(f64, f64, Vec<f64>)| {
            Some((f64::midpoint(*from, *to), percentile(latencies, percent)? / unit.seconds))
        };
        Line { name: name.into(), points: time.scaled(parts.iter().filter_map(middle)) }
    };
    let lines = vec![line("median", 50.0), line("90%", 90.0), line("slowest", 100.0)];
    let title = "Latency, from message to decision".into();
    Plot { title, x: time.axis(""), y: unit.axis(""), lines }
}

fn shares(figures: &Figures) -> Plot {
    let mut latencies: Vec<f64> = figures.latencies.iter().map(|(_, latency)| *latency).collect();
    latencies.sort_by(f64::total_cmp);
    let unit = Time::of(latencies.last().copied().unwrap_or_default());
    let share = |percent: u32| Some((percentile(&latencies, f64::from(percent))?, f64::from(percent)));
    let points = unit.scaled((0..=100).filter_map(share));
    let lines = vec![Line { name: "photos".into(), points }];
    let title = "Latency, share of photos that were quicker".into();
    Plot { title, x: unit.axis(""), y: plain("% of photos", false), lines }
}

/// How far apart looks are taken to see more than noise: the system counts in hundredths of a second.
fn apart(samples: &[Sample]) -> usize {
    samples.len().div_ceil(PARTS).max(2)
}

fn cpu(figures: &Figures, time: Time) -> Plot {
    let total = |sample: &Sample| sample.usage.iter().map(|usage| usage.cpu).sum::<f64>();
    let used = |before: &Sample, after: &Sample| {
        let cores = (total(after) - total(before)).max(0.0) / (after.at - before.at).max(0.001);
        [(before.at, cores), (after.at, cores)]
    };
    let looks: Vec<&Sample> = figures.samples.iter().step_by(apart(&figures.samples)).collect();
    let steps = looks.windows(2).flat_map(|looks| used(looks[0], looks[1]));
    let lines = vec![Line { name: "all workers".into(), points: time.scaled(steps) }];
    let title = "CPU of all workers, with those that decode".into();
    Plot { title, x: time.axis(""), y: plain("cores", false), lines }
}

fn memory(figures: &Figures, time: Time) -> Plot {
    let line = |n: usize| {
        let held = |sample: &Sample| Some((sample.at, sample.usage.get(n)?.memory as f64 / 1e6));
        let most = |looks: &[Sample]| looks.iter().filter_map(held).max_by(|a, b| a.1.total_cmp(&b.1));
        let points = time.scaled(figures.samples.chunks(apart(&figures.samples)).filter_map(most));
        Line { name: format!("worker {}", n + 1), points }
    };
    let lines = (0..figures.usage.len()).map(line).collect();
    let title = "Memory of each worker, with those that decode".into();
    Plot { title, x: time.axis(""), y: plain("MB", false), lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        let latencies = (1..=400).map(|n| (f64::from(n) * 0.1, 0.2 + f64::from(n % 7) * 0.05)).collect();
        let sample = |n: u32| Sample { at: f64::from(n), waiting: u64::from(40 - n), ..Sample::default() };
        let samples = (0..=40).map(sample).collect();
        Figures { settled: 400, seconds: 40.0, latencies, samples, ..Figures::default() }
    }

    #[test]
    fn throughput_is_what_was_decided_in_each_second() {
        let plot = throughput(&figures(), Time::of(40.0));
        let points = &plot.lines[0].points;
        assert_eq!(points.len(), 80, "forty parts of a second each");
        let area: f64 = points.chunks(2).map(|part| (part[1].0 - part[0].0) * part[0].1).sum();
        assert!((area - 400.0).abs() < 1e-6, "{area} photos under the line");
        assert!(points.iter().all(|(_, rate)| (8.0..=12.0).contains(rate)), "{points:?}");
    }

    #[test]
    fn shares_rise_from_the_quickest_to_all() {
        let plot = shares(&figures());
        let points = &plot.lines[0].points;
        assert_eq!((points.first(), points.last()), (Some(&(200.0, 0.0)), Some(&(500.0, 100.0))));
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1));
        assert_eq!(plot.x.name, "milliseconds");
    }

    #[test]
    fn a_run_without_anything_has_plots_without_lines() {
        for plot in charts(&Figures::default()) {
            assert!(plot.lines.iter().all(|line| line.points.is_empty()), "{plot:?}");
            assert!(plot.to_svg().ends_with("</svg>"));
        }
    }

    #[test]
    fn long_runs_are_told_in_minutes() {
        assert_eq!(Time::of(299.0).name, "seconds");
        assert_eq!(Time::of(301.0).name, "minutes");
        assert_eq!(Time::of(301.0).scaled([(120.0, 7.0)]), [(2.0, 7.0)]);
    }
}
