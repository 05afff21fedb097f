//! The distribution of a model's similarities between different persons.

/// How similar faces of different persons are to a model (its impostor scores). Rules count in deviations from the
/// median, so that one rule fits every model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The median similarity between faces of different persons.
    pub median: f32,
    /// One deviation upwards: about one in six pairs of different persons is more similar than the median plus this.
    pub spread: f32,
    /// The deviations above the median from which a match with the only person is not by chance: at most one in a hundred
    /// thousand pairs of different persons is as similar.
    pub match_from: f32,
}

impl Scale {
    /// Returns the similarity that is so many deviations above the median.
    pub fn above(&self, deviations: f32) -> f32 {
        self.median + self.spread * deviations
    }

    /// Returns how many deviations a similarity is above the median.
    pub fn deviations(&self, similarity: f32) -> f32 {
        (similarity - self.median) / self.spread
    }
}
