//! Merging persons: all rows follow, an unmerge restores every byte, and automatic merges respect human decisions.

use std::sync::Arc;

use sparks_domain::{Key, Projection};
use sparks_engine::{Checkpoint, Maintenance, MergeError, MergeSummary, Rebuilder, Store, SystemClock};
use sparks_tests::{
    album::{Photo, album, photo, photo_with_noise},
    fault_injection::FaultPlan,
    samples::person,
    snapshot::{count, read_log},
    worker::{Worker, consolidator, drain, image_of, open, persons_in, rebuilder, upload},
};

use super::{
    data_folders::DataFolders,
    processed_album::{ProcessedAlbum, assert_same_contents},
};

const USERS: &str = r#"
    INSERT INTO items (PK, SK, item) VALUES
    ('ann@example.org', 'ann@example.org', '{"entityType":"USER","karma":7,"personId":"person2"}'),
    ('bob@example.org', 'bob@example.org', '{"entityType":"USER","personId":"person1"}'),
    ('eve@example.org', 'eve@example.org', '{"entityType":"USER","personId":"person2"}')"#;

const FOREIGN_ATTRIBUTES: &str = r#"
    UPDATE items SET item = json_set(item, '$.votes', json('[1,2.50]'), '$.note', 'the "tall" one')
    WHERE PK = 'PERSON#person2'"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_unmerge_restores_every_byte() {
    let folders = DataFolders::new();
    let identities: Vec<&[usize]> = [&[0][..], &[1]].repeat(50);
    let photos = album(&[&identities[..], &[&[0, 2], &[2, 1], &[]]].concat());
    let fixture = ProcessedAlbum::create(&folders, photos).await;
    assert_eq!((fixture.tag_count(1).await, fixture.tag_count(2).await), (51, 51));
    assert_eq!((fixture.execute_sql(USERS), fixture.execute_sql(FOREIGN_ATTRIBUTES)), (3, 1));
    rebuilder(&fixture.backend).run(true, |_| ()).await.unwrap();
    let user = async |name: &str| fixture.row(&Key::user(&name.parse().unwrap())).await.unwrap()["personId"].clone();
    // Foreign rows keep their order of attributes until the worker writes them for the first time.
    let first = fixture.merge(1, 2).await;
    fixture.unmerge(first.event).await;

    let before = fixture.contents().await;
    let merged = fixture.merge(1, 2).await;
    assert_eq!((merged.into, merged.from), (person(1), person(2)));
    fixture.assert_no_drift().await;
    assert_eq!((fixture.tag_count(1).await, fixture.tag_count(2).await, fixture.tag_count(3).await), (102, 0, 2));
    assert_eq!(fixture.row(&Key::person(person(2))).await, None);
    assert_eq!([user("ann@example.org").await, user("bob@example.org").await], ["person1", "person1"]);
    let crop = |number| fixture.folder.join(format!("objects/persons/person{number}.jpg")).exists();
    assert_eq!([crop(1), crop(2)], [true, false]);
    for photo in &fixture.photos[..100] {
        assert_eq!(persons_in(&fixture.backend, photo).await, [person(1)]);
    }

    assert_eq!(fixture.unmerge(merged.event).await, person(2));
    assert_same_contents(&fixture.contents().await, &before);
    assert_eq!([user("ann@example.org").await, user("bob@example.org").await], ["person2", "person1"]);
    assert_eq!([crop(1), crop(2)], [true, true]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_chain_of_merges_is_undone_in_any_order() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1], &[2], &[3], &[0], &[1], &[2], &[3]])).await;
    fixture.execute_sql(USERS);
    let first = fixture.merge(1, 2).await;
    fixture.unmerge(first.event).await;
    let before = fixture.contents().await;
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
        let merges = [fixture.merge(3, 4).await, fixture.merge(2, 3).await, fixture.merge(1, 2).await];
        assert_eq!((fixture.tag_count(1).await, fixture.tag_count(4).await), (8, 0));
        for merge in order {
            fixture.unmerge(merges[merge].event).await;
            fixture.assert_no_drift().await;
        }
        assert_same_contents(&fixture.contents().await, &before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn undoing_the_middle_of_a_chain_keeps_the_other_merges() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1], &[2], &[3]])).await;
    fixture.merge(3, 4).await;
    let middle = fixture.merge(2, 3).await;
    fixture.merge(1, 2).await;
    assert_eq!(fixture.unmerge(middle.event).await, person(3));
    fixture.assert_no_drift().await;
    for (photo, number) in fixture.photos.iter().zip([1, 1, 3, 3]) {
        assert_eq!(persons_in(&fixture.backend, photo).await, [person(number)]);
    }
    assert_eq!((fixture.tag_count(1).await, fixture.tag_count(3).await), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_merged_person_is_identified_as_the_surviving_one() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1]])).await;
    let merged = fixture.merge(1, 2).await;
    let during = [photo(50, &[1]), photo(51, &[0, 5])];
    upload(&fixture.backend, &during).await;
    drain(&fixture.backend).await;
    assert_eq!(persons_in(&fixture.backend, &during[0]).await, [person(1)]);
    assert_eq!(persons_in(&fixture.backend, &during[1]).await, [person(1), person(3)], "person numbers are not reused");
    fixture.unmerge(merged.event).await;
    fixture.assert_no_drift().await;
    assert_eq!(persons_in(&fixture.backend, &during[0]).await, [person(2)], "a photo that was decided while merged");
    assert_eq!(persons_in(&fixture.backend, &during[1]).await, [person(1), person(3)]);
    let after = [photo(60, &[1]), photo(61, &[0])];
    upload(&fixture.backend, &after).await;
    drain(&fixture.backend).await;
    assert_eq!(persons_in(&fixture.backend, &after[0]).await, [person(2)]);
    assert_eq!(persons_in(&fixture.backend, &after[1]).await, [person(1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn persons_seen_in_one_photo_are_merged_only_by_force() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0, 1], &[2], &[2, 1]])).await;
    let before = fixture.contents().await;
    for (a, b) in [(1, 2), (2, 1), (2, 3)] {
        let refused = fixture.consolidator.merge(person(a), person(b), false).await;
        assert!(matches!(refused, Err(MergeError::SeenTogether(..))), "{a} and {b}: {refused:?}");
    }
    assert_eq!(count(&read_log(&fixture.backend).await, "PersonsMerged"), 0);

    let forced = fixture.consolidator.merge(person(2), person(1), true).await.unwrap();
    fixture.consolidator.apply_merges(|_| ()).await.unwrap();
    assert_eq!(
        persons_in(&fixture.backend, &fixture.photos[0]).await,
        [person(1)],
        "both faces are the surviving person"
    );
    // A merged person co-occurs with every person that one of its parts co-occurs with.
    let refused = fixture.consolidator.merge(person(1), person(3), false).await;
    assert!(matches!(refused, Err(MergeError::SeenTogether(..))), "{refused:?}");
    fixture.unmerge(forced.event).await;
    assert_same_contents(&fixture.contents().await, &before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn invalid_merges_are_refused_and_not_recorded() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1]])).await;
    let events = read_log(&fixture.backend).await.len();
    let refused = fixture.consolidator.merge(person(1), person(9), false).await;
    assert!(matches!(refused, Err(MergeError::Unknown(unknown)) if unknown == person(9)), "{refused:?}");
    let refused = fixture.consolidator.merge(person(2), person(2), true).await;
    assert!(matches!(refused, Err(MergeError::AlreadyMerged(..))), "{refused:?}");
    let not_a_merge = read_log(&fixture.backend).await[0].id;
    let refused = fixture.consolidator.unmerge(not_a_merge).await;
    assert!(matches!(refused, Err(MergeError::NotAMerge(_))), "{refused:?}");
    assert_eq!(read_log(&fixture.backend).await.len(), events);

    let merged = fixture.merge(1, 2).await;
    let refused = fixture.consolidator.merge(person(2), person(1), false).await;
    assert!(matches!(refused, Err(MergeError::AlreadyMerged(..))), "{refused:?}");
    fixture.unmerge(merged.event).await;
    let events = read_log(&fixture.backend).await.len();
    assert_eq!(fixture.unmerge(merged.event).await, person(2), "a second unmerge succeeds");
    assert_eq!(read_log(&fixture.backend).await.len(), events, "a second unmerge records no event");
}

