//! Adding the faces of a photo to a collection.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Circumstances, Desk, Operation};
use crate::{
    collection::{KeptFace, keep},
    detail::{Wanted, detail},
    fields,
    filter::Filter,
    looker::Sight,
    members::Members,
    photo::Photo,
    refusal::Refusal,
};

pub struct IndexFaces {
    collection: String,
    photo: Photo,
    external: Option<String>,
    wanted: Wanted,
    most: usize,
    filter: Filter,
}

/// What becomes of the faces of a photo.
#[derive(Default)]
struct Sorted {
    kept: Vec<(Sight, KeptFace)>,
    left: Vec<(Sight, Vec<&'static str>)>,
}

impl Operation for IndexFaces {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self {
            collection: fields::collection(members)?,
            photo: Photo::read(members, "Image")?,
            external: fields::external(members)?,
            wanted: Wanted::read(members, "DetectionAttributes")?,
            most: fields::most(members, i64::MAX)?.unwrap_or(usize::MAX),
            filter: fields::filter(members)?.unwrap_or(Filter::Auto),
        })
    }

    fn perform(mut self, desk: &Desk, _: &Circumstances) -> Result<Value, Refusal> {
        let file = std::mem::replace(&mut self.photo, Photo::Unclear).file()?;
        // Before the photo is looked at, which takes a while.
        desk.shelf.ask(&self.collection, |_| ())?;
        let image = Uuid::new_v5(&Uuid::NAMESPACE_OID, &Sha256::digest(&file));
        let Sorted { kept, left } = self.sort(desk.looker.look(&file)?, image);
        let (sights, faces): (Vec<Sight>, Vec<KeptFace>) = kept.into_iter().unzip();
        let faces = desk.shelf.add(&self.collection, faces, |id, face| face.describe(id, &desk.model))?;
        let record =
            |(face, sight): (&Value, &Sight)| json!({ "Face": face, "FaceDetail": detail(sight, &self.wanted) });
        let unindexed = |(sight, reasons): &(Sight, Vec<&str>)| json!({ "Reasons": reasons, "FaceDetail": detail(sight, &self.wanted) });
        Ok(json!({
            "FaceRecords": faces.iter().zip(&sights).map(record).collect::<Vec<_>>(),
            "FaceModelVersion": desk.model.version(),
            "UnindexedFaces": left.iter().map(unindexed).collect::<Vec<_>>(),
        }))
    }
}

impl IndexFaces {
    /// The largest of the faces that are good enough are kept.
    fn sort(&self, sights: Vec<Sight>, image: Uuid) -> Sorted {
        let mut sorted = Sorted::default();
        for sight in sights {
            let reasons = self.filter.reasons(&sight.face);
            match keep(&sight, image, self.external.as_deref()) {
                _ if !reasons.is_empty() => sorted.left.push((sight, reasons)),
                None => sorted.left.push((sight, vec!["LOW_FACE_QUALITY"])),
                Some(_) if sorted.kept.len() >= self.most => sorted.left.push((sight, vec!["EXCEEDS_MAX_FACES"])),
                Some(face) => sorted.kept.push((sight, face)),
            }
        }
        sorted
    }
}
