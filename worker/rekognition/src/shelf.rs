//! All collections: in memory, and in a folder where there is one.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use uuid::Uuid;

use crate::{
    collection::{Collection, KeptFace},
    folder::{Folder, OpenError},
    refusal::{Kind, Refusal},
};

/// All collections. What is changed is in the folder before anybody is told.
pub struct Shelf {
    /// By a number made of the name, so that where a list goes on fits into a token.
    collections: RwLock<BTreeMap<Uuid, Collection>>,
    folder: Option<Folder>,
}

/// The number of the collection with this name.
pub fn key(id: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes())
}

/// A number that nothing else has.
pub fn fresh_id() -> Uuid {
    uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes()).into_uuid()
}

impl Shelf {
    /// Nothing yet, and nothing is left at the end.
    pub fn in_memory() -> Self {
        Self { collections: RwLock::default(), folder: None }
    }

    /// What is in the folder, which is made where it is not there.
    pub fn open(path: &Path, model: &str) -> Result<Self, OpenError> {
        let (folder, collections) = Folder::open(path, model)?;
        let collections = collections.into_iter().map(|collection| (key(&collection.id), collection)).collect();
        Ok(Self { collections: RwLock::new(collections), folder: Some(folder) })
    }

    pub fn create(&self, collection: Collection) -> Result<(), Refusal> {
        let mut all = self.write();
        let key = key(&collection.id);
        if all.contains_key(&key) {
            let text = format!("The collection id: {} already exists", collection.id);
            return Err(Refusal::new(Kind::ResourceAlreadyExists, text));
        }
        self.keep(|folder| folder.write(&collection))?;
        all.insert(key, collection);
        Ok(())
    }

    pub fn delete(&self, id: &str) -> Result<(), Refusal> {
        let mut all = self.write();
        if !all.contains_key(&key(id)) {
            return Err(missing(id));
        }
        self.keep(|folder| folder.remove(id))?;
        all.remove(&key(id));
        Ok(())
    }

    /// Adds the faces of one photo that are not there yet, and describes all of them.
    pub fn add<T>(
        &self,
        id: &str,
        faces: Vec<KeptFace>,
        describe: impl Fn(Uuid, &KeptFace) -> T,
    ) -> Result<Vec<T>, Refusal> {
        let mut all = self.write();
        let collection = all.get_mut(&key(id)).ok_or_else(|| missing(id))?;
        let image = faces.first().map(|face| face.image);
        let known: Vec<_> = collection.faces.iter().filter(|(_, kept)| Some(kept.image) == image).collect();
        let (mut described, mut fresh) = (Vec::new(), Vec::new());
        for face in faces {
            let same = known.iter().find(|(_, kept)| kept.is_same(&face)).map(|(id, _)| **id);
            let number = same.unwrap_or_else(fresh_id);
            described.push(describe(number, &face));
            if same.is_none() {
                fresh.push((number, face));
            }
        }
        if !fresh.is_empty() {
            self.keep(|folder| folder.append(id, &fresh))?;
            collection.faces.extend(fresh);
        }
        Ok(described)
    }

    /// Removes faces, and tells which were there.
    pub fn remove(&self, id: &str, faces: &[Uuid]) -> Result<Vec<Uuid>, Refusal> {
        let mut all = self.write();
        let collection = all.get_mut(&key(id)).ok_or_else(|| missing(id))?;
        let removed: Vec<_> = faces.iter().filter_map(|face| Some((*face, collection.faces.remove(face)?))).collect();
        let names = removed.iter().map(|(face, _)| *face).collect();
        // Written anew: what is deleted is not to stay in a file.
        if !removed.is_empty()
            && let Err(refusal) = self.keep(|folder| folder.write(collection))
        {
            collection.faces.extend(removed);
            return Err(refusal);
        }
        Ok(names)
    }

    /// Asks one collection.
    pub fn ask<T>(&self, id: &str, question: impl FnOnce(&Collection) -> T) -> Result<T, Refusal> {
        self.read().get(&key(id)).map(question).ok_or_else(|| missing(id))
    }

    /// The names of collections behind this one, at most so many, and whether there are more.
    pub fn names(&self, after: Option<Uuid>, most: usize) -> (Vec<(Uuid, String)>, bool) {
        let all = self.read();
        let mut behind = all.iter().filter(|(key, _)| after.is_none_or(|after| **key > after));
        let page = behind.by_ref().take(most).map(|(key, collection)| (*key, collection.id.clone())).collect();
        (page, behind.next().is_some())
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let names: Vec<String> = self.read().values().map(|collection| collection.id.clone()).collect();
        for name in names {
            drop(self.delete(&name));
        }
    }

    fn keep(&self, change: impl FnOnce(&Folder) -> io::Result<()>) -> Result<(), Refusal> {
        let Some(folder) = &self.folder else { return Ok(()) };
        change(folder).map_err(|error| {
            tracing::error!(%error, folder = %folder.path().display(), "cannot keep a collection");
            Refusal::internal()
        })
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Uuid, Collection>> {
        self.collections.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Uuid, Collection>> {
        self.collections.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing(id: &str) -> Refusal {
    Refusal::new(Kind::ResourceNotFound, format!("The collection id: {id} does not exist"))
}
