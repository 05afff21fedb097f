//! Generates the photos of a plan ahead of their upload.

use std::{collections::VecDeque, sync::Arc};

use tokio::task::{JoinHandle, spawn_blocking};

use super::Plan;

/// Generates photos in the order of upload, a few ahead, so that the uploader does not wait for the drawing.
pub struct PhotoGenerator<Numbers> {
    plan: Arc<Plan>,
    numbers: Numbers,
    generated: VecDeque<JoinHandle<(usize, Vec<u8>)>>,
}

/// Number of photos generated ahead; each is held in memory until its upload.
const PREFETCH: usize = 8;

impl<Numbers: Iterator<Item = usize>> PhotoGenerator<Numbers> {
    /// Creates a generator for the photos of the plan with these numbers.
    pub fn new(plan: &Arc<Plan>, numbers: Numbers) -> Self {
        Self { plan: Arc::clone(plan), numbers, generated: VecDeque::new() }
    }

    /// Returns the next photo's number and its file, damaged as planned.
    pub async fn next(&mut self) -> anyhow::Result<Option<(usize, Vec<u8>)>> {
        for n in self.numbers.by_ref().take(PREFETCH - self.generated.len()) {
            let plan = Arc::clone(&self.plan);
            self.generated.push_back(spawn_blocking(move || (n, generate(&plan, n))));
        }
        match self.generated.pop_front() {
            Some(photo) => Ok(Some(photo.await?)),
            None => Ok(None),
        }
    }
}

fn generate(plan: &Plan, n: usize) -> Vec<u8> {
    let file = plan.album.photo(n).jpeg;
    match plan.damage[n] {
        Some(damage) => damage.apply(file),
        None => file,
    }
}
