//! Faces that are kept to be found again.

use std::{collections::BTreeMap, time::Instant};

use serde_json::{Map, Value, json};
use sparks_domain::{FaceBox, Signature};
use uuid::Uuid;

use crate::{detail::bounding_box, looker::Sight, model::Model};

/// A face that is kept. Not `Debug`: a signature is nobody's business.
pub struct KeptFace {
    /// The photo it was in: the same for the same file.
    pub image: Uuid,
    /// What the client calls that photo.
    pub external: Option<String>,
    pub bounds: FaceBox,
    /// 0 to 100.
    pub confidence: f32,
    pub signature: Signature,
    /// Since when it is kept; absent where that is before this server began.
    pub since: Option<Instant>,
}

/// A collection and the faces in it.
pub struct Collection {
    pub id: String,
    /// Seconds since 1970.
    pub created: f64,
    pub tags: BTreeMap<String, String>,
    pub faces: BTreeMap<Uuid, KeptFace>,
}

impl KeptFace {
    /// Whether it is the same face of the same photo, under the same name.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.image, &self.external, self.bounds) == (other.image, &other.external, other.bounds)
    }

    /// As answers describe it.
    pub fn describe(&self, id: Uuid, model: &Model) -> Value {
        let members = [
            ("FaceId", json!(id.to_string())),
            ("BoundingBox", bounding_box(self.bounds)),
            ("ImageId", json!(self.image.to_string())),
            ("Confidence", json!(self.confidence)),
            ("IndexFacesModelVersion", json!(model.version())),
        ];
        let external = self.external.as_ref().map(|external| ("ExternalImageId", json!(external)));
        let described: Map<String, Value> =
            members.into_iter().chain(external).map(|(name, value)| (name.to_owned(), value)).collect();
        described.into()
    }
}

/// The faces that are like a signature, the likest first: at most so many, and none below the threshold.
pub fn likest<'a>(
    faces: impl Iterator<Item = (Uuid, &'a KeptFace)>,
    signature: &Signature,
    model: &Model,
    threshold: f32,
    most: usize,
) -> Vec<Value> {
    let like = |(id, face): (Uuid, &'a KeptFace)| (model.similarity(signature, &face.signature), id, face);
    let mut matches: Vec<_> = faces.map(like).filter(|(similarity, ..)| *similarity >= threshold).collect();
    matches.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    matches.truncate(most);
    let describe = |(similarity, id, face): (f32, Uuid, &KeptFace)| json!({ "Similarity": similarity, "Face": face.describe(id, model) });
    matches.into_iter().map(describe).collect()
}

/// The face as it is kept; `None` where the engine has no signature of it.
pub fn keep(sight: &Sight, image: Uuid, external: Option<&str>) -> Option<KeptFace> {
    Some(KeptFace {
        image,
        external: external.map(str::to_owned),
        bounds: sight.face.bounds,
        confidence: crate::detail::confidence(&sight.face),
        signature: sight.face.signature.clone()?,
        since: Some(Instant::now()),
    })
}
