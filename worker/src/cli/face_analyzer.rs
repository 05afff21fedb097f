//! The choice of a face analyzer.

use clap::ValueEnum;

/// A value of `--faces`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnalyzerArg {
    /// Face models built into the binary
    Local,
    /// Test engine for the marker faces of `sparks synth`
    Synthetic,
    /// Amazon Rekognition
    Rekognition,
    /// No face analysis
    Off,
}

impl AnalyzerArg {
    /// Returns the value of the setting `faces.analyzer`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Synthetic => "synthetic",
            Self::Rekognition => "rekognition",
            Self::Off => "off",
        }
    }
}
