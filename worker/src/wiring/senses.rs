//! Who finds faces, and who knows whose they are.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use sparks_aws::{Rekognition, RekognitionCollection, RekognitionFaces};
use sparks_config::{Analyzer, Companion, FaceModel, Faces, Index, Settings};
use sparks_domain::{Policy, Threshold};
use sparks_engine::{
    Accompanied, AskedService, Collection, Cpu, FaceAnalyzer, FaceIndex, Failure, GalleryIndex, LearnsBy, NoFaces,
    OnCpu, Portraits, ServiceIndex, ServiceRules, Store,
};
use sparks_faces::{Embedders, Local, LocalOptions, Synthetic};

use super::{WrongUse, clock, connection, darkroom, optional};
use crate::{backend::Backend, telemetry::metrics::Metrics};

/// Markers differ by as much as was asked for, so nothing measured fits them.
const SYNTHETIC_THRESHOLD: f32 = 0.6;

/// From this on Rekognition itself calls two faces a match.
const REKOGNITION_THRESHOLD: f32 = 0.8;

/// By how many deviations the nearest person must be nearer than the next.
const MARGIN: f32 = 0.42;

/// Who finds faces, and the service that knows them, where one does.
#[derive(Clone)]
pub struct Senses {
    /// Who finds faces.
    pub analyzer: Arc<dyn FaceAnalyzer>,
    /// The service that knows them.
    pub collection: Option<Arc<dyn Collection>>,
}

impl Senses {
    /// As the settings have it. Asked before anything is opened, so that a wrong setting leaves nothing behind.
    pub async fn of(settings: &Settings, cpu: &Cpu, metrics: &Metrics) -> anyhow::Result<Self> {
        let (analyzer, index) = pair(settings)?;
        let rekognition = match analyzer == Analyzer::Rekognition || index == Index::Rekognition {
            true => Some(rekognition(settings, cpu, metrics).await),
            false => None,
        };
        let collection: Option<Arc<dyn Collection>> = match (index, &rekognition) {
            (Index::Rekognition, Some(service)) => Some(Arc::new(RekognitionCollection::new(service.clone()))),
            _ => None,
        };
        let analyzer = match (analyzer, rekognition) {
            (Analyzer::Rekognition, Some(service)) => {
                let service: Arc<dyn FaceAnalyzer> =
                    Arc::new(RekognitionFaces::new(service, settings.faces.attributes));
                match settings.faces.companion {
                    Companion::Off => service,
                    Companion::Local => Arc::new(Accompanied::new(service, local(settings, cpu)?)),
                    Companion::Synthetic => Arc::new(Accompanied::new(service, synthetic(cpu))),
                }
            }
            (Analyzer::Local, _) => local(settings, cpu)?,
            (Analyzer::Synthetic, _) => synthetic(cpu),
            (Analyzer::Off | Analyzer::Rekognition, _) => Arc::new(NoFaces),
        };
        Ok(Self { analyzer, collection })
    }

    /// Whether they can be asked now.
    pub async fn check(&self) -> Result<(), Failure> {
        self.analyzer.check().await?;
        match &self.collection {
            Some(collection) => Ok(collection.check().await?),
            None => Ok(()),
        }
    }

    /// The service, where its answers are no cosines of ours: then they count beside those.
    pub fn asked(&self, settings: &Settings) -> Result<Option<AskedService>, WrongUse> {
        let is_its_own = pair(settings)?.1 == Index::Rekognition;
        let Some(collection) = self.collection.as_ref().filter(|_| is_its_own) else { return Ok(None) };
        let (threshold, gallery_threshold) = (policy(settings)?.threshold, gallery_policy(settings)?.threshold);
        Ok(Some(AskedService { collection: Arc::clone(collection), threshold, gallery_threshold }))
    }

    /// Who knows persons: this gallery, or the service with the gallery beside it.
    pub fn index(
        &self,
        settings: &Settings,
        backend: &Backend,
        cpu: &Cpu,
        gallery: Arc<GalleryIndex>,
    ) -> Result<Arc<dyn FaceIndex>, WrongUse> {
        let Some(collection) = &self.collection else { return Ok(gallery) };
        let store = Arc::clone(&backend.store) as Arc<dyn Store>;
        let (objects, darkroom) = (Arc::clone(&backend.objects), darkroom(settings));
        let portraits = Portraits::new(Arc::clone(&store), objects, darkroom, cpu.clone(), settings.limits.max_bytes);
        let pictures = pair(settings)?.1 == Index::Rekognition;
        let rules = ServiceRules {
            candidates: settings.faces.candidates,
            recent: Duration::from_secs(settings.faces.recent_seconds),
            threshold: policy(settings)?.threshold,
            gallery_threshold: if pictures { Some(gallery_policy(settings)?.threshold) } else { None },
            learns_by: if pictures { LearnsBy::Pictures } else { LearnsBy::Signatures },
        };
        Ok(Arc::new(ServiceIndex::new(gallery, Arc::clone(collection), store, portraits, clock(), rules)))
    }
}

