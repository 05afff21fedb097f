//! A service finds the faces, and an engine of our own says what they look like.

use std::sync::Arc;

use async_trait::async_trait;
use sparks_domain::{SeenFace, same_faces};

use crate::{AnalyzeError, FaceAnalyzer, Pixels};

/// A service whose faces get the signatures of a companion. A service gives none out, and somebody has to tell new persons apart
/// before the service can; and whoever leaves the service takes everybody along.
pub struct Accompanied {
    service: Arc<dyn FaceAnalyzer>,
    companion: Arc<dyn FaceAnalyzer>,
}

impl Accompanied {
    /// The faces of the service, with the signatures of the companion.
    pub fn new(service: Arc<dyn FaceAnalyzer>, companion: Arc<dyn FaceAnalyzer>) -> Self {
        Self { service, companion }
    }
}

#[async_trait]
impl FaceAnalyzer for Accompanied {
    fn name(&self) -> &str {
        self.service.name()
    }

    async fn analyze(&self, pixels: Arc<Pixels>) -> Result<Vec<SeenFace>, AnalyzeError> {
        let mut faces = self.service.analyze(Arc::clone(&pixels)).await?;
        if !faces.is_empty() {
            match self.companion.analyze(pixels).await {
                Ok(seen) => describe(&mut faces, seen),
                // The service decides; what the companion cannot tell, the service is asked.
                Err(AnalyzeError::Crashed(crash)) => tracing::warn!(%crash, "the companion gave up on a photo"),
                Err(error) => return Err(error),
            }
        }
        Ok(faces)
    }

    fn is_paid(&self) -> bool {
        self.service.is_paid()
    }

    async fn check(&self) -> Result<(), AnalyzeError> {
        self.service.check().await
    }
}

/// Gives each face the signature of the face that covers it best.
fn describe(faces: &mut [SeenFace], mut seen: Vec<SeenFace>) {
    let bounds = |faces: &[SeenFace]| faces.iter().map(|face| face.bounds).collect::<Vec<_>>();
    for (n, m) in same_faces(&bounds(faces), &bounds(&seen)) {
        faces[n].model = std::mem::take(&mut seen[m].model);
        faces[n].signature = seen[m].signature.take();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sparks_domain::{Quality, Signature};

    use super::*;

    fn face(bounds: [f32; 4], signature: Option<f32>) -> SeenFace {
        SeenFace {
            bounds: bounds.into(),
            landmarks: Vec::new(),
            quality: Quality { size: 50.0, sharpness: 1.0, turn: None },
            confidence: 1.0,
            attributes: BTreeMap::new(),
            model: if signature.is_some() { "companion" } else { "service" }.into(),
            signature: signature.and_then(|angle| Signature::quantise(&[angle.cos(), angle.sin()])),
        }
    }

    #[test]
    fn each_face_is_described_by_the_face_that_covers_it_best() {
        let mut faces =
            vec![face([0.1, 0.1, 0.2, 0.2], None), face([0.2, 0.1, 0.2, 0.2], None), face([0.8, 0.8, 0.1, 0.1], None)];
        let seen = vec![face([0.21, 0.1, 0.2, 0.2], Some(0.3)), face([0.12, 0.1, 0.2, 0.2], Some(0.9))];
        describe(&mut faces, seen.clone());
        assert_eq!(faces[0].signature, seen[1].signature);
        assert_eq!(faces[1].signature, seen[0].signature);
        assert_eq!((faces[2].signature.clone(), faces[2].model.as_str()), (None, "service"), "nobody else saw it");
        assert_eq!(faces[0].model, "companion");
    }
}
