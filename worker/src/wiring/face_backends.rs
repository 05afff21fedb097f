//! The face analyzer and the face index that the settings select, and the matching policy that fits them.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use sparks_aws::{Rekognition, RekognitionAnalyzer, RekognitionCollection, SsmSecrets};
use sparks_config::{Analyzer, FaceModel, Faces, Index, SecondaryAnalyzer, Settings};
use sparks_domain::{Gallery, Policy, Threshold};
use sparks_engine::{
    CpuPool, CropLoader, DualAnalyzer, EnrollmentMode, FaceAnalyzer, FaceCollection, FaceIndex, GalleryIndex, NoFaces,
    OnCpu, SearchService, Secret, Secrets, ServiceIndex, ServiceIndexConfig, Store,
};
use sparks_faces::{Embedders, LocalEngine, LocalOptions, SyntheticEngine};

use sparks_pinecone::{Pinecone, PineconeConfig};

use super::{UsageError, clock, cloud::connection, image_processor, optional};
use crate::{backend::Backend, telemetry::metrics::Metrics};

/// The face analyzer, and the collection of an external service if one is the face index.
#[derive(Clone)]
pub struct FaceBackends {
    /// Detects faces and computes their embeddings.
    pub analyzer: Arc<dyn FaceAnalyzer>,
    /// Collection of enrolled faces at Rekognition or Pinecone.
    pub collection: Option<Arc<dyn FaceCollection>>,
}

impl FaceBackends {
    /// Builds them from the settings. Called before a backend is opened, so that a wrong setting creates nothing.
    pub async fn from_settings(settings: &Settings, cpu: &CpuPool, metrics: &Metrics) -> anyhow::Result<Self> {
        let (analyzer, index) = analyzer_and_index(settings)?;
        let rekognition = match analyzer == Analyzer::Rekognition || index == Index::Rekognition {
            true => Some(rekognition(settings, cpu, metrics).await),
            false => None,
        };
        let collection: Option<Arc<dyn FaceCollection>> = match (index, &rekognition) {
            (Index::Rekognition, Some(service)) => Some(Arc::new(RekognitionCollection::new(service.clone()))),
            (Index::Pinecone, _) => match pinecone(settings).await? {
                Some(pinecone) => Some(Arc::new(pinecone.with_meter(Arc::new(metrics.clone())))),
                None => None,
            },
            _ => None,
        };
        let analyzer = match (analyzer, rekognition) {
            (Analyzer::Rekognition, Some(service)) => {
                let service: Arc<dyn FaceAnalyzer> =
                    Arc::new(RekognitionAnalyzer::new(service, settings.faces.attributes));
                match settings.faces.secondary_analyzer {
                    SecondaryAnalyzer::Off => service,
                    SecondaryAnalyzer::Local => Arc::new(DualAnalyzer::new(service, local(settings, cpu)?)),
                    SecondaryAnalyzer::Synthetic => Arc::new(DualAnalyzer::new(service, synthetic(cpu))),
                }
            }
            (Analyzer::Local, _) => local(settings, cpu)?,
            (Analyzer::Synthetic, _) => synthetic(cpu),
            (Analyzer::Off | Analyzer::Rekognition, _) => Arc::new(NoFaces),
        };
        Ok(Self { analyzer, collection })
    }

    /// Selects the models that persons were enrolled with, where the settings leave it open ([`enrolled_models`]).
    pub async fn for_enrolled_persons(
        self,
        settings: &mut Settings,
        index: &GalleryIndex,
        cpu: &CpuPool,
        metrics: &Metrics,
    ) -> anyhow::Result<Self> {
        let Some(models) = enrolled_models(&settings.faces, &index.state().gallery) else { return Ok(self) };
        tracing::info!(
            ?models,
            "persons were enrolled with models that are not the most accurate; `sparks redecide` moves them, names stay"
        );
        settings.faces.models = models;
        Self::from_settings(settings, cpu, metrics).await
    }

    /// Returns the service whose similarities are not our cosines, so that its answers are compared by thresholds of
    /// their own.
    pub fn search_service(&self, settings: &Settings) -> Result<Option<SearchService>, UsageError> {
        let is_rekognition = analyzer_and_index(settings)?.1 == Index::Rekognition;
        let Some(collection) = self.collection.as_ref().filter(|_| is_rekognition) else { return Ok(None) };
        let (threshold, gallery_threshold) = (policy(settings)?.threshold, gallery_policy(settings)?.threshold);
        Ok(Some(SearchService { collection: Arc::clone(collection), threshold, gallery_threshold }))
    }

