//! Requests and responses of Pinecone's API. Members that are not used are left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::vector_id::VectorId;

/// A vector to write.
#[derive(Serialize)]
pub(crate) struct Vector {
    pub id: String,
    pub values: Vec<f32>,
    pub metadata: Metadata,
}

/// The metadata of a vector, for people who inspect the index and for their own filters.
#[derive(Serialize)]
pub(crate) struct Metadata {
    person: String,
    image: String,
    face: u16,
}

impl Vector {
    /// Creates the vector of a face.
    pub fn new(id: &VectorId, values: Vec<f32>) -> Self {
        let VectorId { person, face } = id;
        let metadata = Metadata { person: person.to_string(), image: face.image.to_string(), face: face.n };
        Self { id: id.to_string(), values, metadata }
    }
}

/// Writes vectors.
#[derive(Serialize)]
pub(crate) struct UpsertRequest<'a> {
    pub vectors: &'a [Vector],
    pub namespace: &'a str,
}

/// Searches the nearest vectors.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueryRequest<'a> {
    pub namespace: &'a str,
    pub vector: Vec<f32>,
    pub top_k: usize,
    pub include_values: bool,
    pub include_metadata: bool,
}

/// The nearest vectors.
#[derive(Deserialize)]
pub(crate) struct QueryResponse {
    #[serde(default)]
    pub matches: Vec<Match>,
}

/// One of the nearest vectors.
#[derive(Deserialize)]
pub(crate) struct Match {
    #[serde(default)]
    pub id: String,
    #[serde(default)]
    pub score: f32,
    #[serde(default)]
    pub metadata: Value,
}

/// Deletes vectors.
#[derive(Serialize)]
pub(crate) struct DeleteRequest<'a> {
    pub ids: &'a [String],
    pub namespace: &'a str,
}

/// A page of vector IDs.
#[derive(Deserialize)]
pub(crate) struct ListPage {
    #[serde(default)]
    pub vectors: Vec<ListedVector>,
    pub pagination: Option<Pagination>,
}

/// The ID of a listed vector.
#[derive(Deserialize)]
pub(crate) struct ListedVector {
    pub id: String,
}

/// The token of the next page.
#[derive(Deserialize)]
pub(crate) struct Pagination {
    pub next: Option<String>,
}

/// Fetched vectors by ID.
#[derive(Deserialize)]
pub(crate) struct FetchResponse {
    #[serde(default)]
    pub vectors: BTreeMap<String, FetchedVector>,
}

/// The values of a fetched vector.
#[derive(Deserialize)]
pub(crate) struct FetchedVector {
    #[serde(default)]
    pub values: Vec<f32>,
}

/// A response whose content is not used.
#[derive(Deserialize)]
pub(crate) struct EmptyResponse {}

/// The description of the index.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatsResponse {
    pub dimension: Option<usize>,
    pub metric: Option<String>,
    #[serde(default)]
    pub namespaces: BTreeMap<String, Summary>,
    #[serde(default)]
    pub total_vector_count: u64,
}

/// The description of a namespace.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    #[serde(default)]
    pub vector_count: u64,
}

/// The body of an error response.
#[derive(Deserialize)]
pub(crate) struct ErrorBody {
    #[serde(default)]
    pub code: Value,
    #[serde(default)]
    pub message: String,
}
