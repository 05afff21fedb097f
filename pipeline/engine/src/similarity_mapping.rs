//! Similarities of the gallery on the scale of a face service.

/// Maps similarities of the gallery to those of the service: piecewise linear, threshold to threshold, 0 to 0 and 1 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimilarityMapping {
    /// The threshold of the gallery.
    pub gallery: f32,
    /// The threshold of the service.
    pub service: f32,
}

impl SimilarityMapping {
    /// Returns the similarity on the service's scale.
    pub fn map(self, similarity: f32) -> f32 {
        let Self { gallery, service } = self;
        if gallery == service {
            similarity
        } else if similarity >= gallery {
            service + (similarity - gallery) / (1.0 - gallery).max(f32::EPSILON) * (1.0 - service)
        } else {
            (similarity / gallery.max(f32::EPSILON) * service).max(0.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_keeps_thresholds_and_ends() {
        let mapping = SimilarityMapping { gallery: 0.6, service: 0.8 };
        let map = |similarity| (mapping.map(similarity) * 1000.0).round() / 1000.0;
        assert_eq!([-0.5, 0.0, 0.3, 0.6, 0.8, 1.0].map(map), [0.0, 0.0, 0.4, 0.8, 0.9, 1.0]);
        assert_eq!(SimilarityMapping { gallery: 0.6, service: 0.6 }.map(0.123), 0.123);
    }
}
