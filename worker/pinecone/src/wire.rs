//! What is said to the service and what it answers, member by member. Members that nobody needs are left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::name::Name;

/// A vector that is kept.
#[derive(Serialize)]
pub(crate) struct Vector {
    pub id: String,
    pub values: Vec<f32>,
    pub metadata: Metadata,
}

/// What is kept beside a vector, for people who look into the index and for filters of their own.
#[derive(Serialize)]
pub(crate) struct Metadata {
    person: String,
    image: String,
    face: u16,
}

impl Vector {
    /// The vector of this face.
    pub fn new(name: &Name, values: Vec<f32>) -> Self {
        let Name { person, face } = name;
        let metadata = Metadata { person: person.to_string(), image: face.image.to_string(), face: face.n };
        Self { id: name.to_string(), values, metadata }
    }
}

/// Keeps vectors.
#[derive(Serialize)]
pub(crate) struct Upsert<'a> {
    pub vectors: &'a [Vector],
    pub namespace: &'a str,
}

/// Asks for the nearest.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Query<'a> {
    pub namespace: &'a str,
    pub vector: Vec<f32>,
    pub top_k: usize,
    pub include_values: bool,
    pub include_metadata: bool,
}

/// The nearest.
#[derive(Deserialize)]
pub(crate) struct Matches {
    #[serde(default)]
    pub matches: Vec<Match>,
}

/// One of the nearest.
#[derive(Deserialize)]
pub(crate) struct Match {
    #[serde(default)]
    pub id: String,
    #[serde(default)]
    pub score: f32,
    #[serde(default)]
    pub metadata: Value,
}

/// Drops vectors.
#[derive(Serialize)]
pub(crate) struct Delete<'a> {
    pub ids: &'a [String],
    pub namespace: &'a str,
}

/// Names of vectors, a page of them.
#[derive(Deserialize)]
pub(crate) struct Page {
    #[serde(default)]
    pub vectors: Vec<Listed>,
    pub pagination: Option<Pagination>,
}

/// A vector's name.
#[derive(Deserialize)]
pub(crate) struct Listed {
    pub id: String,
}

/// How to go on.
#[derive(Deserialize)]
pub(crate) struct Pagination {
    pub next: Option<String>,
}

/// Vectors by their names.
#[derive(Deserialize)]
pub(crate) struct Fetched {
    #[serde(default)]
    pub vectors: BTreeMap<String, FetchedVector>,
}

/// A vector that was kept.
#[derive(Deserialize)]
pub(crate) struct FetchedVector {
    #[serde(default)]
    pub values: Vec<f32>,
}

/// Nothing that matters.
#[derive(Deserialize)]
pub(crate) struct Done {}

/// What the index is like.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stats {
    pub dimension: Option<usize>,
    pub metric: Option<String>,
    #[serde(default)]
    pub namespaces: BTreeMap<String, Summary>,
    #[serde(default)]
    pub total_vector_count: u64,
}

/// What a namespace holds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    #[serde(default)]
    pub vector_count: u64,
}

/// Why something was not done.
#[derive(Deserialize)]
pub(crate) struct Complaint {
    #[serde(default)]
    pub code: Value,
    #[serde(default)]
    pub message: String,
}
