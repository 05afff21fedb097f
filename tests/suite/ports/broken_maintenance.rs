//! The contract of those who look at everything notices adapters that break it.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use sparks_domain::{FaceId, ImageId, Item, Key, Mutation, PersonId, PhotoState, Position, Seq};
use sparks_engine::{DecidedFace, Fingerprint, Maintenance, Mark, Mended, StoreError};
use sparks_tests::contract;

use super::{
    broken_store::{Broken, Wrong},
    embedded::Folders,
};

#[async_trait]
impl Maintenance for Broken {
    async fn heads(&self) -> Result<Position, StoreError> {
        self.inner.heads().await
    }

    async fn scan(&self, after: Option<&Key>, most: usize) -> Result<Vec<Item>, StoreError> {
        self.inner.scan(after, most).await
    }

    async fn photos(&self, images: &[ImageId]) -> Result<Vec<Option<PhotoState>>, StoreError> {
        self.inner.photos(images).await
    }

    async fn mend(&self, groups: Vec<Vec<Mutation>>, write: bool) -> Result<Mended, StoreError> {
        self.inner.mend(groups, write).await
    }

    async fn unidentified(&self, after: Option<&FaceId>, most: usize) -> Result<Vec<DecidedFace>, StoreError> {
        let mut faces = self.inner.unidentified(after, most).await?;
        match self.wrong {
            Wrong::SkipsTheRestOfAPhoto => {
                faces.retain(|decided| after.is_none_or(|after| decided.kept.face.image != after.image));
            }
            Wrong::ForgetsTheEventOfAFace => faces.iter_mut().for_each(|decided| decided.seq = Seq(0)),
            _ => {}
        }
        Ok(faces)
    }

    async fn company(&self, of: Option<&BTreeSet<PersonId>>) -> Result<BTreeSet<(PersonId, PersonId)>, StoreError> {
        let of = of.filter(|_| self.wrong != Wrong::GivesAllCompany);
        let mut company = self.inner.company(of).await?;
        match self.wrong {
            Wrong::PromotesAwayFromTheirCompany if !self.promoted.lock().unwrap().is_empty() => company.clear(),
            Wrong::KnowsOnePairOfCompany => company = company.into_iter().take(1).collect(),
            Wrong::GivesPairsTwice => company.extend(company.clone().into_iter().map(|(a, b)| (b, a))),
            _ => {}
        }
        Ok(company)
    }

    async fn mark(&self, mark: Mark) -> Result<Position, StoreError> {
        let mark = if self.wrong == Wrong::HasOneMark { Mark::Followed } else { mark };
        self.inner.mark(mark).await
    }

    async fn set_mark(&self, mark: Mark, position: &Position) -> Result<(), StoreError> {
        if self.wrong == Wrong::ForgetsMarks { Ok(()) } else { self.inner.set_mark(mark, position).await }
    }

    async fn fingerprint(&self) -> Result<Fingerprint, StoreError> {
        self.inner.fingerprint().await
    }
}

/// Each fault with a check that must notice it.
const CAUGHT_BY: [(Wrong, &str); 11] = [
    (Wrong::SkipsTheRestOfAPhoto, "faces_of_nobody_are_walked_in_order"),
    (Wrong::ForgetsTheEventOfAFace, "faces_of_nobody_are_walked_in_order"),
    (Wrong::ForgetsWhoIsIdentified, "company_counts_who_was_identified_later"),
    (Wrong::KnowsOnePairOfCompany, "company_is_who_was_seen_beside_whom"),
    (Wrong::KeepsErasedPhotos, "erased_faces_are_nobodys_and_no_company"),
    (Wrong::KeepsErasedFaces, "erased_faces_are_nobodys_and_no_company"),
    (Wrong::PromotesAwayFromTheirCompany, "company_stays_when_a_face_is_promoted"),
    (Wrong::GivesAllCompany, "company_is_who_was_seen_beside_whom"),
    (Wrong::GivesPairsTwice, "company_is_who_was_seen_beside_whom"),
    (Wrong::HasOneMark, "marks_stay_where_they_were_put"),
    (Wrong::ForgetsMarks, "marks_stay_where_they_were_put"),
];

async fn failures(folders: &Folders, wrong: Wrong) -> Vec<&'static str> {
    let make = async || Broken::over(folders.maintenance(), wrong) as Arc<dyn Maintenance>;
    contract::maintenance(make).await.failures()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_store_that_overlooks_something_is_caught() {
    let folders = Folders::new();
    assert_eq!(failures(&folders, Wrong::Nothing).await, [""; 0], "the decorator alone");
    for (wrong, check) in CAUGHT_BY {
        let failures = failures(&folders, wrong).await;
        assert!(failures.contains(&check), "{check} does not notice a store that {wrong:?}, only {failures:?}");
    }
}
