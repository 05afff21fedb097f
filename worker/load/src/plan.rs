//! The order in which photos are uploaded and notifications are sent.

use sparks_faces::{AlbumSpec, DEFAULT_NOISE};

use super::Damage;

/// The size and shape of a load test.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadSpec {
    /// Photos to upload.
    pub photos: usize,
    /// Distinct identities in them.
    pub identities: usize,
    /// Maximum number of faces in a photo.
    pub faces_per_photo: usize,
    /// Photos that get a second message.
    pub duplicates: usize,
    /// Photos whose file is damaged.
    pub corrupt: usize,
    /// Whether messages are sent out of order, some before their row.
    pub shuffle: bool,
    /// The seed; the same seed gives the same plan.
    pub seed: u64,
}

/// One step of the upload of the photo with this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Stores the original.
    StoreOriginal(usize),
    /// Creates the row.
    CreateRow(usize),
    /// Creates the row some seconds after the notification.
    CreateRowLate(usize),
    /// Sends the notification.
    Notify(usize),
    /// Sends the same notification again.
    RepeatNotification(usize),
    /// Uploads the same file again and sends a notification for it.
    Reupload(usize),
}

impl Step {
    /// Returns the number of the photo.
    pub fn photo(self) -> usize {
        match self {
            Self::StoreOriginal(n) | Self::CreateRow(n) | Self::CreateRowLate(n) => n,
            Self::Notify(n) | Self::RepeatNotification(n) | Self::Reupload(n) => n,
        }
    }

    fn is_duplicate(self) -> bool {
        matches!(self, Self::RepeatNotification(_) | Self::Reupload(_))
    }
}

/// The order of steps, and which files are damaged.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The damage of each photo's file.
    pub damage: Vec<Option<Damage>>,
    /// Photos that get more than one message.
    pub duplicates: usize,
    /// Photos whose message is sent before their row exists.
    pub early: usize,
    /// The generator of the photos.
    pub album: AlbumSpec,
}

/// Messages are shuffled within windows of this size.
const SHUFFLE_WINDOW: usize = 64;
/// A duplicate follows its first message by at most this many messages.
const MAX_DUPLICATE_DISTANCE: usize = 40;
/// With shuffling, one of this many messages is sent before its row. The first message is always among them, because no
/// backlog delays it.
const EARLY_INTERVAL: usize = 10;

impl Plan {
    /// Creates the plan; it is a function of the specification alone.
    pub fn of(spec: &LoadSpec) -> Self {
        let mut rng = fastrand::Rng::with_seed(spec.seed);
        let slots = slots(spec, &mut rng);
        let duplicates = choose(spec.duplicates, spec.photos, &mut rng);
        let corrupt = choose(spec.corrupt, spec.photos, &mut rng);
        let mut steps: Vec<(usize, Step)> = Vec::with_capacity(spec.photos * 3 + duplicates.len());
        for (n, slot) in slots.iter().enumerate() {
            steps.extend([(slot * 8, Step::StoreOriginal(n)), (slot * 8 + 2, Step::Notify(n))]);
            steps.push(match spec.shuffle && slot % EARLY_INTERVAL == 0 {
                true => (slot * 8 + 3, Step::CreateRowLate(n)),
                false => (slot * 8 + 1, Step::CreateRow(n)),
            });
        }
        for (index, n) in duplicates.iter().enumerate() {
            let step = if index % 2 == 0 { Step::RepeatNotification(*n) } else { Step::Reupload(*n) };
            steps.push(((slots[*n] + rng.usize(1..=MAX_DUPLICATE_DISTANCE)) * 8 + 4, step));
        }
        steps.sort_by_key(|(order, _)| *order);
        let mut damage = vec![None; spec.photos];
        corrupt.iter().zip(Damage::ALL.iter().cycle()).for_each(|(n, kind)| damage[*n] = Some(*kind));
        Self {
            steps: steps.into_iter().map(|(_, step)| step).collect(),
            damage,
            duplicates: duplicates.len(),
            early: if spec.shuffle { spec.photos.div_ceil(EARLY_INTERVAL) } else { 0 },
            album: AlbumSpec {
                photos: spec.photos,
                identities: spec.identities,
                faces_per_photo: spec.faces_per_photo,
                noise: DEFAULT_NOISE,
                seed: spec.seed,
            },
        }
    }

    /// Returns the steps in groups: consecutive steps of one photo that belong to one message.
    pub fn message_groups(&self) -> impl Iterator<Item = &[Step]> {
        self.steps.chunk_by(|step, next| step.photo() == next.photo() && !next.is_duplicate())
    }

