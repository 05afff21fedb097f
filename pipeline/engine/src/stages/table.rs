//! Reads of the platform's table and bucket that several stages need.

use std::collections::BTreeSet;

use sparks_domain::{Email, ImageId, Item, Key, PersonId, object_keys};

use crate::{Cause, Failure, Filter, ObjectInfo, Pipeline, Query};

/// Reads rows and objects of a photo.
pub(super) struct Table<'a>(pub &'a Pipeline);

/// The number of tags read per page by [`Table::photos_of_person`], after a first page of the wanted number.
const NEXT_TAGS: usize = 32;
/// The number of rows read per page otherwise.
const PAGE: usize = 256;

impl Table<'_> {
    /// Returns the IMAGE row of a photo and its uploader.
    pub async fn image_row(&self, image: &ImageId) -> Result<Option<(Email, Item)>, Failure> {
        let filter = Filter::Partition { pk: image.to_string(), sk_prefix: "UPLOADED_BY#".into() };
        let rows = self.0.ports.store.query(&Query { filter, after: None, limit: 1, backwards: false }).await?;
        let Some(row) = rows.items.into_iter().next() else { return Ok(None) };
        let uploader = row.key.sk.trim_start_matches("UPLOADED_BY#").parse();
        let uploader = uploader.map_err(|e| Failure::new(Cause::Fault, format!("the IMAGE row of {image}: {e}")))?;
        Ok(Some((uploader, row)))
    }

    /// Returns the keys of all TAGGING rows of a photo, including those that other programs wrote.
    pub async fn taggings_of_photo(&self, image: &ImageId) -> Result<Vec<Key>, Failure> {
        let filter = Filter::Partition { pk: image.to_string(), sk_prefix: "PERSON#".into() };
        let mut query = Query { filter, after: None, limit: PAGE, backwards: false };
        let mut keys = Vec::new();
        loop {
            let page = self.0.ports.store.query(&query).await?;
            keys.extend(page.items.into_iter().map(|item| item.key));
            match page.last {
                Some(last) => query.after = Some(last),
                None => return Ok(keys),
            }
        }
    }

    /// Returns at most `most` photos tagged with the person, newest first. The index is eventually consistent and may still list
    /// removed tags, so each is read from the table.
    pub async fn photos_of_person(&self, person: PersonId, most: usize) -> Result<Vec<ImageId>, Failure> {
        let filter = Filter::EntityType(format!("TAGGING#{person}"));
        let mut query = Query { filter, after: None, limit: most, backwards: true };
        let mut images = Vec::new();
        loop {
            let page = self.0.ports.store.query(&query).await?;
            let keys: Vec<Key> = page.items.into_iter().map(|item| item.key).collect();
            let rows = self.0.ports.store.batch_get(&keys).await?;
            let existing: BTreeSet<Key> = rows.into_iter().map(|row| row.key).collect();
            images.extend(keys.iter().filter(|key| existing.contains(key)).filter_map(|key| key.pk.parse().ok()));
            match page.last {
                Some(last) if images.len() < most => {
                    query = Query { after: Some(last), limit: NEXT_TAGS, ..query };
                }
                _ => {
                    images.truncate(most);
                    return Ok(images);
                }
            }
        }
    }

    /// Returns the key and the metadata of a photo's original, whatever its file extension.
    pub async fn original(&self, image: &ImageId) -> Result<Option<(String, ObjectInfo)>, Failure> {
        let extensions = object_keys::IMAGE_EXTENSIONS.iter().map(ToString::to_string);
        for extension in extensions.clone().chain(extensions.map(|extension| extension.to_ascii_uppercase())) {
            let key = object_keys::original(image, &extension);
            if let Some(info) = self.0.ports.objects.head(&key).await? {
                return Ok(Some((key, info)));
            }
        }
        Ok(None)
    }
}
