//! Round numbers along an axis.

/// Numbers from 0 at equal, round distances.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticks {
    /// The distance.
    step: f64,
    /// How many steps there are.
    steps: u32,
}

impl Ticks {
    /// At most so many steps up to the first round number that is not below `most`. Whole numbers where only those mean
    /// anything.
    pub fn up_to(most: f64, steps: u32, whole: bool) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let least = most / f64::from(steps.max(1));
        let power = 10f64.powi(least.log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= least * 0.999_999);
        let step = step.unwrap_or(power * 10.0);
        let step = if whole { step.max(1.0) } else { step };
        Self { step, steps: ((most / step) * 0.999_999).ceil().max(1.0) as u32 }
    }

    /// The last of them.
    pub fn end(&self) -> f64 {
        self.step * f64::from(self.steps)
    }

    /// All of them, with what is written beside them.
    pub fn marks(&self) -> impl Iterator<Item = (f64, String)> {
        let decimals = (-(self.step.log10() + 1e-9).floor()).max(0.0) as usize;
        let step = self.step;
        (0..=self.steps).map(move |n| {
            let value = step * f64::from(n);
            (value, written(value, decimals))
        })
    }
}

/// A number with so many decimals, and its thousands apart.
pub fn written(value: f64, decimals: usize) -> String {
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

    fn labels(most: f64, steps: u32, whole: bool) -> Vec<String> {
        Ticks::up_to(most, steps, whole).marks().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_reach_what_there_is() {
        assert_eq!(labels(87.0, 5, false), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(0.43, 5, false), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(0.07, 4, false), ["0.00", "0.02", "0.04", "0.06", "0.08"]);
        assert_eq!(labels(2431.0, 5, true), ["0", "500", "1,000", "1,500", "2,000", "2,500"]);
        assert_eq!(labels(100.0, 5, false), ["0", "20", "40", "60", "80", "100"], "what is round stays");
    }

    #[test]
    fn counts_have_no_halves() {
        assert_eq!(labels(2.0, 5, true), ["0", "1", "2"]);
        assert_eq!(labels(0.0, 5, true), ["0", "1"], "an axis has a length even where there is nothing");
    }

    #[test]
    fn any_number_gives_a_few_ticks_that_reach_it() {
        let mut most = 1e-4;
        while most < 1e9 {
            let ticks = Ticks::up_to(most, 5, false);
            let marks = ticks.marks().count();
            assert!(ticks.end() >= most * 0.999 && ticks.end() <= most * 2.6, "{most}: {ticks:?}");
            assert!((2..=6).contains(&marks), "{most}: {marks} ticks");
            most *= 1.37;
        }
        for odd in [f64::NAN, f64::INFINITY, -3.0] {
            assert_eq!(Ticks::up_to(odd, 5, false).end(), 1.0);
        }
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([written(999.0, 0), written(1234567.0, 0), written(1234.5, 1)], ["999", "1,234,567", "1,234.5"]);
    }
}
