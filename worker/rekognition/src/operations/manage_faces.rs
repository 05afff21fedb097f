//! Listing and deleting the faces of a collection.

use std::{collections::BTreeSet, ops::Bound};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Operation, RequestContext, ServiceContext};
use crate::{
    api_error::{ApiError, ErrorCode},
    face_model::Model,
    indexed_faces::Collection,
    member_reader::MemberReader,
    page_token, request_members,
};

/// Default of `MaxResults`.
const DEFAULT_RESULTS: usize = 1000;

pub struct ListFaces {
    collection: String,
    token: Option<String>,
    max: usize,
    user: Option<String>,
    only: Option<BTreeSet<Uuid>>,
}

impl Operation for ListFaces {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self {
            collection: request_members::collection_id(members)?,
            token: request_members::next_token(members)?,
            max: request_members::max_results(members)?.unwrap_or(DEFAULT_RESULTS),
            user: request_members::user_id(members)?,
            only: request_members::face_ids(members)?.map(|faces| faces.into_iter().collect()),
        })
    }

    fn perform(self, context: &ServiceContext, _: &RequestContext) -> Result<Value, ApiError> {
        let list = format!("faces of {}", self.collection);
        let after = self.token.as_ref().map(|token| page_token::read(&list, token));
        context.collections.read(&self.collection, |collection| {
            // Users of collections are not supported, so none exists.
            if let Some(user) = &self.user {
                return Err(ApiError::new(ErrorCode::ResourceNotFound, format!("The user id: {user} does not exist")));
            }
            Ok(self.page(collection, after.transpose()?, &list, &context.model))
        })?
    }
}

impl ListFaces {
    fn page(&self, collection: &Collection, after: Option<Uuid>, list: &str, model: &Model) -> Value {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let is_requested = |id: &Uuid| self.only.as_ref().is_none_or(|only| only.contains(id));
        let mut rest = collection.faces.range((from, Bound::Unbounded)).filter(|(id, _)| is_requested(id));
        let page: Vec<_> = rest.by_ref().take(self.max).collect();
        let faces: Vec<Value> = page.iter().map(|(id, face)| face.describe(**id, model)).collect();
        let mut response = json!({ "Faces": faces, "FaceModelVersion": model.version() });
        if let (Some((last, _)), true) = (page.last(), rest.next().is_some()) {
            response["NextToken"] = page_token::write(list, **last).into();
        }
        response
    }
}

pub struct DeleteFaces {
    collection: String,
    faces: Vec<Uuid>,
}

impl Operation for DeleteFaces {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        let (collection, faces) = (request_members::collection_id(members)?, request_members::face_ids(members)?);
        Ok(Self { collection, faces: members.required("FaceIds", faces)? })
    }

    fn perform(self, context: &ServiceContext, _: &RequestContext) -> Result<Value, ApiError> {
        let deleted = context.collections.remove(&self.collection, &self.faces)?;
        let missing: BTreeSet<&Uuid> = self.faces.iter().filter(|face| !deleted.contains(face)).collect();
        let failed: Vec<Value> = missing
            .into_iter()
            .map(|face| json!({ "FaceId": face.to_string(), "Reasons": ["FACE_NOT_FOUND"] }))
            .collect();
        let deleted: Vec<String> = deleted.iter().map(Uuid::to_string).collect();
        Ok(json!({ "DeletedFaces": deleted, "UnsuccessfulFaceDeletions": failed }))
    }
}
