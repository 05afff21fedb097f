//! What happens in a run: the size of the system, and what the platform, the operator and the environment do at which time.

use std::{fmt, time::Duration};

use crate::{
    features::{Features, PlanSize},
    link::{Conditions, Service},
    photo_content::Look,
};

/// A whole run, drawn from a seed. Shorter plans are made from it to find the shortest that still fails.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    /// How many of them are of an older release, which cannot read merges, until the end of the plan.
    pub(crate) old_workers: usize,
    pub(crate) slots: usize,
    pub(crate) lanes: u16,
    pub(crate) index_lag: Duration,
    pub(crate) half_visible: Duration,
    pub(crate) duplicates: f64,
    pub(crate) features: Features,
    pub(crate) steps: Vec<(Duration, Step)>,
}

/// One step of a plan.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// The platform's user uploads a photo, or another version of it.
    Upload { photo: u64, faces: Vec<Look>, is_damaged: bool, notice: Notice },
    /// The platform's user asks for its deletion.
    Delete { photo: u64 },
    /// The platform deletes object and row itself.
    Remove { photo: u64 },
    /// The queue delivers an earlier message once more.
    Redeliver { message: usize },
    /// A worker is killed.
    Kill { worker: usize },
    /// The operator merges the looks of an identity.
    Merge { identity: u32 },
    /// The operator undoes a merge.
    Unmerge { merge: usize },
    /// The operator rebuilds all projections.
    Rebuild,
    /// A worker consolidates persons and reviews faces.
    Consolidate,
    /// The conditions of all calls change.
    Conditions(Conditions),
    /// The conditions of the calls of one service change.
    ServiceConditions(Service, Conditions),
    /// A user of the platform uploads a profile picture, or another one.
    Profile { user: u32, face: Look, is_damaged: bool, is_object_event: bool, delay: Duration },
    /// The operator decides all photos again, and may be killed meanwhile.
    Redecide { killed_after: Option<Duration> },
}

/// How the worker learns of an upload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notice {
    /// Whether the message has version and sequencer, as S3's have.
    pub is_complete: bool,
    /// How much later than the object the message arrives.
    pub delay: Duration,
    /// How much later than the object the row is created.
    pub row_delay: Duration,
}

impl Plan {
    /// Draws a plan.
    pub fn draw(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let rng = &mut rng;
        let identities = rng.u32(1..9);
        let photos = rng.u64(3..16);
        let length = Duration::from_secs(rng.u64(20..180));
        let has_faults = !rng.u8(..).is_multiple_of(8);
        let mut steps: Vec<(Duration, Step)> = (0..rng.usize(12..60))
            .map(|_| (length.mul_f64(rng.f64()), draw_step(rng, photos, identities, has_faults)))
            .collect();
        let (features, more) = Features::draw(seed, &PlanSize { length, identities, has_faults });
        steps.extend(more);
        steps.sort_by_key(|(at, _)| *at);
        let choose = |rng: &mut fastrand::Rng, millis: u64| Duration::from_millis(if rng.bool() { millis } else { 0 });
        Self {
            seed,
            workers: rng.usize(1..6),
            old_workers: if rng.u8(..).is_multiple_of(4) { rng.usize(0..3) } else { 0 },
            slots: rng.usize(1..5),
            lanes: if rng.bool() { 3 } else { 0 },
            index_lag: choose(rng, 3000),
            half_visible: choose(rng, 40),
            duplicates: if rng.bool() { 0.02 } else { 0.0 },
            features,
            steps,
        }
    }

    /// Returns the plan without the steps from `start` to `end`.
    pub(crate) fn without(&self, start: usize, end: usize) -> Self {
        let mut plan = self.clone();
        plan.steps.drain(start..end);
        plan
    }
}

fn draw_step(rng: &mut fastrand::Rng, photos: u64, identities: u32, has_faults: bool) -> Step {
    let photo = rng.u64(0..photos);
    match rng.u32(0..100) {
        0..46 => {
            let look = |rng: &mut fastrand::Rng| Look {
                identity: rng.u32(0..identities),
                look: u32::from(rng.u8(..).is_multiple_of(4)),
            };
            let mut faces: Vec<Look> = (0..rng.usize(0..4)).map(|_| look(rng)).collect();
            faces.sort_unstable();
            faces.dedup_by_key(|face| face.identity);
            let notice = Notice {
                is_complete: !rng.u8(..).is_multiple_of(4),
                delay: Duration::from_millis(rng.u64(0..4000)),
                row_delay: Duration::from_millis(if rng.bool() { 0 } else { rng.u64(0..4000) }),
            };
            Step::Upload { photo, faces, is_damaged: rng.u8(..).is_multiple_of(16), notice }
        }
        46..58 => Step::Delete { photo },
        58..64 => Step::Remove { photo },
        64..72 => Step::Redeliver { message: rng.usize(0..1000) },
        72..82 if has_faults => Step::Kill { worker: rng.usize(0..8) },
        82..85 => Step::Merge { identity: rng.u32(0..identities) },
        85..87 => Step::Unmerge { merge: rng.usize(0..8) },
        87..89 => Step::Rebuild,
        89..92 => Step::Consolidate,
        92..100 if has_faults => Step::Conditions(draw_conditions(rng)),
        _ => Step::Consolidate,
    }
}

pub(crate) fn draw_conditions(rng: &mut fastrand::Rng) -> Conditions {
    let sometimes = |rng: &mut fastrand::Rng, most: f64| if rng.bool() { rng.f64() * most } else { 0.0 };
    Conditions {
        error: sometimes(rng, 0.03),
        lost_reply: sometimes(rng, 0.03),
        throttled: sometimes(rng, 0.3),
        slow: sometimes(rng, 0.01),
        is_outage: rng.u8(..).is_multiple_of(8),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, workers, old_workers, slots, lanes, index_lag, half_visible, duplicates, features, steps } =
            self;
        writeln!(
            f,
            "seed {seed}, {workers} workers ({old_workers} old) with {slots} slots, {lanes} lanes, index lag {index_lag:?},"
        )?;
        writeln!(f, "half of a transaction visible for {half_visible:?}, {duplicates} duplicates")?;
        writeln!(f, "{features:?}")?;
        steps.iter().try_for_each(|(at, step)| writeln!(f, "{:>9.3} s  {step:?}", at.as_secs_f64()))
    }
}
