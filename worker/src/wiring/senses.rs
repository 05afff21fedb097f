//! Who finds faces, and who knows whose they are.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use sparks_aws::{Rekognition, RekognitionCollection, RekognitionFaces, SsmSecrets};
use sparks_config::{Analyzer, Companion, FaceModel, Faces, Index, Settings};
use sparks_domain::{Policy, Threshold};
use sparks_engine::{
    Accompanied, AskedService, Collection, Cpu, FaceAnalyzer, FaceEngine, FaceIndex, Failure, GalleryIndex, LearnsBy,
    NoFaces, OnCpu, Portraits, Secret, Secrets, ServiceIndex, ServiceRules, Store,
};
use sparks_faces::{Embedders, Local, LocalOptions, Synthetic};

use sparks_pinecone::{Access, Pinecone};
use sparks_rekognition::Model;

use super::{WrongUse, clock, connection, darkroom, optional};
use crate::{backend::Backend, telemetry::metrics::Metrics};

/// Markers differ by as much as was asked for, so nothing measured fits them.
const SYNTHETIC_THRESHOLD: f32 = 0.6;

/// From this on Rekognition itself calls two faces a match.
const REKOGNITION_THRESHOLD: f32 = 0.8;

/// By how many deviations the nearest person must be nearer than the next.
const MARGIN: f32 = 0.42;

/// Similarities that clients are told mean the same in every collection, so that its size is a guess.
const PERSONS_IN_A_COLLECTION: usize = 1000;

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
            (Index::Pinecone, _) => match pinecone(settings).await? {
                Some(pinecone) => Some(Arc::new(pinecone.metered(Arc::new(metrics.clone())))),
                None => None,
            },
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

/// The collection of Rekognition that knows persons, if one does.
pub fn collection(settings: &Settings) -> Result<Option<&str>, WrongUse> {
    Ok((pair(settings)?.1 == Index::Rekognition).then_some(settings.rekognition.collection.as_str()))
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

/// The Pinecone index that knows persons, if one does.
pub async fn pinecone(settings: &Settings) -> anyhow::Result<Option<Pinecone>> {
    if pair(settings)?.1 != Index::Pinecone {
        return Ok(None);
    }
    let access = Access {
        host: settings.pinecone.host.clone(),
        key: pinecone_key(settings).await?,
        namespace: settings.pinecone.namespace.clone(),
    };
    Ok(Some(Pinecone::new(&access).map_err(|error| WrongUse(format!("[pinecone]: {error}")))?))
}

async fn pinecone_key(settings: &Settings) -> anyhow::Result<Secret> {
    if let Some(parameter) = optional(&settings.pinecone.key_parameter) {
        let secrets = SsmSecrets::new(&connection(settings).await);
        return secrets.secret(&parameter).await.context("pinecone.key_parameter");
    }
    let missing = "there is no key for Pinecone: set PINECONE_API_KEY, or pinecone.key_parameter to a parameter of SSM";
    Ok(Secret::new(std::env::var("PINECONE_API_KEY").map_err(|_| WrongUse(missing.into()))?))
}

fn local(settings: &Settings, cpu: &Cpu) -> Result<Arc<dyn FaceAnalyzer>, WrongUse> {
    let options = local_options(settings)?;
    let load = move || Local::load(options).map_err(|error| error.to_string());
    Ok(Arc::new(OnCpu::new("local", load, cpu.clone())))
}

fn synthetic(cpu: &Cpu) -> Arc<dyn FaceAnalyzer> {
    Arc::new(OnCpu::new("synthetic", || Ok(Synthetic), cpu.clone()))
}

/// Whom Rekognition's clients ask, and how to read what it tells.
pub fn recogniser(settings: &Settings) -> anyhow::Result<(Arc<dyn FaceEngine>, Model)> {
    // How many networks, and which edition: to clients a version is digits and dots.
    let (engine, version): (Arc<dyn FaceEngine>, _) = match settings.faces.analyzer {
        Analyzer::Off => return Err(WrongUse("faces.analyzer is off: there is nobody to look for faces".into()).into()),
        Analyzer::Rekognition => {
            let why =
                "faces.analyzer is \"rekognition\", which is what clients take this server for: pass --faces local";
            return Err(WrongUse(why.into()).into());
        }
        Analyzer::Synthetic => (Arc::new(Synthetic), "0.1"),
        Analyzer::Local => {
            let version = match embedders(&settings.faces.models)? {
                Embedders::Dlib => "1.1",
                Embedders::Both => "2.1",
            };
            (Arc::new(local_engine(settings)?), version)
        }
    };
    let threshold = gallery_policy(settings)?.threshold.among(PERSONS_IN_A_COLLECTION);
    let model = Model::new(version, threshold).map_err(|error| WrongUse(format!("faces.threshold: {error}")))?;
    Ok((engine, model))
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

/// How long the signatures are that faces have.
pub fn dimensions(settings: &Settings) -> Result<usize, WrongUse> {
    match is_synthetic(settings) {
        true => Ok(sparks_faces::DIMENSIONS),
        false => Ok(embedders(&settings.faces.models)?.dimensions()),
    }
}

fn is_synthetic(settings: &Settings) -> bool {
    match settings.faces.analyzer {
        Analyzer::Synthetic => true,
        Analyzer::Rekognition => settings.faces.companion == Companion::Synthetic,
        Analyzer::Local | Analyzer::Off => false,
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
    let is_synthetic = is_synthetic(settings);
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
