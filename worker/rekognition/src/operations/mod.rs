//! The operations of the API.

mod compare;
mod detect;
mod index;
mod manage_collections;
mod manage_faces;
mod search;

use std::time::Duration;

use serde_json::Value;

use crate::{
    api_error::ApiError, collection_store::CollectionStore, face_model::Model, member_reader::MemberReader,
    photo_analyzer::PhotoAnalyzer, sigv4::Caller,
};

/// What all requests share.
pub struct ServiceContext {
    pub analyzer: PhotoAnalyzer,
    pub model: Model,
    pub collections: CollectionStore,
}

/// What is specific to one request.
pub struct RequestContext {
    pub caller: Caller,
    pub visibility_delay: Duration,
}

/// An operation with its input.
trait Operation: Sized {
    /// Reads the input. The caller rejects members that were not read.
    fn read(members: &mut MemberReader) -> Result<Self, ApiError>;

    /// Performs the operation and returns the response.
    fn perform(self, context: &ServiceContext, request: &RequestContext) -> Result<Value, ApiError>;
}

/// An operation in the table of operations.
#[derive(Clone, Copy)]
pub struct NamedOperation {
    pub name: &'static str,
    /// Whether it decodes photos, which is CPU-bound.
    pub analyzes_photos: bool,
    run: fn(&ServiceContext, &RequestContext, &[u8]) -> Result<Value, ApiError>,
}

const OPERATIONS: [NamedOperation; 11] = [
    named::<manage_collections::CreateCollection>("CreateCollection", false),
    named::<manage_collections::DeleteCollection>("DeleteCollection", false),
    named::<manage_collections::DescribeCollection>("DescribeCollection", false),
    named::<manage_collections::ListCollections>("ListCollections", false),
    named::<compare::CompareFaces>("CompareFaces", true),
    named::<detect::DetectFaces>("DetectFaces", true),
    named::<manage_faces::DeleteFaces>("DeleteFaces", false),
    named::<manage_faces::ListFaces>("ListFaces", false),
    named::<index::IndexFaces>("IndexFaces", true),
    named::<search::SearchFaces>("SearchFaces", false),
    named::<search::SearchFacesByImage>("SearchFacesByImage", true),
];

const fn named<O: Operation>(name: &'static str, analyzes_photos: bool) -> NamedOperation {
    NamedOperation { name, analyzes_photos, run: run::<O> }
}

fn run<O: Operation>(context: &ServiceContext, request: &RequestContext, body: &[u8]) -> Result<Value, ApiError> {
    let mut members = MemberReader::parse(body)?;
    let operation = O::read(&mut members)?;
    members.finish()?;
    operation.perform(context, request)
}

impl NamedOperation {
    /// Returns the operation with this name.
    pub fn find(name: &str) -> Option<Self> {
        OPERATIONS.into_iter().find(|operation| operation.name == name)
    }

    /// Performs the operation on the body of a request.
    pub fn run(self, context: &ServiceContext, request: &RequestContext, body: &[u8]) -> Result<Value, ApiError> {
        (self.run)(context, request, body)
    }
}
