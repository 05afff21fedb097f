//! Work of a running worker besides its messages: metrics, health checks, consolidation.

use std::{sync::Arc, time::Duration};

use sparks_config::Consolidation;
use sparks_domain::Position;
use sparks_engine::{CircuitBreaker, Clock, Consolidator, GalleryIndex, Maintenance, Pipeline, Queue, QueueDepth};
use tokio::time::{Instant, sleep};

use crate::telemetry::metrics::Metrics;

/// Updates metrics and the gallery every second, and consolidates persons while the queue is quiet.
pub struct BackgroundTasks {
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// The store.
    pub store: Arc<dyn Maintenance>,
    /// The gallery of known persons.
    pub index: Arc<GalleryIndex>,
    /// Merges persons and reviews unidentified faces.
    pub consolidator: Consolidator,
    /// The pipeline, which counts conflicts.
    pub pipeline: Arc<Pipeline>,
    /// Whether persons are merged or only suggested.
    pub consolidation: Consolidation,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Detects outages.
    pub breaker: CircuitBreaker,
    /// The metrics.
    pub metrics: Metrics,
}

/// The interval between updates.
const INTERVAL: Duration = Duration::from_secs(1);
/// The interval between health checks of the dependencies, with or without messages.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// The time without messages after which persons are consolidated.
const QUIET: Duration = Duration::from_secs(3);
/// The maximum time between attempts to consolidate that fail; it doubles with each failure.
const MAX_PAUSE: Duration = Duration::from_secs(300);

impl BackgroundTasks {
    /// Runs for ever. May be dropped at any time, because every step may be interrupted.
    pub async fn run(self) {
        let mut consolidated = Position::default();
        let (mut last_busy, mut last_check) = (Instant::now(), Instant::now());
        let (mut last_run, mut pause) = (Instant::now(), QUIET);
        loop {
            if last_check.elapsed() >= CHECK_INTERVAL {
                self.breaker.is_open_after_check().await;
                last_check = Instant::now();
            }
            match self.update().await {
                Ok(depth) if depth.waiting + depth.leased > 0 => last_busy = Instant::now(),
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "failed to update the metrics"),
            }
            if last_busy.elapsed() >= QUIET && last_run.elapsed() >= pause {
                pause = match self.consolidate(&mut consolidated).await {
                    Ok(pause) => pause,
                    Err(error) => {
                        let pause = (pause.max(QUIET) * 2).min(MAX_PAUSE);
                        let seconds = pause.as_secs();
                        tracing::warn!(%error, pause = seconds, "failed to consolidate persons; will retry");
                        pause
                    }
                };
                last_run = Instant::now();
            }
            sleep(INTERVAL).await;
        }
    }

    /// Updates metrics, gallery and snapshot. Returns the depth of the queue.
    async fn update(&self) -> anyhow::Result<QueueDepth> {
        let depth = self.queue.depth().await?;
        let oldest = depth.oldest.map_or(0, |oldest| self.clock.now().as_millis() - oldest.as_millis());
        self.metrics.set_queue(depth.waiting, depth.leased, depth.delayed);
        self.metrics.set_queue_oldest(oldest.max(0) as f64 / 1000.0);
        self.metrics.set_dead_letters(depth.dead);
        self.metrics.set_conflicts(self.pipeline.conflicts());
        self.index.catch_up().await?;
        let (templates, persons) = {
            let state = self.index.state();
            (state.gallery.len(), state.people.len())
        };
        self.metrics.set_gallery(templates as u64, persons as u64);
        if let Err(error) = self.index.save_snapshot(false).await {
            tracing::warn!(%error, "failed to save the gallery snapshot; the next start reads more of the log");
        }
        Ok(depth)
    }

    /// Merges persons, updates the rows of their photos and reviews unidentified faces, if the log has changed since `consolidated` or
    /// work was left. Returns the pause before the next run.
    async fn consolidate(&self, consolidated: &mut Position) -> anyhow::Result<Duration> {
        if self.store.heads().await? == *consolidated {
            return Ok(QUIET);
        }
        let report = self.consolidator.run(self.consolidation != Consolidation::Suggest).await?;
        for merged in report.merged {
            tracing::info!(event = %merged.event, into = %merged.into, from = %merged.from, "merged two persons");
        }
        if report.identified > 0 {
            tracing::info!(faces = report.identified, "identified faces in review");
        }
        *consolidated = if report.has_more { Position::default() } else { self.store.heads().await? };
        Ok(if report.is_interrupted { Duration::ZERO } else { QUIET })
    }
}