fn rename(number: u32, name: &str) -> String {
    format!("UPDATE items SET item = json_set(item, '$.displayName', '{name}') WHERE PK = 'PERSON#person{number}'")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_foreign_display_name_survives_merge_and_unmerge() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1], &[2]])).await;
    fixture.execute_sql(&rename(2, "Bride"));
    let merged = fixture.merge(1, 2).await;
    assert_eq!(fixture.display_name(1).await, "Bride", "a person without a name takes the name of the merged one");
    fixture.assert_no_drift().await;
    fixture.unmerge(merged.event).await;
    assert_eq!([fixture.display_name(1).await, fixture.display_name(2).await], ["person1", "Bride"]);
    fixture.assert_no_drift().await;

    let again = fixture.merge(1, 2).await;
    fixture.execute_sql(&rename(1, "Groom"));
    fixture.unmerge(again.event).await;
    assert_eq!([fixture.display_name(1).await, fixture.display_name(2).await], ["Groom", "Bride"]);
    let last = fixture.merge(1, 2).await;
    assert_eq!(fixture.display_name(1).await, "Groom", "a person with a name keeps it");
    fixture.unmerge(last.event).await;
    assert_eq!(
        [fixture.display_name(1).await, fixture.display_name(2).await, fixture.display_name(3).await],
        ["Groom", "Bride", "person3"]
    );
    fixture.assert_no_drift().await;
}

