//! An index of known faces.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sparks_domain::{FaceId, PersonId, Signature};
use sparks_engine::{IndexError, Meter};

use crate::{
    Access, AccessError, Description,
    calls::Operation,
    client::Client,
    name::Name,
    namespace::Namespaces,
    recent::Recent,
    trouble::Trouble,
    wire::{Delete, Done, Fetched, Page, Stats},
};

/// How many names a request to drop vectors may have.
const DROPPED: usize = 1000;

/// How many names a request for vectors has: they are in its address, which must not be too long.
const FETCHED: usize = 50;

/// How many names a page has.
const PAGE: &str = "100";

/// Lists show what was written after seconds, as a rule. So long and so many names are kept to be on the safe side.
const LAG: Duration = Duration::from_secs(600);
const REMEMBERED: usize = 10_000;

/// Known faces in a Pinecone index.
pub struct Pinecone {
    pub(crate) client: Client,
    pub(crate) namespaces: Namespaces,
    pub(crate) recent: Recent,
    used: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Pinecone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinecone").field("host", &self.client.host()).field("namespaces", &self.namespaces).finish()
    }
}

/// A face that the index keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Whom it shows.
    pub person: PersonId,
    /// Which one it is.
    pub face: FaceId,
    /// What it looks like.
    pub signature: Signature,
}

impl Pinecone {
    /// The index there. Nothing is asked yet.
    pub fn new(access: &Access) -> Result<Self, AccessError> {
        let namespaces = Namespaces::new(access.prefix()?);
        let recent = Recent::new(LAG, REMEMBERED);
        Ok(Self { client: Client::new(access)?, namespaces, recent, used: Mutex::default() })
    }

    /// The same, and somebody hears of each call.
    pub fn metered(mut self, meter: Arc<dyn Meter>) -> Self {
        self.client.meter = meter;
        self
    }

    /// How often it was called so far, by operation, repeats included.
    pub fn calls(&self) -> [(Operation, u64); Operation::ALL.len()] {
        self.client.calls.all()
    }

    /// What it is like.
    pub async fn describe(&self) -> Result<Description, IndexError> {
        let stats: Stats = self.client.post(Operation::Stats, &serde_json::json!({})).await?;
        Ok(Description::new(self.client.host(), stats, |name| self.namespaces.has(name)))
    }

    /// Those of these faces that it keeps for this model. What was written a moment ago may be missing.
    pub async fn fetch(&self, model: &str, faces: &[(PersonId, FaceId)]) -> Result<Vec<Kept>, IndexError> {
        let namespace = self.namespaces.of(model);
        let mut kept = Vec::new();
        for faces in faces.chunks(FETCHED) {
            let ids: Vec<String> = faces.iter().map(|(person, face)| id(*person, face)).collect();
            let mut parameters: Vec<(&str, &str)> = ids.iter().map(|id| ("ids", id.as_str())).collect();
            parameters.push(("namespace", &namespace));
            let fetched: Option<Fetched> = there(self.client.get(Operation::Fetch, &parameters).await)?;
            for (id, vector) in fetched.into_iter().flat_map(|fetched| fetched.vectors) {
                if let (Ok(Name { person, face }), Some(signature)) = (id.parse(), Signature::quantise(&vector.values))
                {
                    kept.push(Kept { person, face, signature });
                }
            }
        }
        Ok(kept)
    }

    /// From now on there may be something of ours in this namespace.
    pub(crate) fn uses(&self, namespace: &str) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(namespace.to_owned());
    }

    /// All namespaces that may hold something of ours: those that the index shows, also of models that nobody uses any more, and
    /// those that this process has written to, which the index may not show yet.
    pub(crate) async fn all_namespaces(&self) -> Result<BTreeSet<String>, IndexError> {
        let mut all = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(self.describe().await?.ours.into_keys());
        Ok(all)
    }

    /// The names of everything in the namespace that begin so.
    pub(crate) async fn list(&self, namespace: &str, prefix: &str) -> Result<BTreeSet<String>, IndexError> {
        let (mut ids, mut next) = (BTreeSet::new(), None::<String>);
        loop {
            let mut parameters = vec![("prefix", prefix), ("namespace", namespace), ("limit", PAGE)];
            parameters.extend(next.as_deref().map(|token| ("paginationToken", token)));
            let page: Option<Page> = there(self.client.get(Operation::List, &parameters).await)?;
            let Some(page) = page else { return Ok(ids) };
            ids.extend(page.vectors.into_iter().map(|listed| listed.id).filter(|id| id.starts_with(prefix)));
            let token = page.pagination.and_then(|pagination| pagination.next).filter(|token| !token.is_empty());
            if token.is_none() || token == next {
                return Ok(ids);
            }
            next = token;
        }
    }

    /// Drops the vectors of these persons whose names begin as this says, in every namespace of ours, since models that came
    /// before may have taught them, too: by what lists show and by what this process wrote lately. What another process wrote a
    /// moment ago may not show yet: dropping again later finds it.
    pub(crate) async fn drop_of(
        &self,
        persons: &[PersonId],
        prefix: impl Fn(PersonId) -> String,
    ) -> Result<(), IndexError> {
        if persons.is_empty() {
            return Ok(());
        }
        for namespace in self.all_namespaces().await? {
            let mut ids = BTreeSet::new();
            for person in persons {
                let prefix = prefix(*person);
                ids.extend(self.list(&namespace, &prefix).await?);
                ids.extend(self.recent.of(&namespace, *person).into_iter().filter(|id| id.starts_with(&prefix)));
            }
            self.drop_all(&namespace, &ids.into_iter().collect::<Vec<_>>()).await?;
        }
        Ok(())
    }

    /// Drops these from the namespace. What is not there is no mistake.
    pub(crate) async fn drop_all(&self, namespace: &str, ids: &[String]) -> Result<(), IndexError> {
        for ids in ids.chunks(DROPPED) {
            let _: Option<Done> = there(self.client.post(Operation::Delete, &Delete { ids, namespace }).await)?;
        }
        Ok(())
    }
}

/// The name of the vector of this face.
pub(crate) fn id(person: PersonId, face: &FaceId) -> String {
    Name { person, face: face.clone() }.to_string()
}

/// The answer; nothing where the namespace does not exist.
pub(crate) fn there<T>(answer: Result<T, Trouble>) -> Result<Option<T>, IndexError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(trouble) if trouble.is_nowhere => Ok(None),
        Err(trouble) => Err(trouble.into()),
    }
}
