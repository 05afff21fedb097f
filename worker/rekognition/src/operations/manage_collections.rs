//! Creating, describing, listing and deleting collections.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Operation, RequestContext, ServiceContext};
use crate::{
    api_error::ApiError, indexed_faces::Collection, member_reader::MemberReader, page_token, request_members,
    sigv4::Caller,
};

/// Default of `MaxResults`.
const DEFAULT_RESULTS: usize = 1000;
/// Name of the list that page tokens are bound to.
const LIST: &str = "collections";

/// Returns the resource name of a collection, with a placeholder as the account.
fn resource(caller: &Caller, id: &str) -> String {
    format!("aws:rekognition:{}:000000000000:collection/{id}", caller.region)
}

pub struct CreateCollection {
    id: String,
    tags: BTreeMap<String, String>,
}

impl Operation for CreateCollection {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self {
            id: request_members::collection_id(members)?,
            tags: request_members::tags(members)?.into_iter().collect(),
        })
    }

    fn perform(self, context: &ServiceContext, request: &RequestContext) -> Result<Value, ApiError> {
        let arn = resource(&request.caller, &self.id);
        let created = jiff::Timestamp::now().as_millisecond() as f64 / 1000.0;
        context.collections.create(Collection { id: self.id, created, tags: self.tags, faces: BTreeMap::new() })?;
        Ok(json!({ "StatusCode": 200, "CollectionArn": arn, "FaceModelVersion": context.model.version() }))
    }
}

pub struct DeleteCollection {
    id: String,
}

impl Operation for DeleteCollection {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self { id: request_members::collection_id(members)? })
    }

    fn perform(self, context: &ServiceContext, _: &RequestContext) -> Result<Value, ApiError> {
        context.collections.delete(&self.id)?;
        Ok(json!({ "StatusCode": 200 }))
    }
}

pub struct DescribeCollection {
    id: String,
}

impl Operation for DescribeCollection {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self { id: request_members::collection_id(members)? })
    }

    fn perform(self, context: &ServiceContext, request: &RequestContext) -> Result<Value, ApiError> {
        let arn = format!("arn:{}", resource(&request.caller, &self.id));
        context.collections.read(&self.id, |collection| {
            json!({
                "FaceCount": collection.faces.len(),
                "FaceModelVersion": context.model.version(),
                "CollectionARN": arn,
                "CreationTimestamp": collection.created,
                "UserCount": 0,
            })
        })
    }
}

pub struct ListCollections {
    token: Option<String>,
    max: usize,
}

impl Operation for ListCollections {
    fn read(members: &mut MemberReader) -> Result<Self, ApiError> {
        Ok(Self {
            token: request_members::next_token(members)?,
            max: request_members::max_results(members)?.unwrap_or(DEFAULT_RESULTS),
        })
    }

    fn perform(self, context: &ServiceContext, _: &RequestContext) -> Result<Value, ApiError> {
        let after = self.token.map(|token| page_token::read(LIST, &token)).transpose()?;
        let (page, has_more) = context.collections.list(after, self.max);
        let ids: Vec<&String> = page.iter().map(|(_, id)| id).collect();
        let versions = vec![context.model.version(); page.len()];
        let mut response = json!({ "CollectionIds": ids, "FaceModelVersions": versions });
        if let Some((last, _)) = page.last().filter(|_| has_more) {
            response["NextToken"] = page_token::write(LIST, *last).into();
        }
        Ok(response)
    }
}
