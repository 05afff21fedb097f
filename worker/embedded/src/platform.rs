//! The platform's part on one machine, step by step.

use std::sync::Arc;

use async_trait::async_trait;
use sparks_domain::{Attributes, Key};
use sparks_engine::{Content, Objects, ObjectsError, Platform, PutMode, StoreError};

use crate::{
    FileObjects,
    database::{Database, Durability},
    rows,
};

/// Uploads into a data folder.
pub struct FolderPlatform {
    database: Database,
    objects: Arc<FileObjects>,
}

impl FolderPlatform {
    pub(crate) fn new(database: Database, objects: Arc<FileObjects>) -> Self {
        Self { database, objects }
    }
}

#[async_trait]
impl Platform for FolderPlatform {
    async fn store(&self, key: &str, bytes: Vec<u8>, content: Content) -> Result<String, ObjectsError> {
        let version = FileObjects::version(&bytes);
        self.objects.put(key, bytes, content, PutMode::Replace).await?;
        Ok(version)
    }

    async fn make_row(&self, key: &Key, attributes: &Attributes) -> Result<bool, StoreError> {
        let (key, attributes) = (key.clone(), attributes.clone());
        self.database
            .write(Durability::Crash, move |tx| {
                let is_new = rows::get(tx, &key)?.is_none();
                if is_new {
                    rows::put(tx, &key, &attributes)?;
                }
                Ok(is_new)
            })
            .await
    }

    /// Nobody watches the folder of objects.
    async fn tells(&self) -> Result<bool, ObjectsError> {
        Ok(false)
    }
}
