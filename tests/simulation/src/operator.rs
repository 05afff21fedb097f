//! The operator: merges, unmerges, rebuilds and consolidation beside running workers.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use sparks_domain::{Event, EventId, MergeReason, PersonId, Projection};
use sparks_engine::{
    ConsolidationConfig, Consolidator, CpuPool, Failure, Maintenance, MergeError, Rebuilder, Redecision,
};

use crate::{
    photo_content::{MODEL, OTHER_MODEL, PhotoContent, scale},
    worker,
    world::{World, policy},
};

/// The operator's commands. Each runs in a process of its own, as on the command line.
pub(crate) struct Operator<'a>(pub &'a World);

impl Operator<'_> {
    async fn consolidator(&self) -> Result<Consolidator, MergeError> {
        let world = self.0;
        let store = Arc::new(world.store_for("operator"));
        let (pipeline, index) = worker::pipeline(world, "operator", MODEL).await?;
        let config = ConsolidationConfig {
            policy: policy(),
            scale,
            projection: Projection::default(),
            actor: "operator".into(),
            // Two clocks may differ by twice the error of each.
            index_lag: match world.plan.index_lag {
                Duration::ZERO => Duration::ZERO,
                lag => lag + world.plan.features.clock_skew * 2,
            },
            cpu: CpuPool::inline(),
        };
        Ok(Consolidator::new(pipeline, store as Arc<dyn Maintenance>, index, config))
    }

    /// Merges two persons that are looks of one identity, if there are two.
    pub async fn merge(&self, identity: u32) -> Result<(), MergeError> {
        let persons = self.persons_of(identity);
        let [a, b, ..] = persons[..] else { return Ok(()) };
        let consolidator = self.consolidator().await?;
        consolidator.merge(a, b, true).await?;
        consolidator.apply_merges(|_| ()).await?;
        Ok(())
    }

    /// Undoes one of the operator's merges so far. Those of the machine are right: an operator who separates two persons with one look wants
    /// faces that are ambiguous between them.
    pub async fn unmerge(&self, number: usize) -> Result<(), MergeError> {
        let events = self.0.store.events();
        let is_requested =
            |event: &Event| matches!(event, Event::PersonsMerged(merge) if merge.grounds == MergeReason::Requested);
        let merges: Vec<EventId> = events.iter().filter(|e| is_requested(&e.event)).map(|e| e.id).collect();
        let Some(merge) = merges.get(number % merges.len().max(1)) else { return Ok(()) };
        let consolidator = self.consolidator().await?;
        consolidator.unmerge(*merge).await?;
        consolidator.apply_merges(|_| ()).await?;
        Ok(())
    }

    /// Consolidates persons until nothing is left to do.
    pub async fn consolidate(&self) -> Result<(), MergeError> {
        let consolidator = self.consolidator().await?;
        while consolidator.run(true).await?.has_more {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    /// Rebuilds all projections.
    pub async fn rebuild(&self) -> Result<(), MergeError> {
        let world = self.0;
        let store = Arc::new(world.store_for("rebuild"));
        let clock = world.clock_of_machine();
        let rebuilder = Rebuilder::new(store, clock, Projection::default(), "operator".into());
        rebuilder.run(true, |_| ()).await?;
        Ok(())
    }

    /// Decides all photos again with the other model, and commits what has changed.
    pub async fn redecide(&self) -> Result<(), Failure> {
        let name = "redecide";
        let (pipeline, index) = worker::pipeline(self.0, name, OTHER_MODEL).await?;
        let store = Arc::new(self.0.store_for(name)) as Arc<dyn Maintenance>;
        let redecision = Redecision { store, pipeline, index, scale, service: None, candidates: 5, jobs: 3 };
        let survey = redecision.survey(|_| ()).await?;
        redecision.run(&survey, true, |_| ()).await?;
        Ok(())
    }

    /// Returns the persons that were decided for faces of this identity, by the log.
    fn persons_of(&self, identity: u32) -> Vec<PersonId> {
        let mut persons = BTreeMap::new();
        for (_, content, photo) in self.0.decided_photos() {
            let PhotoContent { faces, .. } = content;
            for (look, face) in faces.iter().zip(&photo.faces).filter(|(look, _)| look.identity == identity) {
                persons.extend(face.verdict.person().map(|person| (person, look.look)));
            }
        }
        persons.into_keys().collect()
    }
}
