//! What only rebuilding and looking at everything needs.

use std::collections::BTreeSet;

use async_trait::async_trait;
use sparks_domain::{Difference, FaceId, ImageId, Item, Key, Mutation, PersonId, PhotoState, Position};

use super::{DecidedFace, Store, StoreError};

/// Walks and mends the whole table. Never on the path of a photo.
#[async_trait]
pub trait Maintenance: Store {
    /// How far the log goes.
    async fn heads(&self) -> Result<Position, StoreError>;

    /// All rows after `after`, in an order of the store's own, at most `most`.
    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError>;

    /// What the log knows of these photos, in their order.
    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError>;

    /// Compares rows with what they should be, group by group, and, if told to, makes them so.
    /// A group in which a row of the platform is gone is left alone: the photo was deleted.
    async fn mend(&self, groups: Vec<Vec<Mutation>>, write: bool) -> Result<Mended, StoreError>;

    /// Kept faces that are nobody's, by image and number, after `after`, at most `most`.
    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError>;

    /// Who was seen beside whom, as different faces of one photo: each pair once, the lower number first. With `of`, only pairs
    /// with one of these persons, for which no other photos are looked at.
    async fn company(&self, of: Option<&BTreeSet<PersonId>>) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError>;

    /// How far something has come.
    async fn mark(&self, mark: Mark) -> Result<Position, StoreError>;

    /// Something has come this far.
    async fn set_mark(&self, mark: Mark, position: &Position) -> Result<(), StoreError>;

    /// A digest of all rows.
    async fn fingerprint(&self) -> Result<Fingerprint, StoreError>;
}

/// What goes along the log after the fact, and remembers how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// All photos' rows show who is who up to this identity event.
    Followed,
    /// All faces up to this event have been considered as evidence of who is who.
    Considered,
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mended {
    /// Rows that were not as they should be.
    pub differences: Vec<Difference>,
    /// Rows of the platform that are gone, and with them all that was ours.
    pub gone: Vec<Key>,
}

/// A digest of all rows of the table: equal exactly when the rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// SHA-256, in hexadecimal.
    pub sha256: String,
    /// How many rows there are.
    pub rows: u64,
}
