//! Whole-table operations of `rebuild`, `verify` and consolidation.

use std::collections::BTreeSet;

use async_trait::async_trait;
use sparks_domain::{Difference, FaceId, IdentityHead, ImageId, Item, Key, Mutation, PersonId, PhotoState, Position};

use super::{DecidedFace, PhotoGuard, Store, StoreError};

/// Scans and repairs the whole table. Never used while a photo is processed.
#[async_trait]
pub trait Maintenance: Store {
    /// Returns the position of the last event of every lane.
    async fn heads(&self) -> Result<Position, StoreError>;

    /// Returns at most `most` rows after `after`, in an order that the store chooses.
    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError>;

    /// Returns the states of these photos, in the order of `images`.
    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError>;

    /// Compares rows with what they should be, group by group, and with `write` repairs them. A group with a missing row of the
    /// platform is skipped: the platform has deleted the photo. A group that differs is neither repaired nor reported as different
    /// where its guard does not hold any more.
    async fn repair(&self, groups: Vec<RepairGroup>, write: bool) -> Result<RepairReport, StoreError>;

    /// Returns at most `most` stored faces without a person after `after`, by image and number.
    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError>;

    /// Returns the pairs of persons that appear as different faces of one photo, each pair once, the lower ID first. With `of`
    /// only the pairs that contain one of these persons, without reading other photos.
    async fn co_occurrences(
        &self,
        of: Option<&BTreeSet<PersonId>>,
    ) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError>;

    /// Returns the position of a checkpoint.
    async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<Position, StoreError>;

    /// Stores the position of a checkpoint.
    async fn set_checkpoint(&self, checkpoint: Checkpoint, position: &Position) -> Result<(), StoreError>;

    /// Returns a digest of all rows.
    async fn fingerprint(&self) -> Result<Fingerprint, StoreError>;
}

/// A reader of the event log that stores its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkpoint {
    /// The rows of all photos reflect the merges up to this identity event.
    Followed,
    /// Consolidation has considered the faces of all events up to this position.
    Considered,
}

/// Rows that are compared and repaired together.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairGroup {
    /// The state that the rows were projected from.
    pub guard: RepairGuard,
    /// The rows as they should be.
    pub mutations: Vec<Mutation>,
}

/// The condition under which rows are repaired.
#[derive(Debug, Clone, PartialEq)]
pub enum RepairGuard {
    /// The state of the photo is unchanged.
    Photo(PhotoGuard),
    /// Neither the identity lane nor the counter has changed.
    Identity(IdentityHead),
}

/// The result of a comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RepairReport {
    /// Rows that differed from what they should be.
    pub differences: Vec<Difference>,
    /// Rows of the platform that are missing; the rows of those photos were skipped.
    pub gone: Vec<Key>,
    /// Positions of the groups that were skipped because their guard does not hold any more. They must be projected again.
    pub outdated: Vec<usize>,
}

/// A digest of all rows of the table: equal exactly when the rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// SHA-256, in hexadecimal.
    pub sha256: String,
    /// The number of rows.
    pub rows: u64,
}
