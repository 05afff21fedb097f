//! Scans of whole tables, for operators' commands. A running worker never scans.

use sparks_engine::{DecidedFace, StoreError};

use super::{DynamoStore, attribute_value::Fields, face_items};
use crate::retry::with_retry;

impl DynamoStore {
    /// Calls `visit` with every stored face, photo by photo.
    pub(super) async fn scan_faces(&self, mut visit: impl FnMut(DecidedFace)) -> Result<(), StoreError> {
        let mut start = None;
        loop {
            let (items, next) = self.scan_page(&self.tables.faces, start, None).await?;
            for item in items.iter().filter(|item| face_items::item_position(item).is_some()) {
                face_items::faces(item)?.into_iter().for_each(&mut visit);
            }
            start = next;
            if start.is_none() {
                return Ok(());
            }
        }
    }

    /// Returns a page of items, and the key to continue after.
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
        let answer = with_retry(scan).await?;
        Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
    }
}