/// Returns four photos of one identity that are too dissimilar to match each other, and photos of 20 other identities.
fn fragmented_album() -> Vec<Photo> {
    let fragments = (0..4).map(|number| photo_with_noise(number, 0, 1.1));
    let others = (10..30).map(|number| photo(number, &[number as usize]));
    fragments.chain(others).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn duplicates_are_merged_and_never_again_after_an_unmerge() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, fragmented_album()).await;
    let allocated = fixture.backend.store.identity(sparks_domain::Seq(0)).await.unwrap().counter;
    assert!(allocated > 21, "{allocated} persons: no identity has several persons");
    let merged = fixture.consolidator.merge_duplicates().await.unwrap();
    fixture.consolidator.apply_merges(|_| ()).await.unwrap();
    assert!(!merged.is_empty() && merged.iter().all(|merge| merge.from <= person(4)), "{merged:?}");
    fixture.assert_no_drift().await;
    assert_eq!(fixture.consolidator.merge_duplicates().await.unwrap(), [], "merges without new faces");

    let unmerged = merged.last().unwrap();
    fixture.unmerge(unmerged.event).await;
    let has_no_repeat =
        |merged: &[MergeSummary]| !merged.iter().any(|m| (m.into, m.from) == (unmerged.into, unmerged.from));
    // All persons are proposed again, and once more after another photo of the identity.
    fixture.backend.store.set_checkpoint(Checkpoint::Considered, &sparks_domain::Position::default()).await.unwrap();
    let again = fixture.consolidator.merge_duplicates().await.unwrap();
    assert!(has_no_repeat(&again), "{again:?}");
    let another = [photo_with_noise(5, 0, 1.1)];
    upload(&fixture.backend, &another).await;
    drain(&fixture.backend).await;
    fixture.consolidator.merge_duplicates().await.unwrap();
    fixture.consolidator.apply_merges(|_| ()).await.unwrap();
    let proposals = fixture.consolidator.propose(None).await.unwrap();
    assert!(
        !proposals.merges.iter().any(|merge| (merge.into, merge.from) == (unmerged.into, unmerged.from)),
        "{proposals:?}"
    );
    let fragments = [0, 1, 2, 3].map(|n| &fixture.photos[n]);
    let mut named = Vec::new();
    for photo in fragments {
        named.extend(persons_in(&fixture.backend, photo).await);
    }
    assert!(
        named.contains(&unmerged.from) && named.contains(&unmerged.into),
        "{unmerged:?} were merged again: {named:?}"
    );
    fixture.assert_no_drift().await;

    // A human may merge them again.
    let (into, from) = (unmerged.into.number(), unmerged.from.number());
    assert_eq!(fixture.merge(into, from).await.from, unmerged.from);
}

