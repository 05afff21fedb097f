//! Finding faces of a collection that are like another.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Circumstances, Desk, Operation};
use crate::{
    collection::{Collection, KeptFace, likest},
    detail::{bounding_box, confidence},
    fields,
    filter::Filter,
    looker::no_face,
    members::Members,
    model::DEFAULT_THRESHOLD,
    photo::Photo,
    refusal::{Kind, Refusal},
};

/// So many are found where nobody says how many.
const MOST: usize = 80;

/// How many faces, and how alike.
struct Limits {
    most: usize,
    threshold: f32,
}

impl Limits {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self {
            most: fields::most(members, fields::MOST_FACES)?.unwrap_or(MOST),
            threshold: members.percent("FaceMatchThreshold")?.unwrap_or(DEFAULT_THRESHOLD),
        })
    }
}

/// The faces that a search can find by now.
fn visible(collection: &Collection, delay: Duration) -> impl Iterator<Item = (Uuid, &KeptFace)> {
    let seen = move |face: &KeptFace| face.since.is_none_or(|since| since.elapsed() >= delay);
    collection.faces.iter().filter(move |(_, face)| seen(face)).map(|(id, face)| (*id, face))
}

pub struct SearchFaces {
    collection: String,
    face: Uuid,
    limits: Limits,
}

impl Operation for SearchFaces {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self {
            collection: fields::collection(members)?,
            face: fields::face(members)?,
            limits: Limits::read(members)?,
        })
    }

    fn perform(self, desk: &Desk, circumstances: &Circumstances) -> Result<Value, Refusal> {
        let Limits { most, threshold } = self.limits;
        desk.shelf.ask(&self.collection, |collection| {
            let faces = || visible(collection, circumstances.visibility_delay);
            let unknown = || Refusal::new(Kind::InvalidParameter, "faceId was not found in the collection");
            let (_, asked) = faces().find(|(id, _)| *id == self.face).ok_or_else(unknown)?;
            let others = faces().filter(|(id, _)| *id != self.face);
            Ok(json!({
                "SearchedFaceId": self.face.to_string(),
                "FaceMatches": likest(others, &asked.signature, &desk.model, threshold, most),
                "FaceModelVersion": desk.model.version(),
            }))
        })?
    }
}

pub struct SearchFacesByImage {
    collection: String,
    photo: Photo,
    limits: Limits,
    filter: Filter,
}

impl Operation for SearchFacesByImage {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self {
            collection: fields::collection(members)?,
            photo: Photo::read(members, "Image")?,
            limits: Limits::read(members)?,
            filter: fields::filter(members)?.unwrap_or(Filter::None),
        })
    }

    fn perform(self, desk: &Desk, circumstances: &Circumstances) -> Result<Value, Refusal> {
        let Limits { most, threshold } = self.limits;
        let file = self.photo.file()?;
        // Before the photo is looked at, which takes a while.
        desk.shelf.ask(&self.collection, |_| ())?;
        let sight = desk.looker.largest(&file)?;
        if !self.filter.admits(&sight.face) {
            return Err(no_face());
        }
        let found = |collection: &Collection| match &sight.face.signature {
            Some(signature) => {
                let faces = visible(collection, circumstances.visibility_delay);
                likest(faces, signature, &desk.model, threshold, most)
            }
            None => Vec::new(),
        };
        Ok(json!({
            "SearchedFaceBoundingBox": bounding_box(sight.face.bounds),
            "SearchedFaceConfidence": confidence(&sight.face),
            "FaceMatches": desk.shelf.ask(&self.collection, found)?,
            "FaceModelVersion": desk.model.version(),
        }))
    }
}
