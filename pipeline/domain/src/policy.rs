//! The match policy: when a face matches a person, and when it may become a new person or a template.
//!
//! All numbers that decide about identity are here, each with its origin, except for those of consolidation
//! (`consolidate.rs`) and the scale of each model (`scale.rs` of the `faces` crate). Settings may override thresholds
//! and set the quality bars.

use crate::{Candidate, DetectedFace, PersonId, Scale, Verdict, photo::round};

/// When a face matches a person, and which faces are good enough for a template.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The similarity from which a face matches a person.
    pub threshold: Threshold,
    /// How much more similar the best candidate must be than the second; otherwise the face is ambiguous.
    pub margin: f32,
    /// How many candidates an event records per face.
    pub candidates: usize,
    /// The minimum size of a template, in pixels.
    pub min_size: f32,
    /// The minimum sharpness of a template.
    pub min_sharpness: f32,
    /// The minimum detector confidence of a template.
    pub min_confidence: f32,
    /// How far the face of a template may be turned away.
    pub max_turn: f32,
}

/// The similarity from which a face matches the nearest person.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// The same for any number of persons.
    Fixed(f32),
    /// Grows with the number of persons, so that the rate of chance matches stays the same.
    Adaptive(Scale),
}

impl Threshold {
    /// The threshold for Rekognition's similarities. 80 % is the default of its `FaceMatchThreshold`
    /// (`SearchFacesByImage`).
    pub const REKOGNITION: Self = Self::Fixed(0.8);

    /// The threshold for the synthetic analyzer. It is not measured: its markers differ by exactly what a test asks
    /// for.
    pub const SYNTHETIC: Self = Self::Fixed(0.6);

    /// By how many deviations the threshold grows each time the number of persons is ten times as large. Measured on
    /// 185,000 pairs of different persons: so many deviations make chance matches ten times rarer.
    const PER_TENFOLD: f32 = 0.5;

    /// Returns the threshold among so many persons.
    pub fn among(self, persons: usize) -> f32 {
        match self {
            Self::Fixed(threshold) => threshold,
            Self::Adaptive(scale) => {
                scale.above(scale.match_from + Self::PER_TENFOLD * (persons.max(5) as f32).log10())
            }
        }
    }
}

impl Policy {
    /// By how many deviations the best candidate must be ahead of the second. Chosen with the local engine's evaluation
    /// set (`sparks faces eval`).
    const MARGIN: f32 = 0.42;

    /// A face does not become a template if it is nearly identical to one of the same person: in the uppermost sixth
    /// between the threshold and 1. Faces that are merely similar do: consolidation compares all of them.
    const DUPLICATE_PART: f32 = 6.0;

    /// Returns the margin for a model with this scale.
    pub fn margin(scale: Scale) -> f32 {
        scale.spread * Self::MARGIN
    }

    /// Returns the same policy for similarities of a model with this scale, unless the threshold is fixed.
    pub fn for_scale(&self, scale: Scale) -> Self {
        match self.threshold {
            Threshold::Fixed(_) => self.clone(),
            Threshold::Adaptive(_) => {
                Self { threshold: Threshold::Adaptive(scale), margin: Self::margin(scale), ..self.clone() }
            }
        }
    }

    /// Returns the same policy for similarities that Rekognition returns. It has no margin: above Rekognition's
    /// threshold nearly all similarities are close to 1, so the best candidate is the person.
    pub fn for_rekognition(self, threshold: Threshold) -> Self {
        Self { threshold, margin: 0.0, ..self }
    }

    /// Returns the verdict on a face with these candidates among so many persons; `None` if no candidate reaches the
    /// threshold.
    pub fn identify(&self, candidates: &[Candidate], persons: usize) -> Option<Verdict> {
        self.match_rule(persons).identify(candidates)
    }

    /// Returns whether a face is good enough for a template or a new person.
    pub fn is_template_quality(&self, face: &DetectedFace) -> bool {
        face.quality.size >= self.min_size
            && face.quality.sharpness >= self.min_sharpness
            && face.confidence >= self.min_confidence
            && face.quality.turn.is_none_or(|turn| turn <= self.max_turn)
    }

    /// Returns the policy with its threshold among so many persons.
    pub(crate) fn match_rule(&self, persons: usize) -> MatchRule<'_> {
        MatchRule { policy: self, threshold: round(self.threshold.among(persons), 1e4) }
    }
}

/// The policy for a given number of persons.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatchRule<'a> {
    policy: &'a Policy,
    /// The similarity from which a face matches a person.
    pub threshold: f32,
}

impl MatchRule<'_> {
    /// Returns the best candidate above the threshold, or `Ambiguous` where the second is within the margin.
    pub fn identify(&self, candidates: &[Candidate]) -> Option<Verdict> {
        let by_similarity =
            |a: &&Candidate, b: &&Candidate| a.similarity.total_cmp(&b.similarity).then(b.person.cmp(&a.person));
        let best =
            candidates.iter().filter(|candidate| candidate.similarity >= self.threshold).max_by(by_similarity)?;
        let mut others = candidates.iter().filter(|candidate| candidate.person != best.person);
        let has_rival = others.any(|candidate| best.similarity - candidate.similarity < self.policy.margin);
        Some(if has_rival { Verdict::Ambiguous } else { Verdict::Matched(best.person) })
    }

    /// Returns the candidates that an event records.
    pub fn recorded_candidates(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        candidates.truncate(self.policy.candidates);
        for candidate in &mut candidates {
            candidate.similarity = round(candidate.similarity, 1e4);
        }
        candidates
    }

    /// Returns whether a face is good enough for a template or a new person.
    pub fn is_template_quality(&self, face: &DetectedFace) -> bool {
        self.policy.is_template_quality(face)
    }

    /// Returns whether the face of a matched person becomes another template: it is good, and not nearly identical to
    /// one they have.
    pub fn is_new_template(&self, face: &DetectedFace, candidates: &[Candidate], person: PersonId) -> bool {
        let nearest = candidates.iter().find(|candidate| candidate.person == person);
        let highest = 1.0 - (1.0 - self.threshold) / Policy::DUPLICATE_PART;
        self.is_template_quality(face) && nearest.is_some_and(|nearest| nearest.similarity <= highest)
    }
}