/// A worker identifies a face as person2; before it commits, person2 is merged into person1.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_that_commits_after_a_merge_names_the_surviving_person() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1]])).await;
    let late = [photo(50, &[1])];
    upload(&fixture.backend, &late).await;
    let (folder, backend) = (fixture.folder.clone(), open(&fixture.folder));
    let plan = FaultPlan::interrupting_call_named("store.commit", async move {
        let other = open(&folder);
        let consolidator = consolidator(&other, &FaultPlan::without_faults()).await.unwrap();
        consolidator.merge(person(1), person(2), false).await.unwrap();
        consolidator.apply_merges(|_| ()).await.unwrap();
    });
    Worker::start(&backend, &plan).await.unwrap().drain(&backend).await.unwrap();
    assert!(plan.has_interruption_run());
    let state = fixture.backend.store.photo(&image_of(&late[0])).await.unwrap().unwrap();
    assert_eq!(state.persons, [person(2)], "the decision before the merge");
    assert_eq!(persons_in(&fixture.backend, &late[0]).await, [person(1)], "the row after the merge");
    assert_eq!((fixture.tag_count(1).await, fixture.tag_count(2).await), (3, 0));
    fixture.assert_no_drift().await;
}

/// While photos of a merge are updated, another process merges the surviving person into a third and updates the photos first.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_photo_updates_end_without_drift() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1], &[2], &[2], &[2]])).await;
    fixture.consolidator.merge(person(2), person(3), false).await.unwrap();
    let (folder, backend) = (fixture.folder.clone(), open(&fixture.folder));
    let plan = FaultPlan::interrupting_call_named("store.commit", async move {
        let other = open(&folder);
        let consolidator = consolidator(&other, &FaultPlan::without_faults()).await.unwrap();
        consolidator.merge(person(1), person(2), false).await.unwrap();
        consolidator.apply_merges(|_| ()).await.unwrap();
    });
    consolidator(&backend, &plan).await.unwrap().apply_merges(|_| ()).await.unwrap();
    assert!(plan.has_interruption_run());
    // The next update finishes the work.
    fixture.consolidator.apply_merges(|_| ()).await.unwrap();
    fixture.assert_no_drift().await;
    assert_eq!(fixture.tag_count(1).await, 5);
}

/// A merge happens after a rebuild has read the log and before it writes rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rebuild_during_a_merge_ends_without_drift() {
    let folders = DataFolders::new();
    let fixture = ProcessedAlbum::create(&folders, album(&[&[0], &[1], &[1]])).await;
    let (folder, backend) = (fixture.folder.clone(), open(&fixture.folder));
    let plan = FaultPlan::interrupting_call_named("store.repair", async move {
        let other = open(&folder);
        let consolidator = consolidator(&other, &FaultPlan::without_faults()).await.unwrap();
        consolidator.merge(person(1), person(2), false).await.unwrap();
        consolidator.apply_merges(|_| ()).await.unwrap();
    });
    let store = plan.wrap(Arc::clone(&backend.store) as Arc<dyn Maintenance>);
    let rebuilder = Rebuilder::new(store, Arc::new(SystemClock), Projection::default(), "tests".into());
    rebuilder.run(true, |_| ()).await.unwrap();
    assert!(plan.has_interruption_run());
    fixture.assert_no_drift().await;
    assert_eq!((fixture.tag_count(1).await, fixture.tag_count(2).await), (3, 0));
    assert_eq!(fixture.row(&Key::person(person(2))).await, None);
}