    /// Returns the face index: the gallery alone, or the service together with the gallery.
    pub fn index(
        &self,
        settings: &Settings,
        backend: &Backend,
        cpu: &CpuPool,
        gallery: Arc<GalleryIndex>,
    ) -> Result<Arc<dyn FaceIndex>, UsageError> {
        let Some(collection) = &self.collection else { return Ok(gallery) };
        let store = Arc::clone(&backend.store) as Arc<dyn Store>;
        let (objects, image_processor) = (Arc::clone(&backend.objects), image_processor(settings));
        let crops =
            CropLoader::new(Arc::clone(&store), objects, image_processor, cpu.clone(), settings.limits.max_bytes);
        let is_rekognition = analyzer_and_index(settings)?.1 == Index::Rekognition;
        let config = ServiceIndexConfig {
            candidates: settings.faces.candidates,
            recent: Duration::from_secs(settings.faces.recent_seconds),
            threshold: policy(settings)?.threshold,
            gallery_threshold: if is_rekognition { Some(gallery_policy(settings)?.threshold) } else { None },
            enrollment_mode: if is_rekognition { EnrollmentMode::Pixels } else { EnrollmentMode::Signatures },
        };
        Ok(Arc::new(ServiceIndex::new(gallery, Arc::clone(collection), store, crops, clock(), config)))
    }
}

/// Returns analyzer and index, or an error if they cannot work together.
fn analyzer_and_index(settings: &Settings) -> Result<(Analyzer, Index), UsageError> {
    let analyzer = settings.faces.analyzer;
    let index = match (analyzer, settings.faces.index) {
        (Analyzer::Rekognition, Index::Auto) => Index::Rekognition,
        (_, Index::Auto) => Index::Gallery,
        (_, index) => index,
    };
    let problem = match (analyzer, index) {
        (Analyzer::Rekognition, Index::Gallery) => {
            "Rekognition returns no embeddings of the faces it detects, so the gallery cannot match them: set faces.index to \
             \"rekognition\", or faces.analyzer to \"local\""
        }
        (Analyzer::Rekognition, Index::Pinecone) => {
            "Rekognition returns no embeddings of the faces it detects, so Pinecone cannot match them: set faces.index to \
             \"rekognition\", or faces.analyzer to \"local\""
        }
        (Analyzer::Off, Index::Rekognition | Index::Pinecone) => {
            "faces.analyzer is \"off\", so there are no faces to search at a service: set faces.analyzer, or set faces.index to \
             \"gallery\""
        }
        (_, Index::Pinecone) if optional(&settings.pinecone.host).is_none() => {
            "faces.index is \"pinecone\" but pinecone.host is empty: set pinecone.host to the host of the index"
        }
        _ => return Ok((analyzer, index)),
    };
    Err(UsageError(problem.into()))
}

/// Returns the name of the Rekognition collection if it is the face index.
pub fn rekognition_collection(settings: &Settings) -> Result<Option<&str>, UsageError> {
    Ok((analyzer_and_index(settings)?.1 == Index::Rekognition).then_some(settings.rekognition.collection.as_str()))
}

/// Returns the face settings without any service: embeddings come from a local engine, matches from the gallery.
pub fn local_analyzer_only(faces: &Faces) -> Faces {
    let analyzer = match (faces.analyzer, faces.secondary_analyzer) {
        (Analyzer::Rekognition, SecondaryAnalyzer::Synthetic) => Analyzer::Synthetic,
        (Analyzer::Rekognition, SecondaryAnalyzer::Local | SecondaryAnalyzer::Off) => Analyzer::Local,
        (analyzer, _) => analyzer,
    };
    let threshold = if faces.analyzer == Analyzer::Rekognition { 0.0 } else { faces.threshold };
    Faces { analyzer, index: Index::Gallery, threshold, ..faces.clone() }
}

async fn rekognition(settings: &Settings, cpu: &CpuPool, metrics: &Metrics) -> Rekognition {
    let rekognition = &settings.rekognition;
    Rekognition::new(
        &connection(settings).await,
        &rekognition.collection,
        rekognition.calls_per_second,
        image_processor(settings),
        cpu.clone(),
        Arc::new(metrics.clone()),
    )
}

