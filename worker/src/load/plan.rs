//! What the platform is to do, and in which order.

use sparks_faces::{AlbumSpec, DEFAULT_NOISE};

use super::Damage;
use crate::share::Share;

/// How much of what.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// Photos to upload.
    pub photos: usize,
    /// Different faces in them.
    pub identities: usize,
    /// At most so many faces in a photo.
    pub faces_per_photo: usize,
    /// How many of them are told of again.
    pub duplicates: Share,
    /// How many of the files are damaged.
    pub corrupt: Share,
    /// Whether messages come in another order, and some before their row.
    pub shuffle: bool,
    /// The same seed gives the same plan.
    pub seed: u64,
}

/// One thing that the platform does about the photo with this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Stores the original.
    Store(usize),
    /// Makes the row.
    Row(usize),
    /// Makes the row a while after it was told of.
    LateRow(usize),
    /// Tells of it.
    Tell(usize),
    /// Tells of it again, in the same words.
    Repeat(usize),
    /// Uploads the same file again, and tells of that.
    Reupload(usize),
}

impl Step {
    /// The number of the photo that it is about.
    pub fn photo(self) -> usize {
        match self {
            Self::Store(n) | Self::Row(n) | Self::LateRow(n) => n,
            Self::Tell(n) | Self::Repeat(n) | Self::Reupload(n) => n,
        }
    }

    fn is_again(self) -> bool {
        matches!(self, Self::Repeat(_) | Self::Reupload(_))
    }
}

/// The order of steps, and which files are damaged.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is done, in this order.
    pub steps: Vec<Step>,
    /// How each photo's file is damaged, if it is.
    pub damage: Vec<Option<Damage>>,
    /// Photos that are told of more than once.
    pub duplicates: usize,
    /// Photos that are told of before they have a row.
    pub early: usize,
    /// Where the photos come from.
    pub album: AlbumSpec,
}

/// Messages change places with so many others.
const WINDOW: usize = 64;
/// A repeat comes after at most so many other messages.
const REPEAT: usize = 40;
/// Of so many messages one is early, where they are shuffled: the first of all, which nothing holds up, is one.
const EARLY: usize = 10;

impl Plan {
    /// The plan for this wish: the same for the same wish.
    pub fn of(wish: &Wish) -> Self {
        let mut rng = fastrand::Rng::with_seed(wish.seed);
        let places = places(wish, &mut rng);
        let again = chosen(wish.duplicates.of(wish.photos), wish.photos, &mut rng);
        let corrupt = chosen(wish.corrupt.of(wish.photos), wish.photos, &mut rng);
        let mut steps: Vec<(usize, Step)> = Vec::with_capacity(wish.photos * 3 + again.len());
        for (n, place) in places.iter().enumerate() {
            steps.extend([(place * 8, Step::Store(n)), (place * 8 + 2, Step::Tell(n))]);
            steps.push(match wish.shuffle && place % EARLY == 0 {
                true => (place * 8 + 3, Step::LateRow(n)),
                false => (place * 8 + 1, Step::Row(n)),
            });
        }
        for (turn, n) in again.iter().enumerate() {
            let step = if turn % 2 == 0 { Step::Repeat(*n) } else { Step::Reupload(*n) };
            steps.push(((places[*n] + rng.usize(1..=REPEAT)) * 8 + 4, step));
        }
        steps.sort_by_key(|(when, _)| *when);
        let mut damage = vec![None; wish.photos];
        corrupt.iter().zip(Damage::ALL.iter().cycle()).for_each(|(n, kind)| damage[*n] = Some(*kind));
        Self {
            steps: steps.into_iter().map(|(_, step)| step).collect(),
            damage,
            duplicates: again.len(),
            early: if wish.shuffle { wish.photos.div_ceil(EARLY) } else { 0 },
            album: AlbumSpec {
                photos: wish.photos,
                identities: wish.identities,
                faces_per_photo: wish.faces_per_photo,
                noise: DEFAULT_NOISE,
                seed: wish.seed,
            },
        }
    }

    /// The steps in turns: what is done about a photo in one go, for one message.
    pub fn turns(&self) -> impl Iterator<Item = &[Step]> {
        self.steps.chunk_by(|step, next| step.photo() == next.photo() && !next.is_again())
    }

    /// How often anything is told.
    pub fn messages(&self) -> usize {
        self.damage.len() + self.duplicates
    }
}