    /// Returns the number of messages.
    pub fn messages(&self) -> usize {
        self.damage.len() + self.duplicates
    }
}

/// Returns the position of each photo's message: in order, or shuffled within windows.
fn slots(spec: &LoadSpec, rng: &mut fastrand::Rng) -> Vec<usize> {
    let mut slots: Vec<usize> = (0..spec.photos).collect();
    if spec.shuffle {
        slots.chunks_mut(SHUFFLE_WINDOW).for_each(|window| rng.shuffle(window));
    }
    slots
}

/// Returns `count` distinct numbers below `limit` in random order.
fn choose(count: usize, limit: usize, rng: &mut fastrand::Rng) -> Vec<usize> {
    let mut all: Vec<usize> = (0..limit).collect();
    rng.shuffle(&mut all);
    all.truncate(count);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(shuffle: bool) -> LoadSpec {
        LoadSpec { photos: 200, identities: 10, faces_per_photo: 3, duplicates: 40, corrupt: 4, shuffle, seed: 7 }
    }

    fn position(plan: &Plan, step: Step) -> usize {
        plan.steps.iter().position(|found| *found == step).unwrap()
    }

    fn notified(plan: &Plan) -> Vec<usize> {
        plan.steps.iter().filter_map(|step| if let Step::Notify(n) = step { Some(*n) } else { None }).collect()
    }

    #[test]
    fn in_order_the_file_and_row_precede_the_message() {
        let plan = Plan::of(&spec(false));
        for n in 0..200 {
            assert!(position(&plan, Step::StoreOriginal(n)) < position(&plan, Step::CreateRow(n)));
            assert!(position(&plan, Step::CreateRow(n)) < position(&plan, Step::Notify(n)));
        }
        assert_eq!((notified(&plan), plan.early), ((0..200).collect(), 0));
    }

    #[test]
    fn shuffled_messages_are_unordered_and_some_precede_their_row() {
        let plan = Plan::of(&spec(true));
        let notified = notified(&plan);
        assert!(!notified.is_sorted());
        let is_late = |n: &usize| plan.steps.contains(&Step::CreateRowLate(*n));
        let follows = |n| position(&plan, Step::Notify(n)) < position(&plan, Step::CreateRowLate(n));
        assert!((0..200).filter(is_late).all(follows));
        assert_eq!(((0..200).filter(is_late).count(), plan.early), (20, 20));
        assert!(is_late(&notified[0]), "the first message of all");
        let mut all = notified.clone();
        all.sort_unstable();
        assert_eq!(all, (0..200).collect::<Vec<_>>(), "each once");
        assert!((0..200).all(|n| position(&plan, Step::StoreOriginal(n)) < position(&plan, Step::Notify(n))));
    }

    #[test]
    fn the_requested_number_of_files_is_damaged_and_repeated() {
        let plan = Plan::of(&spec(true));
        let kinds: Vec<_> = plan.damage.iter().flatten().collect();
        assert_eq!(kinds.len(), 4);
        assert!(Damage::ALL.iter().all(|kind| kinds.contains(&kind)), "each kind in turn");
        let is_duplicate = |step: &&Step| step.is_duplicate();
        assert_eq!((plan.steps.iter().filter(is_duplicate).count(), plan.duplicates), (40, 40));
        for step in plan.steps.iter().filter(is_duplicate) {
            assert!(position(&plan, *step) > position(&plan, Step::Notify(step.photo())));
        }
        assert_eq!(plan.messages(), 240);
    }

    #[test]
    fn a_message_group_has_one_photo_and_one_message() {
        for plan in [Plan::of(&spec(false)), Plan::of(&spec(true))] {
            let is_message = |step: &&Step| matches!(step, Step::Notify(_)) || step.is_duplicate();
            for group in plan.message_groups() {
                assert!(group.iter().all(|step| step.photo() == group[0].photo()), "{group:?}");
                assert_eq!(group.iter().filter(is_message).count(), 1, "{group:?}");
            }
            assert_eq!(plan.message_groups().count(), plan.messages());
            assert_eq!(plan.message_groups().flatten().copied().collect::<Vec<_>>(), plan.steps);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        assert_eq!(Plan::of(&spec(true)), Plan::of(&spec(true)));
        assert_ne!(Plan::of(&spec(true)), Plan::of(&LoadSpec { seed: 8, ..spec(true) }));
    }
}
