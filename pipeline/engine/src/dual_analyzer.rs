//! Two analyzers combined: the primary detects faces, the secondary computes their signatures.

use std::sync::Arc;

use async_trait::async_trait;
use sparks_domain::{DetectedFace, same_faces};

use crate::{AnalyzeError, FaceAnalyzer, Pixels};

/// Detects faces with a face service (primary) and computes their signatures with a local engine (secondary). A service returns
/// no signatures. They are needed to match persons that the service has not indexed yet (eventual consistency), and to move to
/// another engine later without losing the persons.
pub struct DualAnalyzer {
    primary: Arc<dyn FaceAnalyzer>,
    secondary: Arc<dyn FaceAnalyzer>,
}

impl DualAnalyzer {
    /// Creates an analyzer with the faces of `primary` and the signatures of `secondary`.
    pub fn new(primary: Arc<dyn FaceAnalyzer>, secondary: Arc<dyn FaceAnalyzer>) -> Self {
        Self { primary, secondary }
    }
}

#[async_trait]
impl FaceAnalyzer for DualAnalyzer {
    fn name(&self) -> &str {
        self.primary.name()
    }

    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<DetectedFace>, AnalyzeError> {
        let mut faces = self.primary.analyze(Arc::clone(&pixels)).await?;
        if !faces.is_empty() {
            match self.secondary.analyze(pixels).await {
                Ok(described) => copy_signatures(&mut faces, described),
                // Faces without a signature are compared by the service instead.
                Err(AnalyzeError::Panicked(panic)) => {
                    tracing::warn!(%panic, "secondary face analyzer panicked; faces have no signatures");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(faces)
    }

    fn is_paid(&self) -> bool {
        self.primary.is_paid()
    }

    async fn check(&self) -> Result<(), AnalyzeError> {
        self.primary.check().await
    }
}

/// Copies to each face the signature of the face that overlaps it most.
fn copy_signatures(faces: &mut [DetectedFace], mut described: Vec<DetectedFace>) {
    let bounds = |faces: &[DetectedFace]| faces.iter().map(|face| face.bounds).collect::<Vec<_>>();
    for (n, m) in same_faces(&bounds(faces), &bounds(&described)) {
        faces[n].model = std::mem::take(&mut described[m].model);
        faces[n].signature = described[m].signature.take();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sparks_domain::{Quality, Signature};

    use super::*;

    fn face(bounds: [f32; 4], signature: Option<f32>) -> DetectedFace {
        DetectedFace {
            bounds: bounds.into(),
            landmarks: Vec::new(),
            quality: Quality { size: 50.0, sharpness: 1.0, turn: None },
            confidence: 1.0,
            attributes: BTreeMap::new(),
            model: if signature.is_some() { "secondary" } else { "primary" }.into(),
            signature: signature.and_then(|angle| Signature::quantise(&[angle.cos(), angle.sin()])),
        }
    }

    #[test]
    fn each_face_gets_the_signature_of_the_face_that_overlaps_it_most() {
        let mut faces =
            vec![face([0.1, 0.1, 0.2, 0.2], None), face([0.2, 0.1, 0.2, 0.2], None), face([0.8, 0.8, 0.1, 0.1], None)];
        let described = vec![face([0.21, 0.1, 0.2, 0.2], Some(0.3)), face([0.12, 0.1, 0.2, 0.2], Some(0.9))];
        copy_signatures(&mut faces, described.clone());
        assert_eq!(faces[0].signature, described[1].signature);
        assert_eq!(faces[1].signature, described[0].signature);
        assert_eq!((faces[2].signature.clone(), faces[2].model.as_str()), (None, "primary"), "no overlapping face");
        assert_eq!(faces[0].model, "secondary");
    }
}
