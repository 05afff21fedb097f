//! What only some seeds have: clocks that differ, times in whole seconds, outages of single services, profile pictures, redecision,
//! a face service. Drawn apart from the rest of a plan, so that seeds without them stay as they are.

use std::time::Duration;

use crate::{
    face_service::ServiceKind,
    link::Service,
    photo_content::Look,
    plan::{Step, draw_conditions},
};

/// The features of a run that are not steps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Features {
    /// By how much the clock of a worker or an operator may differ, in both directions. Each start draws another.
    pub clock_skew: Duration,
    /// Whether the bucket reports times in whole seconds, as S3 does.
    pub has_whole_seconds: bool,
    /// The face service that workers search and enroll at, if any.
    pub face_service: Option<ServiceKind>,
}

/// The size of the plan that features are drawn for.
pub(crate) struct PlanSize {
    pub length: Duration,
    pub identities: u32,
    pub has_faults: bool,
}

/// Keeps the random numbers of features apart from those of the plan.
const STREAM: u64 = 0x5eed_0f0f_feed_cafe;
/// The number of users with profile pictures.
const USERS: u32 = 3;

impl Features {
    /// Draws features, and the steps that belong to them.
    pub fn draw(seed: u64, size: &PlanSize) -> (Self, Vec<(Duration, Step)>) {
        let mut rng = fastrand::Rng::with_seed(seed ^ STREAM);
        let rng = &mut rng;
        if rng.bool() {
            return (Self::default(), Vec::new());
        }
        let features = Self {
            clock_skew: Duration::from_millis(if rng.bool() { rng.u64(500..10_000) } else { 0 }),
            has_whole_seconds: rng.bool(),
            face_service: (rng.u8(..) < 96)
                .then(|| if rng.bool() { ServiceKind::Signatures } else { ServiceKind::Pixels }),
        };
        let mut steps = Vec::new();
        let mut add = |rng: &mut fastrand::Rng, most: usize, draw: &dyn Fn(&mut fastrand::Rng) -> Step| {
            if rng.bool() {
                for _ in 0..rng.usize(1..most) {
                    steps.push((size.length.mul_f64(rng.f64()), draw(rng)));
                }
            }
        };
        add(rng, 12, &|rng| draw_profile(rng, size.identities));
        add(rng, 4, &|rng| Step::Redecide {
            killed_after: rng.bool().then(|| Duration::from_millis(rng.u64(1..2000))),
        });
        if size.has_faults {
            add(rng, 8, &draw_service_conditions);
        }
        (features, steps)
    }
}

fn draw_profile(rng: &mut fastrand::Rng, identities: u32) -> Step {
    Step::Profile {
        user: rng.u32(0..USERS),
        face: Look { identity: rng.u32(0..identities), look: u32::from(rng.u8(..).is_multiple_of(4)) },
        is_damaged: rng.u8(..).is_multiple_of(16),
        is_object_event: rng.bool(),
        delay: Duration::from_millis(rng.u64(0..4000)),
    }
}

fn draw_service_conditions(rng: &mut fastrand::Rng) -> Step {
    let service = Service::ALL[rng.usize(0..Service::ALL.len())];
    Step::ServiceConditions(service, draw_conditions(rng))
}
