//! Operations on a Pinecone index.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sparks_domain::{FaceId, PersonId, Signature};
use sparks_engine::{IndexError, Meter};

use crate::{
    IndexDescription, PineconeConfig, PineconeConfigError,
    call_counters::Operation,
    client::Client,
    error::PineconeError,
    namespace::Namespaces,
    recent_writes::RecentWrites,
    vector_id::VectorId,
    wire::{DeleteRequest, EmptyResponse, FetchResponse, FetchedVector, ListPage, StatsResponse},
};

/// IDs per delete request, as Pinecone limits them.
const MAX_DELETE_IDS: usize = 1000;

/// IDs per fetch request: they are part of the URL, whose length is limited.
const MAX_FETCH_IDS: usize = 50;

/// IDs per page of a list, as Pinecone limits them.
const PAGE: &str = "100";

/// How long, and how many, IDs of written vectors are remembered. Lists usually show a vector after some seconds.
const RECENT_PERIOD: Duration = Duration::from_secs(600);
const MAX_RECENT_WRITES: usize = 10_000;

/// The enrolled faces in a Pinecone index.
pub struct Pinecone {
    pub(crate) client: Client,
    pub(crate) namespaces: Namespaces,
    pub(crate) recent_writes: RecentWrites,
    used: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Pinecone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinecone").field("host", &self.client.host()).field("namespaces", &self.namespaces).finish()
    }
}

/// A face as the index stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedFace {
    /// The person.
    pub person: PersonId,
    /// The face.
    pub face: FaceId,
    /// The signature.
    pub signature: Signature,
}

impl Pinecone {
    /// Creates the adapter. Makes no call.
    pub fn new(config: &PineconeConfig) -> Result<Self, PineconeConfigError> {
        let namespaces = Namespaces::new(config.prefix()?);
        let recent_writes = RecentWrites::new(RECENT_PERIOD, MAX_RECENT_WRITES);
        Ok(Self { client: Client::new(config)?, namespaces, recent_writes, used: Mutex::default() })
    }

    /// Records each call with this meter.
    pub fn with_meter(mut self, meter: Arc<dyn Meter>) -> Self {
        self.client.meter = meter;
        self
    }

    /// Returns the number of calls of each operation, retries included.
    pub fn calls(&self) -> [(Operation, u64); Operation::ALL.len()] {
        self.client.calls.all()
    }

    /// Describes the index.
    pub async fn describe(&self) -> Result<IndexDescription, IndexError> {
        let stats: StatsResponse = self.client.post(Operation::Stats, &serde_json::json!({})).await?;
        Ok(IndexDescription::new(self.client.host(), stats, |name| self.namespaces.has(name)))
    }

    /// Reads those of these faces that are stored for this model. Recently written ones may be missing (eventual consistency).
    pub async fn fetch(&self, model: &str, faces: &[(PersonId, FaceId)]) -> Result<Vec<FetchedFace>, IndexError> {
        let ids: Vec<String> = faces.iter().map(|(person, face)| id(*person, face)).collect();
        let fetched = self.fetch_vectors(&self.namespaces.of(model), &ids).await?;
        let faces = fetched.into_iter().filter_map(|(id, vector)| {
            let VectorId { person, face } = id.parse().ok()?;
            Some(FetchedFace { person, face, signature: Signature::quantise(&vector.values)? })
        });
        Ok(faces.collect())
    }

    /// Reads those of these vectors that are stored.
    pub(crate) async fn fetch_vectors(
        &self,
        namespace: &str,
        ids: &[String],
    ) -> Result<BTreeMap<String, FetchedVector>, IndexError> {
        let mut found = BTreeMap::new();
        for ids in ids.chunks(MAX_FETCH_IDS) {
            let mut parameters: Vec<(&str, &str)> = ids.iter().map(|id| ("ids", id.as_str())).collect();
            parameters.push(("namespace", namespace));
            let fetched: Option<FetchResponse> =
                none_if_namespace_missing(self.client.get(Operation::Fetch, &parameters).await)?;
            found.extend(fetched.into_iter().flat_map(|fetched| fetched.vectors));
        }
        Ok(found)
    }

    /// Records that this process writes to this namespace.
    pub(crate) fn mark_used(&self, namespace: &str) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(namespace.to_owned());
    }

    /// Returns all namespaces that may hold vectors of the worker: those that the index lists, including those of models
    /// that are no longer used, and those that this process has written to, which the index may not list yet.
    pub(crate) async fn all_namespaces(&self) -> Result<BTreeSet<String>, IndexError> {
        let mut all = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(self.describe().await?.own_vectors.into_keys());
        Ok(all)
    }

    /// Lists the IDs in the namespace with this prefix.
    pub(crate) async fn list(&self, namespace: &str, prefix: &str) -> Result<BTreeSet<String>, IndexError> {
        let (mut ids, mut next) = (BTreeSet::new(), None::<String>);
        loop {
            let mut parameters = vec![("prefix", prefix), ("namespace", namespace), ("limit", PAGE)];
            parameters.extend(next.as_deref().map(|token| ("paginationToken", token)));
            let page: Option<ListPage> =
                none_if_namespace_missing(self.client.get(Operation::List, &parameters).await)?;
            let Some(page) = page else { return Ok(ids) };
            ids.extend(page.vectors.into_iter().map(|listed| listed.id).filter(|id| id.starts_with(prefix)));
            let token = page.pagination.and_then(|pagination| pagination.next).filter(|token| !token.is_empty());
            if token.is_none() || token == next {
                return Ok(ids);
            }
            next = token;
        }
    }

    /// Deletes the vectors of these persons with this prefix in every namespace of the worker, because earlier models may
    /// have enrolled them too. Finds them by listing and by the recent writes of this process. A recent write of another
    /// process may not be listed yet; a later deletion finds it.
    pub(crate) async fn delete_vectors_of(
        &self,
        persons: &[PersonId],
        prefix: impl Fn(PersonId) -> String,
        is_removed: impl Fn(&str) -> bool,
    ) -> Result<(), IndexError> {
        if persons.is_empty() {
            return Ok(());
        }
        for namespace in self.all_namespaces().await? {
            let mut ids = BTreeSet::new();
            for person in persons {
                let prefix = prefix(*person);
                ids.extend(self.list(&namespace, &prefix).await?);
                ids.extend(self.recent_writes.of(&namespace, *person).into_iter().filter(|id| id.starts_with(&prefix)));
            }
            ids.retain(|id| is_removed(id));
            self.delete_vectors(&namespace, &ids.into_iter().collect::<Vec<_>>()).await?;
        }
        Ok(())
    }

    /// Deletes these vectors from the namespace. Missing ones are ignored.
    pub(crate) async fn delete_vectors(&self, namespace: &str, ids: &[String]) -> Result<(), IndexError> {
        for ids in ids.chunks(MAX_DELETE_IDS) {
            let _: Option<EmptyResponse> = none_if_namespace_missing(
                self.client.post(Operation::Delete, &DeleteRequest { ids, namespace }).await,
            )?;
        }
        Ok(())
    }
}

/// Returns the vector ID of this face.
pub(crate) fn id(person: PersonId, face: &FaceId) -> String {
    VectorId { person, face: face.clone() }.to_string()
}

/// Returns the response; none if the namespace does not exist.
pub(crate) fn none_if_namespace_missing<T>(answer: Result<T, PineconeError>) -> Result<Option<T>, IndexError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_namespace_missing => Ok(None),
        Err(error) => Err(error.into()),
    }
}
