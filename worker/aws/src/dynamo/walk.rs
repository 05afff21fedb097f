//! Walking through whole tables: what operators ask for, and no worker that runs.

use sparks_engine::{DecidedFace, StoreError};

use super::{DynamoStore, faces, value::Fields};
use crate::trouble::patiently;

impl DynamoStore {
    /// Shows all faces that are kept, photo by photo.
    pub(super) async fn every_face(&self, mut show: impl FnMut(DecidedFace)) -> Result<(), StoreError> {
        let mut start = None;
        loop {
            let (items, next) = self.scan_page(&self.tables.faces, start, None).await?;
            for item in items.iter().filter(|item| faces::is_photo(item)) {
                faces::faces(item)?.into_iter().for_each(&mut show);
            }
            start = next;
            if start.is_none() {
                return Ok(());
            }
        }
    }

    /// A page of all rows, and where to go on.
    pub(super) async fn scan_page(
        &self,
        table: &str,
        start: Option<Fields>,
        most: Option<i32>,
    ) -> Result<(Vec<Fields>, Option<Fields>), StoreError> {
        let scan = || {
            let scan = self.client.scan().table_name(table).consistent_read(true).set_limit(most);
            scan.set_exclusive_start_key(start.clone()).send()
        };
        let answer = patiently(scan).await?;
        Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
    }
}
