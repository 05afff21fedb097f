//! Tick marks at round numbers along an axis.

/// Tick marks from 0 at equal, round distances.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticks {
    /// The distance between two ticks.
    step: f64,
    /// The number of steps.
    steps: u32,
}

impl Ticks {
    /// Returns at most `steps` steps up to the first round number that is not below `maximum`; integers if `whole`.
    pub fn up_to(maximum: f64, steps: u32, whole: bool) -> Self {
        let maximum = if maximum.is_finite() && maximum > 0.0 { maximum } else { 1.0 };
        let least = maximum / f64::from(steps.max(1));
        let power = 10f64.powi(least.log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= least * 0.999_999);
        let step = step.unwrap_or(power * 10.0);
        let step = if whole { step.max(1.0) } else { step };
        Self { step, steps: ((maximum / step) * 0.999_999).ceil().max(1.0) as u32 }
    }

    /// Returns the position of the last tick.
    pub fn end(&self) -> f64 {
        self.step * f64::from(self.steps)
    }

    /// Returns the position and label of every tick.
    pub fn marks(&self) -> impl Iterator<Item = (f64, String)> {
        let decimals = (-(self.step.log10() + 1e-9).floor()).max(0.0) as usize;
        let step = self.step;
        (0..=self.steps).map(move |n| {
            let value = step * f64::from(n);
            (value, format_number(value, decimals))
        })
    }
}

/// Formats a number with thousands separators.
fn format_number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(maximum: f64, steps: u32, whole: bool) -> Vec<String> {
        Ticks::up_to(maximum, steps, whole).marks().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_reach_the_maximum() {
        assert_eq!(labels(87.0, 5, false), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(0.43, 5, false), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(0.07, 4, false), ["0.00", "0.02", "0.04", "0.06", "0.08"]);
        assert_eq!(labels(2431.0, 5, true), ["0", "500", "1,000", "1,500", "2,000", "2,500"]);
        assert_eq!(labels(100.0, 5, false), ["0", "20", "40", "60", "80", "100"], "a round maximum stays");
    }

    #[test]
    fn whole_axes_have_integer_ticks() {
        assert_eq!(labels(2.0, 5, true), ["0", "1", "2"]);
        assert_eq!(labels(0.0, 5, true), ["0", "1"], "an empty axis has a length");
    }

    #[test]
    fn any_maximum_gives_a_few_ticks_that_reach_it() {
        let mut maximum = 1e-4;
        while maximum < 1e9 {
            let ticks = Ticks::up_to(maximum, 5, false);
            let marks = ticks.marks().count();
            assert!(ticks.end() >= maximum * 0.999 && ticks.end() <= maximum * 2.6, "{maximum}: {ticks:?}");
            assert!((2..=6).contains(&marks), "{maximum}: {marks} ticks");
            maximum *= 1.37;
        }
        for invalid in [f64::NAN, f64::INFINITY, -3.0] {
            assert_eq!(Ticks::up_to(invalid, 5, false).end(), 1.0);
        }
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(
            [format_number(999.0, 0), format_number(1234567.0, 0), format_number(1234.5, 1)],
            ["999", "1,234,567", "1,234.5"]
        );
    }
}
