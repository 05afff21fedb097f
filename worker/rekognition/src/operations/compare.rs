//! Looking for the face of one photo in another.

use serde_json::{Value, json};

use super::{Circumstances, Desk, Operation};
use crate::{
    detail::{bounding_box, compared, confidence},
    fields,
    filter::Filter,
    looker::{Sight, no_face},
    members::Members,
    model::DEFAULT_THRESHOLD,
    photo::Photo,
    refusal::Refusal,
};

pub struct CompareFaces {
    source: Photo,
    target: Photo,
    threshold: f32,
    filter: Filter,
}

impl Operation for CompareFaces {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self {
            source: Photo::read(members, "SourceImage")?,
            target: Photo::read(members, "TargetImage")?,
            threshold: members.percent("SimilarityThreshold")?.unwrap_or(DEFAULT_THRESHOLD),
            filter: fields::filter(members)?.unwrap_or(Filter::None),
        })
    }

    fn perform(self, desk: &Desk, _: &Circumstances) -> Result<Value, Refusal> {
        let (source, target) = (self.source.file()?, self.target.file()?);
        let source = desk.looker.largest(&source)?;
        if !self.filter.admits(&source.face) {
            return Err(no_face());
        }
        let alike = |sight: &Sight| match (&source.face.signature, &sight.face.signature) {
            (Some(one), Some(other)) => desk.model.similarity(one, other),
            _ => 0.0,
        };
        let faces = desk.looker.look(&target)?.into_iter().filter(|sight| self.filter.admits(&sight.face));
        let faces = faces.map(|sight| (alike(&sight), sight));
        let (mut same, others): (Vec<_>, Vec<_>) = faces.partition(|(similarity, _)| *similarity >= self.threshold);
        same.sort_by(|a, b| b.0.total_cmp(&a.0));
        let matched = |(similarity, sight): &(f32, Sight)| json!({ "Similarity": similarity, "Face": compared(sight) });
        Ok(json!({
            "SourceImageFace": {
                "BoundingBox": bounding_box(source.face.bounds),
                "Confidence": confidence(&source.face),
            },
            "FaceMatches": same.iter().map(matched).collect::<Vec<_>>(),
            "UnmatchedFaces": others.iter().map(|(_, sight)| compared(sight)).collect::<Vec<_>>(),
        }))
    }
}