/// Returns the Pinecone client if Pinecone is the face index.
pub async fn pinecone(settings: &Settings) -> anyhow::Result<Option<Pinecone>> {
    if analyzer_and_index(settings)?.1 != Index::Pinecone {
        return Ok(None);
    }
    let config = PineconeConfig {
        host: settings.pinecone.host.clone(),
        key: pinecone_key(settings).await?,
        namespace: settings.pinecone.namespace.clone(),
    };
    Ok(Some(Pinecone::new(&config).map_err(|error| UsageError(format!("[pinecone]: {error}")))?))
}

async fn pinecone_key(settings: &Settings) -> anyhow::Result<Secret> {
    if let Some(parameter) = optional(&settings.pinecone.key_parameter) {
        let secrets = SsmSecrets::new(&connection(settings).await);
        return secrets
            .secret(&parameter)
            .await
            .context("failed to read the Pinecone API key (pinecone.key_parameter)");
    }
    let missing = "no API key for Pinecone: set PINECONE_API_KEY, or set pinecone.key_parameter to an SSM parameter";
    Ok(Secret::new(std::env::var("PINECONE_API_KEY").map_err(|_| UsageError(missing.into()))?))
}

fn local(settings: &Settings, cpu: &CpuPool) -> Result<Arc<dyn FaceAnalyzer>, UsageError> {
    let options = local_options(settings)?;
    let load = move || LocalEngine::load(options).map_err(|error| error.to_string());
    Ok(Arc::new(OnCpu::new("local", load, cpu.clone())))
}

fn synthetic(cpu: &CpuPool) -> Arc<dyn FaceAnalyzer> {
    Arc::new(OnCpu::new("synthetic", || Ok(SyntheticEngine), cpu.clone()))
}

/// Loads the face models built into the binary.
pub fn local_engine(settings: &Settings) -> anyhow::Result<LocalEngine> {
    LocalEngine::load(local_options(settings)?).context("failed to load the face models")
}

fn local_options(settings: &Settings) -> Result<LocalOptions, UsageError> {
    let faces = &settings.faces;
    Ok(LocalOptions { models: embedders(&faces.models)?, mirror: faces.mirror, attributes: faces.attributes })
}

/// Returns the embedding models that the settings select.
pub fn embedders(models: &[FaceModel]) -> Result<Embedders, UsageError> {
    let has = |model| models.contains(&model);
    match (has(FaceModel::Sface), has(FaceModel::Dlib), has(FaceModel::Mobilefacenet)) {
        (false, false, false) => Ok(Embedders::default()),
        (true, false, true) => Ok(Embedders::SfaceMobilefacenet),
        (false, true, true) => Ok(Embedders::DlibMobilefacenet),
        (false, true, false) => Ok(Embedders::Dlib),
        (true, false, false) => Err(UsageError("faces.models: sface works only together with mobilefacenet".into())),
        (true, true, _) => Err(UsageError("faces.models: sface and dlib do not work together; remove one".into())),
        (false, false, true) => {
            Err(UsageError("faces.models: mobilefacenet works only together with sface or dlib; add one".into()))
        }
    }
}

/// The share of the persons enrolled with other models that must be enrolled with the default ones for these to be selected: some
/// persons have no face that is good enough for a template any more.
const MOVED_SHARE: f64 = 0.9;

/// Returns the setting for the models that persons were enrolled with, where the settings leave it open and these are not the
/// default ones: faces of another model would match no person.
pub fn enrolled_models(faces: &Faces, gallery: &Gallery) -> Option<Vec<FaceModel>> {
    if !faces.models.is_empty() {
        return None;
    }
    let enrolled = |embedders: Embedders| gallery.persons(embedders.model()).len();
    let other = Embedders::ALL.into_iter().rev().max_by_key(|embedders| enrolled(*embedders))?;
    let is_moved = enrolled(Embedders::default()) as f64 >= MOVED_SHARE * enrolled(other) as f64;
    (!is_moved).then(|| match other {
        Embedders::SfaceMobilefacenet => vec![FaceModel::Sface, FaceModel::Mobilefacenet],
        Embedders::DlibMobilefacenet => vec![FaceModel::Dlib, FaceModel::Mobilefacenet],
        Embedders::Dlib => vec![FaceModel::Dlib],
    })
}

/// Returns the number of dimensions of a face signature.
pub fn signature_dimensions(settings: &Settings) -> Result<usize, UsageError> {
    match is_synthetic(settings) {
        true => Ok(sparks_faces::DIMENSIONS),
        false => Ok(embedders(&settings.faces.models)?.dimensions()),
    }
}

