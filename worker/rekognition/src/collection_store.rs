//! All collections, in memory and optionally in a folder.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use uuid::Uuid;

use crate::{
    api_error::{ApiError, ErrorCode},
    collection_folder::{CollectionFolder, OpenError},
    indexed_faces::{Collection, IndexedFace},
};

/// All collections. A change is written to the folder before the request completes.
pub struct CollectionStore {
    /// By a UUID derived from the ID, which has the fixed size that page tokens need.
    collections: RwLock<BTreeMap<Uuid, Collection>>,
    folder: Option<CollectionFolder>,
}

/// Returns the key of a collection.
fn key(id: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes())
}

/// Returns a random UUID.
pub fn random_id() -> Uuid {
    uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes()).into_uuid()
}

impl CollectionStore {
    /// Creates an empty store without a folder.
    pub fn in_memory() -> Self {
        Self { collections: RwLock::default(), folder: None }
    }

    /// Loads the collections of a folder, which is created if it does not exist.
    pub fn open(path: &Path, model: &str) -> Result<Self, OpenError> {
        let (folder, collections) = CollectionFolder::open(path, model)?;
        let collections = collections.into_iter().map(|collection| (key(&collection.id), collection)).collect();
        Ok(Self { collections: RwLock::new(collections), folder: Some(folder) })
    }

    pub fn create(&self, collection: Collection) -> Result<(), ApiError> {
        let mut all = self.lock_exclusive();
        let key = key(&collection.id);
        if all.contains_key(&key) {
            let text = format!("The collection id: {} already exists", collection.id);
            return Err(ApiError::new(ErrorCode::ResourceAlreadyExists, text));
        }
        self.persist(|folder| folder.write(&collection))?;
        all.insert(key, collection);
        Ok(())
    }

    pub fn delete(&self, id: &str) -> Result<(), ApiError> {
        let mut all = self.lock_exclusive();
        if !all.contains_key(&key(id)) {
            return Err(missing(id));
        }
        self.persist(|folder| folder.remove(id))?;
        all.remove(&key(id));
        Ok(())
    }

    /// Adds the faces of one photo that are not in the collection, and returns the descriptions of all.
    pub fn add<T>(
        &self,
        id: &str,
        faces: Vec<IndexedFace>,
        describe: impl Fn(Uuid, &IndexedFace) -> T,
    ) -> Result<Vec<T>, ApiError> {
        let mut all = self.lock_exclusive();
        let collection = all.get_mut(&key(id)).ok_or_else(|| missing(id))?;
        let image = faces.first().map(|face| face.image);
        let known: Vec<_> = collection.faces.iter().filter(|(_, known)| Some(known.image) == image).collect();
        let (mut descriptions, mut added) = (Vec::new(), Vec::new());
        for face in faces {
            let same = known.iter().find(|(_, known)| known.is_same(&face)).map(|(id, _)| **id);
            let face_id = same.unwrap_or_else(random_id);
            descriptions.push(describe(face_id, &face));
            if same.is_none() {
                added.push((face_id, face));
            }
        }
        if !added.is_empty() {
            self.persist(|folder| folder.append(id, &added))?;
            collection.faces.extend(added);
        }
        Ok(descriptions)
    }

    /// Removes faces and returns the IDs of those that existed.
    pub fn remove(&self, id: &str, faces: &[Uuid]) -> Result<Vec<Uuid>, ApiError> {
        let mut all = self.lock_exclusive();
        let collection = all.get_mut(&key(id)).ok_or_else(|| missing(id))?;
        let removed: Vec<_> = faces.iter().filter_map(|face| Some((*face, collection.faces.remove(face)?))).collect();
        let ids = removed.iter().map(|(face, _)| *face).collect();
        // Rewrites the file, so that no deleted signature remains.
        if !removed.is_empty()
            && let Err(error) = self.persist(|folder| folder.write(collection))
        {
            collection.faces.extend(removed);
            return Err(error);
        }
        Ok(ids)
    }

    /// Reads from a collection.
    pub fn read<T>(&self, id: &str, query: impl FnOnce(&Collection) -> T) -> Result<T, ApiError> {
        self.lock_shared().get(&key(id)).map(query).ok_or_else(|| missing(id))
    }

    /// Returns at most `max` collection IDs after this key, and whether there are more.
    pub fn list(&self, after: Option<Uuid>, max: usize) -> (Vec<(Uuid, String)>, bool) {
        let all = self.lock_shared();
        let mut rest = all.iter().filter(|(key, _)| after.is_none_or(|after| **key > after));
        let page = rest.by_ref().take(max).map(|(key, collection)| (*key, collection.id.clone())).collect();
        (page, rest.next().is_some())
    }

    /// Deletes all collections.
    pub fn clear(&self) {
        let ids: Vec<String> = self.lock_shared().values().map(|collection| collection.id.clone()).collect();
        for id in ids {
            drop(self.delete(&id));
        }
    }

    fn persist(&self, change: impl FnOnce(&CollectionFolder) -> io::Result<()>) -> Result<(), ApiError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        change(folder).map_err(|error| {
            tracing::error!(%error, folder = %folder.path().display(), "failed to write a collection");
            ApiError::internal()
        })
    }

    fn lock_shared(&self) -> RwLockReadGuard<'_, BTreeMap<Uuid, Collection>> {
        self.collections.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_exclusive(&self) -> RwLockWriteGuard<'_, BTreeMap<Uuid, Collection>> {
        self.collections.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing(id: &str) -> ApiError {
    ApiError::new(ErrorCode::ResourceNotFound, format!("The collection id: {id} does not exist"))
}
