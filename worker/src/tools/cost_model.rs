//! Estimates the cost of face detection and search.

use sparks_config::{Analyzer, Faces, Index, Prices, SecondaryAnalyzer};
use sparks_engine::UsageTally;

/// A supported combination of face analyzer and face index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaceSetup {
    /// Rekognition detects faces and searches its collection.
    Rekognition,
    /// The local engine detects faces, and a Rekognition collection is searched.
    LocalWithRekognition,
    /// The local engine detects faces, and a Pinecone index is searched.
    LocalWithPinecone,
    /// The local engine detects faces, and the worker's own gallery is searched.
    Local,
}

/// Averages per photo.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhotoAverages {
    /// Detected faces.
    pub faces: f64,
    /// New persons.
    pub new_persons: f64,
    /// Enrolled faces.
    pub templates: f64,
}

/// The estimated requests, CPU time and cost of 1,000 photos.
#[derive(Debug, Clone, PartialEq)]
pub struct CostEstimate {
    /// Calls of each operation.
    pub calls: Vec<(&'static str, f64)>,
    /// CPU seconds.
    pub cpu_seconds: f64,
    /// Cost of calls and CPU time.
    pub usd: f64,
    /// Monthly cost of storing the enrolled faces.
    pub usd_per_month: f64,
}

const PHOTOS: f64 = 1000.0;

/// Storage of a face in Pinecone, in GB: 640 values of four bytes and the metadata.
const PINECONE_FACE_GB: f64 = 3e-6;

impl FaceSetup {
    /// All combinations.
    pub const ALL: [Self; 4] = [Self::Rekognition, Self::LocalWithRekognition, Self::LocalWithPinecone, Self::Local];

    /// Returns the combination that the settings select.
    pub fn of(faces: &Faces) -> Self {
        match (faces.analyzer, faces.index) {
            (Analyzer::Rekognition, _) => Self::Rekognition,
            (_, Index::Rekognition) => Self::LocalWithRekognition,
            (_, Index::Pinecone) => Self::LocalWithPinecone,
            (_, Index::Auto | Index::Gallery) => Self::Local,
        }
    }

    /// Returns the name in JSON.
    pub fn code(self) -> &'static str {
        match self {
            Self::Rekognition => "rekognition",
            Self::LocalWithRekognition => "local_and_rekognition",
            Self::LocalWithPinecone => "local_and_pinecone",
            Self::Local => "local",
        }
    }

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rekognition => "Rekognition with its collection",
            Self::LocalWithRekognition => "local engine with a Rekognition collection",
            Self::LocalWithPinecone => "local engine with Pinecone",
            Self::Local => "local engine with its gallery",
        }
    }

    /// Estimates the cost of 1,000 photos.
    pub fn estimate(self, averages: &PhotoAverages, secondary: SecondaryAnalyzer, prices: &Prices) -> CostEstimate {
        let [faces, new_persons, templates] =
            [averages.faces, averages.new_persons, averages.templates].map(|n| n * PHOTOS);
        let call = prices.rekognition_call;
        let (search, enroll) = (("SearchFacesByImage", faces), ("IndexFaces", new_persons));
        let (calls, usd, usd_per_month) = match self {
            Self::Rekognition => (
                vec![("DetectFaces", PHOTOS), search, enroll],
                (PHOTOS + faces + new_persons) * call,
                new_persons * prices.rekognition_face_month,
            ),
            Self::LocalWithRekognition => {
                (vec![search, enroll], (faces + new_persons) * call, new_persons * prices.rekognition_face_month)
            }
            Self::LocalWithPinecone => (
                vec![("query", faces), ("upsert", templates)],
                (faces * prices.pinecone_reads_per_query * prices.pinecone_million_reads
                    + templates * prices.pinecone_writes_per_upsert * prices.pinecone_million_writes)
                    / 1e6,
                templates * PINECONE_FACE_GB * prices.pinecone_gb_month,
            ),
            Self::Local => (Vec::new(), 0.0, 0.0),
        };
        // Beside Rekognition, the local engine computes the embeddings unless it is turned off.
        let is_local = self != Self::Rekognition || secondary == SecondaryAnalyzer::Local;
        let cpu_seconds = PHOTOS * prices.cpu_seconds_per_photo + faces * prices.cpu_seconds_per_face;
        let cpu_seconds = if is_local { cpu_seconds } else { 0.0 };
        CostEstimate { calls, cpu_seconds, usd: usd + cpu_seconds / 3600.0 * prices.cpu_hour, usd_per_month }
    }
}

