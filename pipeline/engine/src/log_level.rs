//! The reader level of the log: raising it, and the workers that could not read it then.

use std::{collections::BTreeMap, time::Duration};

use sparks_domain::{Event, IdentityHead, Lane, Level, LevelRaised, Position, Seq, Timestamp, Version};

use crate::{
    Clock, Commit, CommitError, Finding, Maintenance, StoreError, WorkerAnnouncement, WorkerRegistry,
    stages::conflict_backoff,
};

/// The level of a log, and the workers that were seen recently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStatus {
    /// The level of the log.
    pub level: Level,
    /// The workers, by name.
    pub workers: Vec<WorkerAnnouncement>,
}

/// The first release whose workers announce themselves, as major and minor version.
const FIRST_ANNOUNCING: (u32, u32) = (0, 2);
/// Events per lane that are searched for workers of earlier releases.
const EVENTS_PER_LANE: u64 = 50;

impl LogStatus {
    /// The interval between announcements of a worker.
    pub const ANNOUNCEMENT_INTERVAL: Duration = Duration::from_secs(60);
    /// The age up to which an announcement counts: a worker may miss a few of them, such as while it is throttled.
    pub const MAX_ANNOUNCEMENT_AGE: Duration = Duration::from_secs(5 * 60);
    /// The age up to which an event tells of a worker that announces nothing.
    pub const MAX_EVENT_AGE: Duration = Duration::from_secs(60 * 60);

    /// Reads the level and the workers. Workers of releases that announce nothing are found by their recent events, unless the
    /// registry knows them.
    pub async fn read(
        store: &dyn Maintenance,
        registry: &dyn WorkerRegistry,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let heads = store.heads().await?;
        let level = store.identity(heads.in_lane(Lane::IDENTITY)).await?.level;
        let mut workers = registry.workers(before(now, Self::MAX_ANNOUNCEMENT_AGE)).await?;
        if !registry.knows_all_releases() {
            workers.extend(earlier_releases(store, &heads, before(now, Self::MAX_EVENT_AGE)).await?);
        }
        workers.sort_by(|a, b| (&a.host, &a.id).cmp(&(&b.host, &b.id)));
        Ok(Self { level, workers })
    }

    /// Returns the workers that cannot read logs of this level.
    pub fn too_old_for(&self, level: Level) -> Vec<&WorkerAnnouncement> {
        self.workers.iter().filter(|worker| worker.level < level).collect()
    }

    /// Returns what `sparks doctor` reports.
    pub fn finding(&self) -> Finding {
        let subject = "reader level of the event log";
        let stopped = self.too_old_for(self.level);
        if !stopped.is_empty() {
            let seen = format!("the log has level {}, which {} cannot read", self.level, names(&stopped));
            return Finding::warn(subject, seen, "upgrade or stop these workers: they can process no message");
        }
        let old = self.too_old_for(Level::MAX);
        if !old.is_empty() {
            let seen = format!("the log has level {}; too old for level {}: {}", self.level, Level::MAX, names(&old));
            return Finding::warn(
                subject,
                seen,
                format!("upgrade these workers, then run `sparks log level {}`", Level::MAX),
            );
        }
        let seen = match self.level < Level::MAX {
            true => format!("level {}; no worker is too old for level {}", self.level, Level::MAX),
            false => format!("level {}", self.level),
        };
        Finding::ok(subject, seen)
    }
}

