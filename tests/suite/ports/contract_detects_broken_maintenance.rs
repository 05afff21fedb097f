//! Mutation testing of the maintenance contract: each known defect of an adapter must fail a named check.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use sparks_domain::{FaceId, ImageId, Item, Key, PersonId, PhotoState, Position, Seq};
use sparks_engine::{
    Checkpoint, DecidedFace, Fingerprint, Maintenance, RepairGroup, RepairGuard, RepairReport, StoreError,
};
use sparks_tests::contract;

use super::contract_detects_broken_store::{BrokenStore, Defect, memory_store};

#[async_trait]
impl Maintenance for BrokenStore {
    async fn heads(&self) -> Result<Position, StoreError> {
        self.inner.heads().await
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        self.inner.scan(after, most).await
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        self.inner.photos(images).await
    }

    async fn repair(&self, groups: Vec<RepairGroup>, write: bool) -> Result<RepairReport, StoreError> {
        let mut groups = groups;
        for group in &mut groups {
            match &mut group.guard {
                RepairGuard::Photo(guard) if self.defect == Defect::RepairsOutdatedPhotos => {
                    guard.before = self.inner.photo(&guard.image).await?;
                }
                RepairGuard::Identity(head) if self.defect == Defect::RepairsOutdatedPersons => {
                    let tail = self.inner.identity(head.seq).await?;
                    (head.seq, head.counter) = (tail.seq, tail.counter);
                }
                _ => {}
            }
        }
        self.inner.repair(groups, write && self.defect != Defect::DropsRepairs).await
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        let mut faces = self.inner.unidentified(after, most).await?;
        match self.defect {
            Defect::SkipsRestOfPhoto => {
                faces.retain(|decided| after.is_none_or(|after| decided.kept.face.image != after.image));
            }
            Defect::DropsEventOfFace => faces.iter_mut().for_each(|decided| decided.seq = Seq(0)),
            _ => {}
        }
        Ok(faces)
    }

    async fn co_occurrences(
        &self,
        of: Option<&BTreeSet<PersonId>>,
    ) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        let of = of.filter(|_| self.defect != Defect::IgnoresPersonFilter);
        let mut pairs = self.inner.co_occurrences(of).await?;
        match self.defect {
            Defect::DropsCoOccurrencesOnPromotion if !self.promoted.lock().unwrap().is_empty() => pairs.clear(),
            Defect::ReturnsOneCoOccurrence => pairs = pairs.into_iter().take(1).collect(),
            Defect::ReturnsPairsTwice => pairs.extend(pairs.clone().into_iter().map(|(a, b)| (b, a))),
            _ => {}
        }
        Ok(pairs)
    }

    async fn checkpoint(&self, checkpoint: Checkpoint) -> Result<Position, StoreError> {
        let checkpoint = if self.defect == Defect::SharesCheckpoints { Checkpoint::Followed } else { checkpoint };
        self.inner.checkpoint(checkpoint).await
    }

    async fn set_checkpoint(&self, checkpoint: Checkpoint, position: &Position) -> Result<(), StoreError> {
        if self.defect == Defect::DropsCheckpoints {
            Ok(())
        } else {
            self.inner.set_checkpoint(checkpoint, position).await
        }
    }

    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        self.inner.fingerprint().await
    }
}

/// Each defect and the check that must fail.
const DETECTED_BY: [(Defect, &str); 14] = [
    (Defect::SkipsRestOfPhoto, "unidentified_faces_are_paged_in_order"),
    (Defect::DropsEventOfFace, "unidentified_faces_are_paged_in_order"),
    (Defect::IgnoresIdentifiedFaces, "co_occurrences_include_faces_identified_later"),
    (Defect::ReturnsOneCoOccurrence, "co_occurrences_are_pairs_of_one_photo_version"),
    (Defect::KeepsErasedPhotos, "erased_faces_are_in_no_listing"),
    (Defect::KeepsErasedFaces, "erased_faces_are_in_no_listing"),
    (Defect::DropsCoOccurrencesOnPromotion, "promotion_keeps_co_occurrences"),
    (Defect::IgnoresPersonFilter, "co_occurrences_are_pairs_of_one_photo_version"),
    (Defect::ReturnsPairsTwice, "co_occurrences_are_pairs_of_one_photo_version"),
    (Defect::RepairsOutdatedPhotos, "repairs_of_photos_need_an_unchanged_state"),
    (Defect::RepairsOutdatedPersons, "repairs_of_persons_need_unchanged_persons"),
    (Defect::DropsRepairs, "repairs_of_photos_need_an_unchanged_state"),
    (Defect::SharesCheckpoints, "checkpoints_are_independent_and_persistent"),
    (Defect::DropsCheckpoints, "checkpoints_are_independent_and_persistent"),
];

async fn failures(defect: Defect) -> Vec<&'static str> {
    let make = async || BrokenStore::new(memory_store(), defect) as Arc<dyn Maintenance>;
    contract::maintenance(make).await.failures()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_defect_in_maintenance_fails_a_check() {
    assert_eq!(failures(Defect::None).await, [""; 0], "failures of an adapter without a defect");
    for (defect, check) in DETECTED_BY {
        let failures = failures(defect).await;
        assert!(failures.contains(&check), "{check} passes with the defect {defect:?}; failed checks: {failures:?}");
    }
}