impl PhotoAverages {
    /// Returns the averages over all photos that were analyzed; `None` if there are none.
    pub fn of(tally: &UsageTally) -> Option<Self> {
        let all = tally.total();
        let average = |count: u64, photos: u64| count as f64 / photos as f64;
        // A photo that is decided again has its faces detected again, but allocates its persons only once.
        (tally.photos > 0).then(|| Self {
            faces: average(all.faces, all.decisions),
            new_persons: average(all.new_persons, tally.photos),
            templates: average(all.templates, all.decisions),
        })
    }
}

#[cfg(test)]
mod tests {
    use sparks_config::Settings;

    use super::*;

    #[test]
    fn an_estimate_contains_the_calls_and_cpu_time_of_its_setup() {
        let settings = Settings::default();
        let averages = PhotoAverages { faces: 2.0, new_persons: 0.1, templates: 0.5 };
        let estimate = |setup: FaceSetup, secondary| setup.estimate(&averages, secondary, &settings.prices);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;

        let service = estimate(FaceSetup::Rekognition, SecondaryAnalyzer::Off);
        assert_eq!(service.calls, [("DetectFaces", 1000.0), ("SearchFacesByImage", 2000.0), ("IndexFaces", 100.0)]);
        assert!(
            near(service.usd, 3.1) && service.cpu_seconds == 0.0 && near(service.usd_per_month, 0.001),
            "{service:?}"
        );
        let local = estimate(FaceSetup::Local, SecondaryAnalyzer::Off);
        let seconds = 1000.0 * settings.prices.cpu_seconds_per_photo + 2000.0 * settings.prices.cpu_seconds_per_face;
        assert!(local.calls.is_empty() && near(local.cpu_seconds, seconds) && local.usd_per_month == 0.0);
        assert!(near(local.usd, seconds / 3600.0 * 0.04), "{local:?}");
        let both = estimate(FaceSetup::Rekognition, SecondaryAnalyzer::Local);
        assert!(near(both.usd, service.usd + local.usd), "the secondary analyzer costs CPU time");
        assert!(near(estimate(FaceSetup::LocalWithRekognition, SecondaryAnalyzer::Off).usd, 2.1 + local.usd));
        let pinecone = estimate(FaceSetup::LocalWithPinecone, SecondaryAnalyzer::Off);
        assert_eq!(pinecone.calls, [("query", 2000.0), ("upsert", 500.0)]);
        assert!(near(pinecone.usd, 2000.0 * 0.25 * 16e-6 + 500.0 * 5.0 * 4e-6 + local.usd), "{pinecone:?}");
    }

    #[test]
    fn the_settings_select_the_setup() {
        let faces = Settings::default().faces;
        let setup = |analyzer, index| FaceSetup::of(&Faces { analyzer, index, ..faces.clone() });
        assert_eq!(setup(Analyzer::Local, Index::Auto), FaceSetup::Local);
        assert_eq!(setup(Analyzer::Rekognition, Index::Auto), FaceSetup::Rekognition);
        assert_eq!(setup(Analyzer::Local, Index::Rekognition), FaceSetup::LocalWithRekognition);
        assert_eq!(setup(Analyzer::Local, Index::Pinecone), FaceSetup::LocalWithPinecone);
        assert_eq!(PhotoAverages::of(&UsageTally::default()), None);
    }
}
