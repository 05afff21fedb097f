//! Merges that fail: the others are done nevertheless, and the failed ones are tried again later.

use std::{sync::Arc, time::Duration};

use sparks_domain::{Key, MergeProposal, PersonId};
use sparks_engine::{Consolidator, Maintenance, Objects};
use sparks_tests::{
    album::{Photo, photo, photo_with_noise},
    manual_clock::ManualClock,
    snapshot::{count, read_log},
    worker::consolidator_with_clock,
};

use super::{data_folders::DataFolders, processed_album::ProcessedAlbum};

/// Returns photos of two identities whose faces are too dissimilar to match each other, and photos of 20 other identities.
fn fragmented_album() -> Vec<Photo> {
    let fragments = (0..8).map(|number| photo_with_noise(number, number as usize / 4, 1.1));
    let others = (10..30).map(|number| photo(number, &[number as usize]));
    fragments.chain(others).collect()
}

struct FragmentedAlbum {
    album: ProcessedAlbum,
    proposals: Vec<MergeProposal>,
    consolidator: Consolidator,
    clock: Arc<ManualClock>,
}

impl FragmentedAlbum {
    async fn create(folders: &DataFolders) -> Self {
        let album = ProcessedAlbum::create(folders, fragmented_album()).await;
        let proposals = album.consolidator.propose(None).await.unwrap().merges;
        assert!(proposals.len() > 2, "{proposals:?}");
        let clock = ManualClock::new();
        let store = Arc::clone(&album.backend.store) as Arc<dyn Maintenance>;
        let objects = Arc::clone(&album.backend.objects) as Arc<dyn Objects>;
        let consolidator = consolidator_with_clock(store, objects, Duration::ZERO, Arc::clone(&clock) as _);
        Self { consolidator: consolidator.await.unwrap(), album, proposals, clock }
    }

    /// Makes the row of a person unreadable. Returns the statement that restores it.
    async fn damage(&self, key: &Key) -> String {
        let row = self.album.row(key).await.unwrap().to_string();
        let update = |row: &str| format!("UPDATE items SET item = '{row}' WHERE PK = '{}'", key.pk);
        assert_eq!(self.album.execute_sql(&update("[]")), 1);
        update(&row)
    }

    async fn merge_count(&self) -> usize {
        count(&read_log(&self.album.backend).await, "PersonsMerged")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_missing_person_row_does_not_prevent_a_merge() {
    let folders = DataFolders::new();
    let FragmentedAlbum { album, proposals, consolidator, .. } = FragmentedAlbum::create(&folders).await;
    let is_final = |into: &&PersonId| !proposals.iter().any(|merge| merge.from == **into);
    let survivor = proposals.iter().map(|merge| &merge.into).find(is_final).unwrap();
    assert_eq!(album.execute_sql(&format!("DELETE FROM items WHERE PK = 'PERSON#{survivor}'")), 1);
    let merged = consolidator.run_to_end(true).await.unwrap().merged;
    assert_eq!(merged.len(), proposals.len(), "{merged:?}");
    assert!(album.row(&Key::person(*survivor)).await.is_some(), "the row of {survivor} is restored");
    album.assert_no_drift().await;

    // The row of the survivor is missing when the merge is undone, too, and the row of the other exists already.
    let last = merged.iter().rfind(|merge| merge.into == *survivor).unwrap();
    assert_eq!(album.execute_sql(&format!("DELETE FROM items WHERE PK = 'PERSON#{survivor}'")), 1);
    let key = Key::person(last.from);
    album.execute_sql(&format!("INSERT INTO items (PK, SK, item) VALUES ('{}', '{}', '{{}}')", key.pk, key.sk));
    album.unmerge(last.event).await;
    album.assert_no_drift().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failing_merge_is_skipped_and_the_others_are_done() {
    let folders = DataFolders::new();
    let fixture = FragmentedAlbum::create(&folders).await;
    let failing = fixture.proposals[0];
    let restore = fixture.damage(&Key::person(failing.from)).await;
    let report = fixture.consolidator.run_to_end(true).await.unwrap();
    assert_eq!(report.merged.len(), fixture.proposals.len() - 1, "{report:?}");
    assert!(report.merged.iter().all(|merge| merge.from != failing.from), "{report:?}");
    for merge in &report.merged {
        assert_eq!(fixture.album.tag_count(merge.from.number()).await, 0, "photos of {} are updated", merge.from);
    }
    assert!(report.has_more, "the failed merge is left");
    assert_eq!(fixture.album.execute_sql(&restore), 1);
    fixture.album.assert_no_drift().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failed_merge_is_tried_again_with_growing_delays() {
    let folders = DataFolders::new();
    let fixture = FragmentedAlbum::create(&folders).await;
    let restore = fixture.damage(&Key::person(fixture.proposals[0].from)).await;
    fixture.consolidator.run_to_end(true).await.unwrap();
    let merged = fixture.merge_count().await;
    // Five more failures.
    for _ in 0..5 {
        fixture.clock.advance(Duration::from_secs(3600));
        assert!(fixture.consolidator.run_to_end(true).await.unwrap().has_more);
    }
    assert_eq!(fixture.merge_count().await, merged);
    fixture.album.execute_sql(&restore);
    fixture.clock.advance(Duration::from_secs(30));
    assert_eq!(
        fixture.consolidator.run_to_end(true).await.unwrap().merged,
        [],
        "tried again after 30 s despite six failures"
    );
    fixture.clock.advance(Duration::from_secs(3600));
    let report = fixture.consolidator.run_to_end(true).await.unwrap();
    assert_eq!((report.merged.len(), report.has_more), (1, false), "{report:?}");
    assert_eq!(fixture.merge_count().await, fixture.proposals.len());
    fixture.album.assert_no_drift().await;
}

/// Another process continues where the failed merge was, because the one that met the failure may die.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failed_merge_is_tried_again_by_another_process() {
    let folders = DataFolders::new();
    let fixture = FragmentedAlbum::create(&folders).await;
    let restore = fixture.damage(&Key::person(fixture.proposals[0].from)).await;
    fixture.consolidator.run_to_end(true).await.unwrap();
    fixture.album.execute_sql(&restore);
    let report = fixture.album.consolidator.run_to_end(true).await.unwrap();
    assert_eq!((report.merged.len(), report.has_more), (1, false), "{report:?}");
}