fn is_synthetic(settings: &Settings) -> bool {
    match settings.faces.analyzer {
        Analyzer::Synthetic => true,
        Analyzer::Rekognition => settings.faces.secondary_analyzer == SecondaryAnalyzer::Synthetic,
        Analyzer::Local | Analyzer::Off => false,
    }
}

/// Returns the matching policy of the face index. A threshold of 0 in the settings selects the default of the model.
pub fn policy(settings: &Settings) -> Result<Policy, UsageError> {
    let policy = gallery_policy(settings)?;
    if analyzer_and_index(settings)?.1 != Index::Rekognition {
        return Ok(policy);
    }
    let threshold = match settings.faces.threshold as f32 {
        0.0 => Threshold::REKOGNITION,
        threshold => Threshold::Fixed(threshold),
    };
    Ok(policy.for_rekognition(threshold))
}

/// Returns the matching policy for cosine similarities of local embeddings.
pub fn gallery_policy(settings: &Settings) -> Result<Policy, UsageError> {
    let faces = &settings.faces;
    let is_synthetic = is_synthetic(settings);
    let model = if is_synthetic { sparks_faces::SYNTHETIC_MODEL } else { embedders(&faces.models)?.model() };
    let scale =
        sparks_faces::scale(model).ok_or_else(|| UsageError(format!("face model {model} has no similarity scale")))?;
    // A threshold set for Rekognition is not a cosine similarity.
    let configured = if analyzer_and_index(settings)?.1 == Index::Rekognition { 0.0 } else { faces.threshold as f32 };
    let threshold = match configured {
        0.0 if is_synthetic => Threshold::SYNTHETIC,
        0.0 => Threshold::Adaptive(scale),
        threshold => Threshold::Fixed(threshold),
    };
    Ok(Policy {
        threshold,
        margin: Policy::margin(scale),
        candidates: faces.candidates,
        min_size: faces.new_person.min_size_px as f32,
        min_sharpness: faces.new_person.min_sharpness as f32,
        min_confidence: faces.new_person.min_confidence as f32,
        max_turn: faces.new_person.max_turn as f32,
    })
}

#[cfg(test)]
mod tests {
    use sparks_domain::{PersonId, Signature};

    use super::*;

    fn gallery(enrolled: &[(Embedders, u32)]) -> Gallery {
        let signature = Signature::quantise(&[1.0, 2.0]).expect("a direction");
        let mut gallery = Gallery::default();
        for (embedders, persons) in enrolled {
            for person in (1..=*persons).filter_map(PersonId::new) {
                gallery.enroll(person, embedders.model(), &signature);
            }
        }
        gallery
    }

    #[test]
    fn models_stay_until_most_persons_are_moved() {
        use Embedders::{Dlib, DlibMobilefacenet, SfaceMobilefacenet};
        let open = Faces { models: Vec::new(), ..Settings::default().faces };
        let models = |enrolled: &[(Embedders, u32)]| enrolled_models(&open, &gallery(enrolled));
        let before = vec![FaceModel::Dlib, FaceModel::Mobilefacenet];
        assert_eq!(models(&[]), None, "no person: the most accurate");
        assert_eq!(models(&[(SfaceMobilefacenet, 3)]), None);
        assert_eq!(models(&[(Dlib, 3)]), Some(vec![FaceModel::Dlib]));
        assert_eq!(models(&[(DlibMobilefacenet, 20)]), Some(before.clone()));
        let half_moved = models(&[(DlibMobilefacenet, 20), (SfaceMobilefacenet, 17)]);
        assert_eq!(half_moved, Some(before.clone()), "redecide is not complete");
        assert_eq!(models(&[(DlibMobilefacenet, 20), (SfaceMobilefacenet, 18)]), None);
        let chosen = Faces { models: vec![FaceModel::Sface, FaceModel::Mobilefacenet], ..open.clone() };
        assert_eq!(enrolled_models(&chosen, &gallery(&[(Dlib, 3)])), None, "an explicit choice is used");
        for models in [before, vec![FaceModel::Dlib], chosen.models] {
            assert!(embedders(&models).is_ok());
        }
        assert!(embedders(&[FaceModel::Sface]).is_err() && embedders(&[FaceModel::Mobilefacenet]).is_err());
    }
}
