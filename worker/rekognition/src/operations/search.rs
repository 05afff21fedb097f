//! Searching the faces of a collection that match a face.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Operation, RequestContext, ServiceContext};
use crate::{
    api_error::{ApiError, ErrorCode},
    face_detail::{bounding_box, confidence},
    face_model::DEFAULT_THRESHOLD,
    indexed_faces::{Collection, IndexedFace, nearest_faces},
    member_reader::MemberReader,
    photo_analyzer::no_face,
    quality_filter::QualityFilter,
    request_image::RequestImage,
    request_members,
};

/// Default of `MaxFaces`.
const DEFAULT_FACES: usize = 80;

/// The maximum number of matches and their minimum similarity.
struct MatchLimits {
    max: usize,
    threshold: f32,
}

impl MatchLimits {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self {
            max: request_members::max_faces(members, request_members::MAX_FACES)?.unwrap_or(DEFAULT_FACES),
            threshold: members.percent("FaceMatchThreshold")?.unwrap_or(DEFAULT_THRESHOLD),
        })
    }
}

/// Returns the faces that are searchable, given the simulated delay after indexing.
fn searchable(collection: &Collection, delay: Duration) -> impl Iterator<Item = (Uuid, &IndexedFace)> {
    let is_searchable = move |face: &IndexedFace| face.indexed_at.is_none_or(|time| time.elapsed() >= delay);
    collection.faces.iter().filter(move |(_, face)| is_searchable(face)).map(|(id, face)| (*id, face))
}

pub struct SearchFaces {
    collection: String,
    face: Uuid,
    limits: MatchLimits,
}

impl Operation for SearchFaces {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self {
            collection: request_members::collection_id(members)?,
            face: request_members::face_id(members)?,
            limits: MatchLimits::read(members)?,
        })
    }

    fn perform(self, context: &ServiceContext, request: &RequestContext) -> Result<Value, ApiError> {
        let MatchLimits { max, threshold } = self.limits;
        context.collections.read(&self.collection, |collection| {
            let faces = || searchable(collection, request.visibility_delay);
            let unknown = || ApiError::new(ErrorCode::InvalidParameter, "faceId was not found in the collection");
            let (_, probe) = faces().find(|(id, _)| *id == self.face).ok_or_else(unknown)?;
            let others = faces().filter(|(id, _)| *id != self.face);
            Ok(json!({
                "SearchedFaceId": self.face.to_string(),
                "FaceMatches": nearest_faces(others, &probe.signature, &context.model, threshold, max),
                "FaceModelVersion": context.model.version(),
            }))
        })?
    }
}

pub struct SearchFacesByImage {
    collection: String,
    image: RequestImage,
    limits: MatchLimits,
    filter: QualityFilter,
}

impl Operation for SearchFacesByImage {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self {
            collection: request_members::collection_id(members)?,
            image: RequestImage::read(members, "Image")?,
            limits: MatchLimits::read(members)?,
            filter: request_members::quality_filter(members)?.unwrap_or(QualityFilter::None),
        })
    }

    fn perform(self, context: &ServiceContext, request: &RequestContext) -> Result<Value, ApiError> {
        let MatchLimits { max, threshold } = self.limits;
        let file = self.image.into_file()?;
        // Fails early: analyzing the photo is expensive.
        context.collections.read(&self.collection, |_| ())?;
        let analyzed = context.analyzer.largest(&file)?;
        if !self.filter.accepts(&analyzed.face) {
            return Err(no_face());
        }
        let search = |collection: &Collection| match &analyzed.face.signature {
            Some(signature) => {
                let faces = searchable(collection, request.visibility_delay);
                nearest_faces(faces, signature, &context.model, threshold, max)
            }
            None => Vec::new(),
        };
        Ok(json!({
            "SearchedFaceBoundingBox": bounding_box(analyzed.face.bounds),
            "SearchedFaceConfidence": confidence(&analyzed.face),
            "FaceMatches": context.collections.read(&self.collection, search)?,
            "FaceModelVersion": context.model.version(),
        }))
    }
}
