//! What a running worker does beside its messages.

use std::{sync::Arc, time::Duration};

use sparks_config::Consolidation;
use sparks_domain::Position;
use sparks_engine::{Clock, Depth, GalleryIndex, Maintenance, Pipeline, Queue, Register};
use tokio::time::{Instant, sleep};

use crate::{consumer::Breaker, telemetry::metrics::Metrics};

/// Keeps the numbers up to date, and tidies up when there is nothing else to do.
pub struct Housekeeping {
    /// How much there is to do.
    pub queue: Arc<dyn Queue>,
    /// What has been decided.
    pub store: Arc<dyn Maintenance>,
    /// Who knows everybody.
    pub index: Arc<GalleryIndex>,
    /// Who knows who is who.
    pub register: Register,
    /// Who counts conflicts.
    pub pipeline: Arc<Pipeline>,
    /// Whether persons are joined.
    pub consolidation: Consolidation,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who knows whether the world is there.
    pub breaker: Breaker,
    /// The numbers.
    pub metrics: Metrics,
}

const LOOK: Duration = Duration::from_secs(1);
/// How often the world is asked whether it is there, work or no work.
const CHECK: Duration = Duration::from_secs(10);
/// Nothing has come for so long that nothing more is on its way.
const QUIET: Duration = Duration::from_secs(3);

impl Housekeeping {
    /// Never ends by itself; may be dropped at any time, because every step of it may be interrupted.
    pub async fn run(self) {
        let mut tidied = Position::default();
        let (mut busy, mut checked) = (Instant::now(), Instant::now());
        loop {
            if checked.elapsed() >= CHECK {
                self.breaker.is_down().await;
                checked = Instant::now();
            }
            match self.look().await {
                Ok(depth) if depth.waiting + depth.leased > 0 => busy = Instant::now(),
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "cannot look at the queue"),
            }
            if busy.elapsed() >= QUIET {
                match self.tidy(&tidied).await {
                    Ok(heads) => tidied = heads,
                    Err(error) => tracing::warn!(%error, "cannot tidy up; will be tried again"),
                }
                busy = Instant::now();
            }
            sleep(LOOK).await;
        }
    }

    async fn look(&self) -> anyhow::Result<Depth> {
        let depth = self.queue.depth().await?;
        let oldest = depth.oldest.map_or(0, |oldest| self.clock.now().as_millis() - oldest.as_millis());
        self.metrics.set_queue(depth.waiting, depth.leased, depth.delayed);
        self.metrics.set_queue_oldest(oldest.max(0) as f64 / 1000.0);
        self.metrics.set_dead_letters(depth.dead);
        self.metrics.set_conflicts(self.pipeline.conflicts());
        self.index.follow().await?;
        let (templates, people) = {
            let known = self.index.known();
            (known.gallery.len(), known.people.len())
        };
        self.metrics.set_gallery(templates as u64, people as u64);
        if let Err(error) = self.index.keep_snapshot(false).await {
            tracing::warn!(%error, "cannot keep a snapshot of the gallery: whoever starts reads more");
        }
        Ok(depth)
    }

    /// Joins whoever is one, lets the photos follow, and looks again at the faces that nobody knew; if anything has happened
    /// since the last time, or was left to do. Says up to where all is done.
    async fn tidy(&self, tidied: &Position) -> anyhow::Result<Position> {
        if self.store.heads().await? == *tidied {
            return Ok(tidied.clone());
        }
        let tidied = self.register.tidy(self.consolidation != Consolidation::Suggest).await?;
        for merged in tidied.joined {
            tracing::info!(event = %merged.event, into = %merged.into, from = %merged.from, "two persons are one");
        }
        if tidied.recognised > 0 {
            tracing::info!(faces = tidied.recognised, "recognised at a second look");
        }
        Ok(if tidied.more { Position::default() } else { self.store.heads().await? })
    }
}
