//! How a model's similarities are to be read.

/// What is usual between faces of different persons, to a model. Rules speak of deviations from it, so that one rule fits
/// every model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// How alike strangers are in the middle.
    pub unrelated: f32,
    /// One deviation upwards: about one in six pairs of strangers is more alike than a deviation above the middle.
    pub spread: f32,
    /// The deviation upwards as a share of the one downwards.
    pub skew: f32,
}

impl Scale {
    /// The similarity so many deviations above what is usual between strangers.
    pub fn above(&self, deviations: f32) -> f32 {
        self.unrelated + self.spread * deviations
    }
}

/// From which similarity on a face is the person it is most like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// Always the same.
    Fixed(f32),
    /// Higher the more persons are known: among many there is somebody who is like a stranger by chance.
    Grows(Scale),
}

impl Threshold {
    /// Deviations above the usual from which one person out of one is no chance; and by how much this grows each time the
    /// number of persons is ten times as large, so that strangers are mistaken for somebody equally seldom. Measured on
    /// 185,000 pairs of strangers: so many deviations make chance hits ten times rarer.
    const ONE: f32 = 4.1;
    const TENFOLD: f32 = 0.5;

    /// The threshold among so many persons.
    pub fn among(self, persons: usize) -> f32 {
        match self {
            Self::Fixed(threshold) => threshold,
            Self::Grows(scale) => scale.above(Self::ONE + Self::TENFOLD * (persons.max(5) as f32).log10()),
        }
    }
}