/// When each photo is told of: in turn, or somewhere near.
fn places(wish: &Wish, rng: &mut fastrand::Rng) -> Vec<usize> {
    let mut places: Vec<usize> = (0..wish.photos).collect();
    if wish.shuffle {
        places.chunks_mut(WINDOW).for_each(|window| rng.shuffle(window));
    }
    places
}

/// So many numbers below `whole`, each once, by themselves in no order.
fn chosen(many: usize, whole: usize, rng: &mut fastrand::Rng) -> Vec<usize> {
    let mut all: Vec<usize> = (0..whole).collect();
    rng.shuffle(&mut all);
    all.truncate(many);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(shuffle: bool) -> Wish {
        let share = |text: &str| text.parse().unwrap();
        Wish {
            photos: 200,
            identities: 10,
            faces_per_photo: 3,
            duplicates: share("20%"),
            corrupt: share("2%"),
            shuffle,
            seed: 7,
        }
    }

    fn at(plan: &Plan, step: Step) -> usize {
        plan.steps.iter().position(|found| *found == step).unwrap()
    }

    fn told(plan: &Plan) -> Vec<usize> {
        plan.steps.iter().filter_map(|step| if let Step::Tell(n) = step { Some(*n) } else { None }).collect()
    }

    #[test]
    fn in_order_every_photo_has_its_file_and_its_row_before_its_message() {
        let plan = Plan::of(&wish(false));
        for n in 0..200 {
            assert!(at(&plan, Step::Store(n)) < at(&plan, Step::Row(n)));
            assert!(at(&plan, Step::Row(n)) < at(&plan, Step::Tell(n)));
        }
        assert_eq!((told(&plan), plan.early), ((0..200).collect(), 0));
    }

    #[test]
    fn shuffled_messages_are_in_no_order_and_some_come_before_their_row() {
        let plan = Plan::of(&wish(true));
        let told = told(&plan);
        assert!(!told.is_sorted());
        let late = |n: &usize| plan.steps.contains(&Step::LateRow(*n));
        assert!((0..200).filter(late).all(|n| at(&plan, Step::Tell(n)) < at(&plan, Step::LateRow(n))));
        assert_eq!(((0..200).filter(late).count(), plan.early), (20, 20));
        assert!(late(&told[0]), "the first message of all");
        let mut all = told.clone();
        all.sort_unstable();
        assert_eq!(all, (0..200).collect::<Vec<_>>(), "each once");
        assert!((0..200).all(|n| at(&plan, Step::Store(n)) < at(&plan, Step::Tell(n))));
    }

    #[test]
    fn as_many_as_asked_for_are_damaged_and_told_of_again() {
        let plan = Plan::of(&wish(true));
        let kinds: Vec<_> = plan.damage.iter().flatten().collect();
        assert_eq!(kinds.len(), 4);
        assert!(Damage::ALL.iter().all(|kind| kinds.contains(&kind)), "each kind in turn");
        let again = |step: &&Step| matches!(step, Step::Repeat(_) | Step::Reupload(_));
        assert_eq!((plan.steps.iter().filter(again).count(), plan.duplicates), (40, 40));
        for step in plan.steps.iter().filter(again) {
            let (Step::Repeat(n) | Step::Reupload(n)) = step else { unreachable!() };
            assert!(at(&plan, *step) > at(&plan, Step::Tell(*n)));
        }
        assert_eq!(plan.messages(), 240);
    }

    #[test]
    fn a_turn_is_about_one_photo_and_has_one_message() {
        for plan in [Plan::of(&wish(false)), Plan::of(&wish(true))] {
            let is_message = |step: &&Step| matches!(step, Step::Tell(_) | Step::Repeat(_) | Step::Reupload(_));
            for turn in plan.turns() {
                assert!(turn.iter().all(|step| step.photo() == turn[0].photo()), "{turn:?}");
                assert_eq!(turn.iter().filter(is_message).count(), 1, "{turn:?}");
            }
            assert_eq!(plan.turns().count(), plan.messages());
            assert_eq!(plan.turns().flatten().copied().collect::<Vec<_>>(), plan.steps);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        assert_eq!(Plan::of(&wish(true)), Plan::of(&wish(true)));
        assert_ne!(Plan::of(&wish(true)), Plan::of(&Wish { seed: 8, ..wish(true) }));
    }
}
