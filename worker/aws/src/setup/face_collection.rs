//! The Rekognition face collection.

use aws_sdk_rekognition::Client;

use super::{Setup, SetupError, failed};
use crate::{error::AwsError, retry::with_retry};

impl Setup {
    /// Sets up the Rekognition collection.
    pub async fn face_collection(&mut self, name: &str) -> Result<(), SetupError> {
        let (client, resource) = (self.connection.rekognition(), format!("Rekognition collection {name}"));
        let exists = face_count(&client, name).await.map_err(failed(&resource))?.is_some();
        let create = async || with_retry(|| client.create_collection().collection_id(name).send()).await;
        self.ensure(&resource, exists, create).await.map(drop)
    }
}

/// Returns the number of faces in the collection, if it exists.
pub(crate) async fn face_count(client: &Client, name: &str) -> Result<Option<i64>, AwsError> {
    match with_retry(|| client.describe_collection().collection_id(name).send()).await {
        Ok(found) => Ok(Some(found.face_count().unwrap_or(0))),
        Err(error) if error.has_code(&["ResourceNotFoundException"]) => Ok(None),
        Err(error) => Err(error),
    }
}