/// Who finds faces and who knows them, where the two go together.
fn pair(settings: &Settings) -> Result<(Analyzer, Index), WrongUse> {
    let analyzer = settings.faces.analyzer;
    let index = match (analyzer, settings.faces.index) {
        (Analyzer::Rekognition, Index::Auto) => Index::Rekognition,
        (_, Index::Auto) => Index::Gallery,
        (_, index) => index,
    };
    let refused = match (analyzer, index) {
        (Analyzer::Rekognition, Index::Gallery) => {
            "Rekognition tells nobody what the faces look like that it finds, so a gallery cannot know them: set faces.index to \
             \"rekognition\", or faces.analyzer to \"local\""
        }
        (Analyzer::Rekognition, Index::Pinecone) => {
            "Rekognition tells nobody what the faces look like that it finds, so Pinecone cannot know them: set faces.index to \
             \"rekognition\", or faces.analyzer to \"local\""
        }
        (Analyzer::Off, Index::Rekognition | Index::Pinecone) => {
            "nobody looks for faces, so there is nothing to ask a service: set faces.analyzer, or faces.index to \"gallery\""
        }
        (_, Index::Pinecone) if optional(&settings.pinecone.host).is_none() => {
            "faces.index is \"pinecone\" and pinecone.host is empty: set it to the index's host"
        }
        _ => return Ok((analyzer, index)),
    };
    Err(WrongUse(refused.into()))
}

/// The same without any service: what faces look like to us is told by an engine of ours.
pub fn without_service(faces: &Faces) -> Faces {
    let analyzer = match (faces.analyzer, faces.companion) {
        (Analyzer::Rekognition, Companion::Synthetic) => Analyzer::Synthetic,
        (Analyzer::Rekognition, Companion::Local | Companion::Off) => Analyzer::Local,
        (analyzer, _) => analyzer,
    };
    let threshold = if faces.analyzer == Analyzer::Rekognition { 0.0 } else { faces.threshold };
    Faces { analyzer, index: Index::Gallery, threshold, ..faces.clone() }
}

async fn rekognition(settings: &Settings, cpu: &Cpu, metrics: &Metrics) -> Rekognition {
    let rekognition = &settings.rekognition;
    Rekognition::new(
        &connection(settings).await,
        &rekognition.collection,
        rekognition.calls_per_second,
        darkroom(settings),
        cpu.clone(),
        Arc::new(metrics.clone()),
    )
}

fn local(settings: &Settings, cpu: &Cpu) -> Result<Arc<dyn FaceAnalyzer>, WrongUse> {
    let options = local_options(settings)?;
    let load = move || Local::load(options).map_err(|error| error.to_string());
    Ok(Arc::new(OnCpu::new("local", load, cpu.clone())))
}

fn synthetic(cpu: &Cpu) -> Arc<dyn FaceAnalyzer> {
    Arc::new(OnCpu::new("synthetic", || Ok(Synthetic), cpu.clone()))
}

/// The engine inside the binary.
pub fn local_engine(settings: &Settings) -> anyhow::Result<Local> {
    Local::load(local_options(settings)?).context("cannot load the face models")
}

fn local_options(settings: &Settings) -> Result<LocalOptions, WrongUse> {
    let faces = &settings.faces;
    Ok(LocalOptions { models: embedders(&faces.models)?, mirror: faces.mirror, attributes: faces.attributes })
}

fn embedders(models: &[FaceModel]) -> Result<Embedders, WrongUse> {
    match (models.contains(&FaceModel::Dlib), models.contains(&FaceModel::Mobilefacenet)) {
        (true, true) => Ok(Embedders::Both),
        (true, false) => Ok(Embedders::Dlib),
        _ => Err(WrongUse("faces.models: mobilefacenet needs dlib beside it; add \"dlib\"".into())),
    }
}

/// When a face is somebody, to whoever is asked. What the operator does not settle, the model's own measure does.
pub fn policy(settings: &Settings) -> Result<Policy, WrongUse> {
    let policy = gallery_policy(settings)?;
    if pair(settings)?.1 != Index::Rekognition {
        return Ok(policy);
    }
    let threshold = match settings.faces.threshold as f32 {
        0.0 => REKOGNITION_THRESHOLD,
        threshold => threshold,
    };
    // The nearest is the person: Rekognition's measure leaves no room above its threshold.
    Ok(Policy { threshold: Threshold::Fixed(threshold), margin: 0.0, ..policy })
}

/// When two faces are one person, by what they look like to a model of ours.
pub fn gallery_policy(settings: &Settings) -> Result<Policy, WrongUse> {
    let faces = &settings.faces;
    let is_synthetic = match faces.analyzer {
        Analyzer::Synthetic => true,
        Analyzer::Rekognition => faces.companion == Companion::Synthetic,
        Analyzer::Local | Analyzer::Off => false,
    };
    let model = if is_synthetic { sparks_faces::SYNTHETIC_MODEL } else { embedders(&faces.models)?.model() };
    let scale = sparks_faces::scale(model).ok_or_else(|| WrongUse(format!("model {model} has no scale")))?;
    // What is settled for Rekognition is no cosine.
    let settled = if pair(settings)?.1 == Index::Rekognition { 0.0 } else { faces.threshold as f32 };
    let threshold = match settled {
        0.0 if is_synthetic => Threshold::Fixed(SYNTHETIC_THRESHOLD),
        0.0 => Threshold::Grows(scale),
        threshold => Threshold::Fixed(threshold),
    };
    Ok(Policy {
        threshold,
        margin: scale.spread * MARGIN,
        candidates: faces.candidates,
        min_size: faces.founding.min_size as f32,
        min_sharpness: faces.founding.min_sharpness as f32,
        min_confidence: faces.founding.min_confidence as f32,
        max_turn: faces.founding.max_turn as f32,
    })
}
