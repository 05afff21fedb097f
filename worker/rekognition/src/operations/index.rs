//! Adding the faces of a photo to a collection.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Operation, RequestContext, ServiceContext};
use crate::{
    api_error::ApiError,
    face_detail::{RequestedAttributes, face_detail},
    indexed_faces::{IndexedFace, to_indexed_face},
    member_reader::MemberReader,
    photo_analyzer::AnalyzedFace,
    quality_filter::QualityFilter,
    request_image::RequestImage,
    request_members,
};

pub struct IndexFaces {
    collection: String,
    image: RequestImage,
    external_id: Option<String>,
    attributes: RequestedAttributes,
    max: usize,
    filter: QualityFilter,
}

/// The faces of a photo to be indexed, and the others with the reasons.
#[derive(Default)]
struct Selection {
    indexed: Vec<(AnalyzedFace, IndexedFace)>,
    unindexed: Vec<(AnalyzedFace, Vec<&'static str>)>,
}

impl Operation for IndexFaces {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self {
            collection: request_members::collection_id(members)?,
            image: RequestImage::read(members, "Image")?,
            external_id: request_members::external_image_id(members)?,
            attributes: RequestedAttributes::read(members, "DetectionAttributes")?,
            max: request_members::max_faces(members, i64::MAX)?.unwrap_or(usize::MAX),
            filter: request_members::quality_filter(members)?.unwrap_or(QualityFilter::Auto),
        })
    }

    fn perform(mut self, context: &ServiceContext, _: &RequestContext) -> Result<Value, ApiError> {
        let file = std::mem::replace(&mut self.image, RequestImage::Invalid).into_file()?;
        // Fails early: analyzing the photo is expensive.
        context.collections.read(&self.collection, |_| ())?;
        let image = Uuid::new_v5(&Uuid::NAMESPACE_OID, &Sha256::digest(&file));
        let Selection { indexed, unindexed } = self.select(context.analyzer.analyze(&file)?, image);
        let (details, faces): (Vec<AnalyzedFace>, Vec<IndexedFace>) = indexed.into_iter().unzip();
        let faces = context.collections.add(&self.collection, faces, |id, face| face.describe(id, &context.model))?;
        let record = |(face, analyzed): (&Value, &AnalyzedFace)| json!({ "Face": face, "FaceDetail": face_detail(analyzed, &self.attributes) });
        let to_unindexed = |(analyzed, reasons): &(AnalyzedFace, Vec<&str>)| json!({ "Reasons": reasons, "FaceDetail": face_detail(analyzed, &self.attributes) });
        Ok(json!({
            "FaceRecords": faces.iter().zip(&details).map(record).collect::<Vec<_>>(),
            "FaceModelVersion": context.model.version(),
            "UnindexedFaces": unindexed.iter().map(to_unindexed).collect::<Vec<_>>(),
        }))
    }
}

impl IndexFaces {
    /// Selects the largest faces of sufficient quality.
    fn select(&self, faces: Vec<AnalyzedFace>, image: Uuid) -> Selection {
        let mut selection = Selection::default();
        for analyzed in faces {
            let reasons = self.filter.reasons(&analyzed.face);
            match to_indexed_face(&analyzed, image, self.external_id.as_deref()) {
                _ if !reasons.is_empty() => selection.unindexed.push((analyzed, reasons)),
                None => selection.unindexed.push((analyzed, vec!["LOW_FACE_QUALITY"])),
                Some(_) if selection.indexed.len() >= self.max => {
                    selection.unindexed.push((analyzed, vec!["EXCEEDS_MAX_FACES"]))
                }
                Some(face) => selection.indexed.push((analyzed, face)),
            }
        }
        selection
    }
}
