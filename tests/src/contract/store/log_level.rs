//! The reader level of the log.

use std::sync::Arc;

use sparks_domain::{Event, Level, Position, Seq};
use sparks_engine::{Commit, CommitError, PhotoGuard, Store, StoreError};
use tokio::task::JoinSet;

use crate::{
    contract::{CheckResult, ensure, ensure_eq},
    samples::{empty_commit, image, level_raised, processed},
};

/// Raises the log to the highest level.
pub(super) async fn raise(store: &dyn Store) -> CheckResult {
    let tail = store.identity(Seq(0)).await?;
    store.commit(&Commit { events: vec![level_raised(Level::MAX, tail.seq)], ..empty_commit() }).await?;
    Ok(())
}

/// Returns a commit of a photo in a form of the highest level.
fn high_form(n: u64) -> Commit {
    let photo = Some(PhotoGuard { image: image(n), before: None });
    Commit { photo, events: vec![processed(&image(n), "v1", &[])], level: Level::MAX, ..empty_commit() }
}

/// A store either refuses the form, or raises the level with it.
pub(super) async fn a_form_above_the_level_is_never_written(store: Arc<dyn Store>) -> CheckResult {
    ensure_eq!(store.identity(Seq(0)).await?.level, Level::FIRST, "the level of a new log");
    match store.commit(&high_form(1)).await {
        Err(CommitError::Store(error @ StoreError::LevelTooLow { .. })) => {
            let message = error.to_string();
            ensure!(message.contains("`sparks log level 2`"), "no remedy in: {message}");
            ensure!(store.read_log(&Position::default(), 10).await?.is_empty(), "a refused commit wrote an event");
            ensure!(store.photo(&image(1)).await?.is_none(), "a refused commit wrote a state");
        }
        Ok(_) => {
            let log = store.read_log(&Position::default(), 10).await?;
            let first = log.first().map(|recorded| &recorded.event);
            ensure!(matches!(first, Some(Event::LevelRaised(_))), "a form above the level of the log was written");
            ensure_eq!(store.identity(Seq(0)).await?.level, Level::MAX, "the level after such a form");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    raise(store.as_ref()).await?;
    store.commit(&high_form(1)).await?;
    ensure!(store.photo(&image(1)).await?.is_some(), "the form is not written at its level");
    Ok(())
}

pub(super) async fn the_level_rises_with_its_event_and_never_falls(store: Arc<dyn Store>) -> CheckResult {
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let store = Arc::clone(&store);
        tasks.spawn(async move { raise(store.as_ref()).await.is_ok() });
    }
    tasks.join_all().await;
    let tail = store.identity(Seq(0)).await?;
    ensure_eq!(tail.level, Level::MAX, "the level after it was raised");
    ensure!(matches!(tail.events[0].event, Event::LevelRaised(_)), "the identity events lack the raise");
    for level in [Level::FIRST, Level::MAX] {
        let lower = Commit { events: vec![level_raised(level, tail.seq)], ..empty_commit() };
        ensure!(store.commit(&lower).await.is_err(), "the level was changed from {} to {level}", Level::MAX);
    }
    ensure_eq!(store.identity(tail.seq).await?.level, Level::MAX, "the level without new events");
    Ok(())
}
