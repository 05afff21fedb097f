//! Describing the faces of a photo.

use serde_json::{Value, json};

use super::{Circumstances, Desk, Operation};
use crate::{
    detail::{Wanted, detail},
    members::Members,
    photo::Photo,
    refusal::Refusal,
};

pub struct DetectFaces {
    photo: Photo,
    wanted: Wanted,
}

impl Operation for DetectFaces {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self { photo: Photo::read(members, "Image")?, wanted: Wanted::read(members, "Attributes")? })
    }

    fn perform(self, desk: &Desk, _: &Circumstances) -> Result<Value, Refusal> {
        let faces = desk.looker.look(&self.photo.file()?)?;
        let details: Vec<Value> = faces.iter().map(|sight| detail(sight, &self.wanted)).collect();
        Ok(json!({ "FaceDetails": details }))
    }
}