fn names(workers: &[&WorkerAnnouncement]) -> String {
    let names: Vec<String> = workers.iter().map(|worker| format!("{} ({})", worker.host, worker.version)).collect();
    names.join(", ")
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    Timestamp::from_millis(now.as_millis() - i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}

/// Returns the releases that announce nothing and wrote an event since: how many of their workers run is not known.
async fn earlier_releases(
    store: &dyn Maintenance,
    heads: &Position,
    since: Timestamp,
) -> Result<Vec<WorkerAnnouncement>, StoreError> {
    let from = heads.lanes().map(|(lane, Seq(seq))| (lane, Seq(seq.saturating_sub(EVENTS_PER_LANE))));
    let mut after: Position = from.collect();
    let mut found: BTreeMap<String, WorkerAnnouncement> = BTreeMap::new();
    loop {
        let events = store.read_log(&after, 1000).await?;
        if events.is_empty() {
            return Ok(found.into_values().collect());
        }
        for recorded in &events {
            after.advance_past(recorded);
            let Some(version) = silent_release(&recorded.actor).filter(|_| recorded.when >= since) else { continue };
            let worker = found.entry(recorded.actor.clone()).or_insert_with(|| WorkerAnnouncement {
                id: recorded.actor.clone(),
                host: "seen by its events".into(),
                version: version.to_owned(),
                level: Level::FIRST,
                seen: recorded.when,
            });
            worker.seen = worker.seen.max(recorded.when);
        }
    }
}

/// Returns the version in the actor of an event, if workers of that release announce nothing.
fn silent_release(actor: &str) -> Option<&str> {
    let version = actor.strip_prefix("sparks/")?;
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let release = (numbers.next()??, numbers.next()??);
    (release < FIRST_ANNOUNCING).then_some(version)
}

/// Raises the level of the log. Returns `false` if it has this level or a higher one already.
pub async fn raise_level(
    store: &dyn Maintenance,
    level: Level,
    actor: &str,
    clock: &dyn Clock,
) -> Result<bool, CommitError> {
    let mut backoff = conflict_backoff();
    loop {
        let head = store.heads().await?.in_lane(Lane::IDENTITY);
        let tail = store.identity(head).await?;
        if tail.level >= level {
            return Ok(false);
        }
        let event = Event::LevelRaised(LevelRaised { v: Version, level, identity_seq: tail.seq });
        let commit = Commit {
            identity: Some(IdentityHead { seq: tail.seq, counter: tail.counter, ..IdentityHead::default() }),
            actor: actor.to_owned(),
            events: vec![event],
            ..Commit::without_events(clock.now(), None)
        };
        match store.commit(&commit).await {
            Ok(_) => return Ok(true),
            Err(CommitError::IdentityMoved) => {
                tokio::time::sleep(backoff.next().ok_or(CommitError::IdentityMoved)?).await;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use sparks_domain::Timestamp;

    use super::*;
    use crate::FindingStatus;

    fn worker(version: &str, level: u32) -> WorkerAnnouncement {
        let (id, host) = (version.to_owned(), format!("host-{version}"));
        WorkerAnnouncement { id, host, version: version.into(), level: Level(level), seen: Timestamp::from_millis(0) }
    }

    #[test]
    fn only_releases_that_announce_nothing_are_recognised_by_their_events() {
        assert_eq!(silent_release("sparks/0.1.0"), Some("0.1.0"));
        for actor in ["sparks/0.2.0", "sparks/1.0.0", "sparks/0.10.1", "someone", "sparks/", "sparks/x.1"] {
            assert_eq!(silent_release(actor), None, "{actor}");
        }
    }

    #[test]
    fn the_finding_names_workers_that_are_too_old() {
        let status = |level, workers| LogStatus { level: Level(level), workers };
        let finding = |level, workers| status(level, workers).finding();
        assert_eq!(finding(1, vec![]).status, FindingStatus::Ok);
        assert_eq!(finding(1, vec![worker("0.2.0", 2)]).status, FindingStatus::Ok);
        assert_eq!(finding(2, vec![worker("0.2.0", 2)]).status, FindingStatus::Ok);
        let next = finding(1, vec![worker("0.1.0", 1), worker("0.2.0", 2)]);
        assert_eq!(next.status, FindingStatus::Warn);
        assert!(next.observation.contains("host-0.1.0 (0.1.0)") && !next.observation.contains("0.2.0"), "{next:?}");
        assert!(next.remedy.unwrap().contains("`sparks log level 2`"));
        let current = finding(2, vec![worker("0.1.0", 1)]);
        assert_eq!(current.status, FindingStatus::Warn);
        assert!(current.observation.contains("has level 2, which host-0.1.0"), "{current:?}");
    }
}
