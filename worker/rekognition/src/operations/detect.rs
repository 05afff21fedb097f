//! Detecting the faces of a photo.

use serde_json::{Value, json};

use super::{Operation, RequestContext, ServiceContext};
use crate::{
    api_error::ApiError,
    face_detail::{RequestedAttributes, face_detail},
    member_reader::MemberReader,
    request_image::RequestImage,
};

pub struct DetectFaces {
    image: RequestImage,
    attributes: RequestedAttributes,
}

impl Operation for DetectFaces {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self {
            image: RequestImage::read(members, "Image")?,
            attributes: RequestedAttributes::read(members, "Attributes")?,
        })
    }

    fn perform(self, context: &ServiceContext, _: &RequestContext) -> Result<Value, ApiError> {
        let faces = context.analyzer.analyze(&self.image.into_file()?)?;
        let details: Vec<Value> = faces.iter().map(|analyzed| face_detail(analyzed, &self.attributes)).collect();
        Ok(json!({ "FaceDetails": details }))
    }
}
