//! Uploads to the embedded backend in the separate steps of the photo platform.

use std::sync::Arc;

use async_trait::async_trait;
use sparks_domain::{Attributes, Key};
use sparks_engine::{Content, Objects, ObjectsError, PlatformClient, PutMode, StoreError};

use crate::{
    FileObjects,
    database::{Database, Durability},
    item_rows,
};

/// Uploads to a data folder.
pub struct FolderPlatformClient {
    database: Database,
    objects: Arc<FileObjects>,
}

impl FolderPlatformClient {
    pub(crate) fn new(database: Database, objects: Arc<FileObjects>) -> Self {
        Self { database, objects }
    }
}

#[async_trait]
impl PlatformClient for FolderPlatformClient {
    async fn put_original(&self, key: &str, bytes: Vec<u8>, content: Content) -> Result<String, ObjectsError> {
        let version = FileObjects::version(&bytes);
        self.objects.put(key, bytes, content, PutMode::Replace).await?;
        Ok(version)
    }

    async fn create_row(&self, key: &Key, attributes: &Attributes) -> Result<bool, StoreError> {
        let (key, attributes) = (key.clone(), attributes.clone());
        self.database
            .write(Durability::Crash, move |tx| {
                let is_new = item_rows::get(tx, &key)?.is_none();
                if is_new {
                    item_rows::put(tx, &key, &attributes)?;
                }
                Ok(is_new)
            })
            .await
    }

    /// The objects folder sends no notifications.
    async fn has_upload_notifications(&self) -> Result<bool, ObjectsError> {
        Ok(false)
    }
}
