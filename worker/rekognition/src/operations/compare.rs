//! Comparing the largest face of one photo with the faces of another.

use serde_json::{Value, json};

use super::{Operation, RequestContext, ServiceContext};
use crate::{
    api_error::ApiError,
    face_detail::{bounding_box, compared_face, confidence},
    face_model::DEFAULT_THRESHOLD,
    member_reader::MemberReader,
    photo_analyzer::{AnalyzedFace, no_face},
    quality_filter::QualityFilter,
    request_image::RequestImage,
    request_members,
};

pub struct CompareFaces {
    source: RequestImage,
    target: RequestImage,
    threshold: f32,
    filter: QualityFilter,
}

impl Operation for CompareFaces {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self {
            source: RequestImage::read(members, "SourceImage")?,
            target: RequestImage::read(members, "TargetImage")?,
            threshold: members.percent("SimilarityThreshold")?.unwrap_or(DEFAULT_THRESHOLD),
            filter: request_members::quality_filter(members)?.unwrap_or(QualityFilter::None),
        })
    }

    fn perform(self, context: &ServiceContext, _: &RequestContext) -> Result<Value, ApiError> {
        let (source, target) = (self.source.into_file()?, self.target.into_file()?);
        let source = context.analyzer.largest(&source)?;
        if !self.filter.accepts(&source.face) {
            return Err(no_face());
        }
        let similarity = |analyzed: &AnalyzedFace| match (&source.face.signature, &analyzed.face.signature) {
            (Some(one), Some(other)) => context.model.similarity(one, other),
            _ => 0.0,
        };
        let faces =
            context.analyzer.analyze(&target)?.into_iter().filter(|analyzed| self.filter.accepts(&analyzed.face));
        let faces = faces.map(|analyzed| (similarity(&analyzed), analyzed));
        let (mut matches, unmatched): (Vec<_>, Vec<_>) =
            faces.partition(|(similarity, _)| *similarity >= self.threshold);
        matches.sort_by(|a, b| b.0.total_cmp(&a.0));
        let to_match = |(similarity, analyzed): &(f32, AnalyzedFace)| json!({ "Similarity": similarity, "Face": compared_face(analyzed) });
        Ok(json!({
            "SourceImageFace": {
                "BoundingBox": bounding_box(source.face.bounds),
                "Confidence": confidence(&source.face),
            },
            "FaceMatches": matches.iter().map(to_match).collect::<Vec<_>>(),
            "UnmatchedFaces": unmatched.iter().map(|(_, analyzed)| compared_face(analyzed)).collect::<Vec<_>>(),
        }))
    }
}
