//! The collection of faces.

use aws_sdk_rekognition::Client;

use super::{Setup, SetupError, failed};
use crate::trouble::{Trouble, patiently};

impl Setup {
    /// The collection of faces.
    pub async fn collection(&mut self, name: &str) -> Result<(), SetupError> {
        let (client, what) = (self.connection.rekognition(), format!("Rekognition collection {name}"));
        let is_there = faces(&client, name).await.map_err(failed(&what))?.is_some();
        let make = async || patiently(|| client.create_collection().collection_id(name).send()).await;
        self.ensure(&what, is_there, make).await.map(drop)
    }
}

/// How many faces the collection has, if it is there.
pub(crate) async fn faces(client: &Client, name: &str) -> Result<Option<i64>, Trouble> {
    match patiently(|| client.describe_collection().collection_id(name).send()).await {
        Ok(found) => Ok(Some(found.face_count().unwrap_or(0))),
        Err(trouble) if trouble.is(&["ResourceNotFoundException"]) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}
