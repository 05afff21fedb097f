//! Collections and their indexed faces.

use std::{collections::BTreeMap, time::Instant};

use serde_json::{Map, Value, json};
use sparks_domain::{FaceBox, Signature};
use uuid::Uuid;

use crate::{
    face_detail::{bounding_box, confidence},
    face_model::Model,
    photo_analyzer::AnalyzedFace,
};

/// An indexed face. Not `Debug`, so that signatures do not get into logs.
pub struct IndexedFace {
    /// The image ID, derived from the content of the file.
    pub image: Uuid,
    /// The `ExternalImageId` of the client.
    pub external: Option<String>,
    pub bounds: FaceBox,
    /// 0 to 100.
    pub confidence: f32,
    pub signature: Signature,
    /// The time of indexing; absent if that was before the start of this server.
    pub indexed_at: Option<Instant>,
}

/// A collection with its faces.
pub struct Collection {
    pub id: String,
    /// Seconds since 1970.
    pub created: f64,
    pub tags: BTreeMap<String, String>,
    pub faces: BTreeMap<Uuid, IndexedFace>,
}

impl IndexedFace {
    /// Returns whether it is the same face of the same image with the same external ID.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.image, &self.external, self.bounds) == (other.image, &other.external, other.bounds)
    }

    /// Returns the `Face` structure of responses.
    pub fn describe(&self, id: Uuid, model: &Model) -> Value {
        let members = [
            ("FaceId", json!(id.to_string())),
            ("BoundingBox", bounding_box(self.bounds)),
            ("ImageId", json!(self.image.to_string())),
            ("Confidence", json!(self.confidence)),
            ("IndexFacesModelVersion", json!(model.version())),
        ];
        let external = self.external.as_ref().map(|external| ("ExternalImageId", json!(external)));
        let face: Map<String, Value> =
            members.into_iter().chain(external).map(|(name, value)| (name.to_owned(), value)).collect();
        face.into()
    }
}

/// Returns at most `max` matches with at least this similarity, best first.
pub fn nearest_faces<'a>(
    faces: impl Iterator<Item = (Uuid, &'a IndexedFace)>,
    signature: &Signature,
    model: &Model,
    threshold: f32,
    max: usize,
) -> Vec<Value> {
    let score = |(id, face): (Uuid, &'a IndexedFace)| (model.similarity(signature, &face.signature), id, face);
    let mut matches: Vec<_> = faces.map(score).filter(|(similarity, ..)| *similarity >= threshold).collect();
    matches.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    matches.truncate(max);
    let describe = |(similarity, id, face): (f32, Uuid, &IndexedFace)| json!({ "Similarity": similarity, "Face": face.describe(id, model) });
    matches.into_iter().map(describe).collect()
}

/// Converts an analyzed face; `None` if the engine computed no signature.
pub fn to_indexed_face(analyzed: &AnalyzedFace, image: Uuid, external: Option<&str>) -> Option<IndexedFace> {
    Some(IndexedFace {
        image,
        external: external.map(str::to_owned),
        bounds: analyzed.face.bounds,
        confidence: confidence(&analyzed.face),
        signature: analyzed.face.signature.clone()?,
        indexed_at: Some(Instant::now()),
    })
}
