//! Photos that are drawn before they are wanted.

use std::{collections::VecDeque, sync::Arc};

use tokio::task::{JoinHandle, spawn_blocking};

use super::Plan;

/// Draws photos in the order in which they are wanted, a few ahead: whoever uploads them has them at hand.
pub struct Easel<Wanted> {
    plan: Arc<Plan>,
    wanted: Wanted,
    drawn: VecDeque<JoinHandle<(usize, Vec<u8>)>>,
}

/// So many are drawn ahead: files that wait take memory.
const AHEAD: usize = 8;

impl<Wanted: Iterator<Item = usize>> Easel<Wanted> {
    /// Draws photos of this plan, by number.
    pub fn new(plan: &Arc<Plan>, wanted: Wanted) -> Self {
        Self { plan: Arc::clone(plan), wanted, drawn: VecDeque::new() }
    }

    /// The next photo's number and its file, damaged if it is to be.
    pub async fn next(&mut self) -> anyhow::Result<Option<(usize, Vec<u8>)>> {
        for n in self.wanted.by_ref().take(AHEAD - self.drawn.len()) {
            let plan = Arc::clone(&self.plan);
            self.drawn.push_back(spawn_blocking(move || (n, file(&plan, n))));
        }
        match self.drawn.pop_front() {
            Some(drawing) => Ok(Some(drawing.await?)),
            None => Ok(None),
        }
    }
}

fn file(plan: &Plan, n: usize) -> Vec<u8> {
    let file = plan.album.photo(n).jpeg;
    match plan.damage[n] {
        Some(damage) => damage.done_to(file),
        None => file,
    }
}
