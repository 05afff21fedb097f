//! A commit as actions of a transaction, and what their refusals mean.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::{
    error::BuildError,
    types::{CancellationReason, TransactWriteItem},
};
use sparks_domain::{
    Attributes, Event, FaceId, ImageId, Key, Lane, Mutation, PersonId, PhotoState, Position, Presence, Recorded, Seq,
};
use sparks_engine::{Commit, CommitError, PhotoGuard, StoreError};

use super::{
    Tables,
    expression::Expression,
    faces,
    log::{self, Lanes, PENDING},
    rows,
    value::{Fields, attributes, key_fields, n},
};

/// As many actions as a transaction takes.
pub(crate) const MOST: usize = 100;

/// A part of a transaction, and what is at stake in it.
#[derive(Debug, Clone)]
pub(crate) struct Action {
    pub write: TransactWriteItem,
    pub stake: Stake,
}

/// What a refusal of an action is about.
#[derive(Debug, Clone)]
pub(crate) enum Stake {
    /// The photo that was decided on.
    Photo,
    /// The persons that were decided on.
    Identity,
    /// How far a lane has come.
    Head(Lane),
    /// The place of an event in its lane, which must be free: no event is ever overwritten.
    Event(Lane),
    /// A row of the platform's table.
    Row(Box<Mutation>),
    /// What is kept of a photo's faces.
    Faces(ImageId),
    /// Nothing: it cannot be refused.
    Nothing,
}

/// What is known of the world before an attempt. Grows by what refusals tell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Knowledge {
    /// How far the lanes have come.
    pub heads: Position,
    /// Rows, and those that are not there.
    pub rows: HashMap<Key, Option<Attributes>>,
    /// Faces that are kept of photos whose faces change.
    pub faces: BTreeMap<ImageId, Fields>,
    /// Whether rows of the photo's last event are still to be written.
    pub pending: bool,
}

/// What to do for a commit.
#[derive(Debug)]
pub(crate) struct Plan {
    /// At once, or not at all.
    pub core: Vec<Action>,
    /// Afterwards, in batches that can be repeated: what does not fit into one transaction.
    pub rest: Vec<Action>,
    /// What the log says once the core is done.
    pub recorded: Vec<Recorded>,
    /// The photo's state once the core is done, which every batch of the rest checks.
    pub state: Option<(ImageId, Seq)>,
}

impl Plan {
    /// The commit on what is known.
    pub fn of(commit: &Commit, known: &Knowledge, tables: &Tables, lanes: Lanes) -> Result<Self, StoreError> {
        Draft { commit, known, tables, lanes }.plan().map_err(|trouble| match trouble {
            Impossible::Build(error) => StoreError::Unreadable(format!("a commit that cannot be written: {error}")),
            Impossible::Store(error) => error,
        })
    }

    /// The rows of new persons that are written after the core: whether their numbers are free must be known before.
    pub fn numbers(&self) -> Vec<Key> {
        let new = self.rest.iter().filter_map(|action| match &action.stake {
            Stake::Row(row) if is_new(row) => Some(row.key().clone()),
            _ => None,
        });
        new.collect()
    }

    /// The rest in batches, each under the condition that the photo is still what the core made of it. The last one says
    /// that nothing is left to do.
    pub fn batches(&self, table: &str) -> Result<Vec<Vec<Action>>, StoreError> {
        let unwritable = |error: BuildError| StoreError::Unreadable(error.to_string());
        let mut batches: Vec<Vec<Action>> = self.rest.chunks(MOST - 1).map(<[_]>::to_vec).collect();
        let last = batches.len().saturating_sub(1);
        for (n, batch) in batches.iter_mut().enumerate() {
            let Some((image, seq)) = &self.state else { continue };
            let mut is_current = Expression::default();
            is_current.if_equal("seq", super::value::n(seq));
            if n == last {
                is_current.remove(PENDING);
            }
            let write = is_current.on(table, log::state_key(image)).map_err(unwritable)?;
            batch.push(Action { write, stake: Stake::Photo });
        }
        Ok(batches)
    }
}

/// Whether the row must not be there.
fn is_new(mutation: &Mutation) -> bool {
    matches!(mutation, Mutation::Set { presence: Presence::Absent, .. })
}

/// Why there is no plan.
enum Impossible {
    Build(BuildError),
    Store(StoreError),
}

impl From<BuildError> for Impossible {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<StoreError> for Impossible {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

struct Draft<'a> {
    commit: &'a Commit,
    known: &'a Knowledge,
    tables: &'a Tables,
    lanes: Lanes,
}

impl Draft<'_> {
    fn plan(&self) -> Result<Plan, Impossible> {
        let recorded = self.recorded();
        let mut core = self.log(&recorded)?;
        core.extend(self.faces(&recorded)?);
        let (fixed, mut rest): (Vec<_>, Vec<_>) = self.rows()?.into_iter().partition(|action| !can_wait(action));
        core.extend(fixed);
        rest.extend(self.leads()?);
        // The photo's state takes one place.
        let room = MOST.saturating_sub(core.len() + usize::from(self.commit.photo.is_some()));
        let later = rest.split_off(room.min(rest.len()));
        core.extend(rest);
        let mut state = None;
        if let Some(guard) = &self.commit.photo {
            let after =
                recorded.iter().fold(guard.before.clone(), |state, r| PhotoState::evolve(state, r.seq, &r.event));
            core.insert(0, self.state(guard, after.as_ref(), !later.is_empty())?);
            state = after.map(|after| (guard.image.clone(), after.seq));
        }
        Ok(Plan { core, rest: later, recorded, state })
    }

    /// How far the lane has come: as far as the decision saw, or else as far as anybody knows.
    fn head(&self, lane: Lane) -> Seq {
        match &self.commit.identity {
            Some(identity) if lane == Lane::IDENTITY => identity.seq,
            _ => self.known.heads.in_lane(lane),
        }
    }

    /// The events with the places they will have.
    fn recorded(&self) -> Vec<Recorded> {
        let mut heads: BTreeMap<Lane, Seq> = BTreeMap::new();
        let record = |event: &Event| {
            let lane = self.lanes.of_event(event);
            let head = heads.entry(lane).or_insert_with(|| self.head(lane));
            *head = Seq(head.0 + 1);
            let (id, actor, when) = (event.id(), self.commit.actor.clone(), self.commit.when);
            Recorded { lane, seq: *head, id, actor, when, event: event.clone() }
        };
        self.commit.events.iter().map(record).collect()
    }

    /// The events, and the heads that they move. Whoever follows persons learns all of the commit's templates with them.
    fn log(&self, recorded: &[Recorded]) -> Result<Vec<Action>, Impossible> {
        let table = &self.tables.log;
        let kept = self.commit.signatures.iter().filter(|face| face.template).map(|face| &face.face);
        let templates: Vec<FaceId> = kept.chain(&self.commit.promoted).cloned().collect();
        let teacher = recorded.iter().rposition(|r| r.lane == Lane::IDENTITY).or(recorded.len().checked_sub(1));
        let mut actions = Vec::new();
        let mut moved: BTreeMap<Lane, Seq> = BTreeMap::new();
        let mut lesson = None;
        for (n, recorded) in recorded.iter().enumerate() {
            moved.insert(recorded.lane, recorded.seq);
            let taught = if Some(n) == teacher { templates.as_slice() } else { &[] };
            if !taught.is_empty() {
                lesson = Some((recorded.lane, recorded.seq));
            }
            let mut event = Expression::default();
            event.if_absent();
            let write = event.put(table, log::event_fields(recorded, taught))?;
            actions.push(Action { write, stake: Stake::Event(recorded.lane) });
        }
        if self.commit.identity.is_some() {
            moved.entry(Lane::IDENTITY).or_insert_with(|| self.head(Lane::IDENTITY));
        }
        for (lane, seq) in moved {
            let taught = lesson.filter(|(taught, _)| *taught == lane).map(|(_, seq)| seq);
            actions.push(self.move_head(lane, seq, taught)?);
        }
        Ok(actions)
    }

    fn move_head(&self, lane: Lane, to: Seq, taught: Option<Seq>) -> Result<Action, BuildError> {
        let (from, mut head) = (self.head(lane), Expression::default());
        match from {
            Seq(0) => head.if_equal_or_absent("seq", n(0)),
            from => head.if_equal("seq", n(from)),
        };
        if to != from {
            head.set("seq", n(to));
            // A lane that begins has taught nothing yet.
            if let Some(taught) = taught.or((from == Seq(0)).then_some(from)) {
                head.set(log::TAUGHT, n(taught));
            }
        }
        let write = head.on(&self.tables.log, log::head_key(lane))?;
        let decided_on = lane == Lane::IDENTITY && self.commit.identity.is_some();
        Ok(Action { write, stake: if decided_on { Stake::Identity } else { Stake::Head(lane) } })
    }

    /// The photo's state, which must still be what was decided on.
    fn state(&self, guard: &PhotoGuard, after: Option<&PhotoState>, pending: bool) -> Result<Action, Impossible> {
        let (table, mut state) = (&self.tables.log, Expression::default());
        match &guard.before {
            Some(before) => state.if_equal("seq", n(before.seq)),
            None => state.if_absent(),
        };
        let write = match after {
            Some(after) if guard.before.as_ref() != Some(after) => {
                state.put(table, log::state_fields(&guard.image, after, pending)?)?
            }
            _ => {
                if self.known.pending && !pending {
                    state.remove(PENDING);
                }
                state.on(table, log::state_key(&guard.image))?
            }
        };
        Ok(Action { write, stake: Stake::Photo })
    }

    fn faces(&self, recorded: &[Recorded]) -> Result<Vec<Action>, Impossible> {
        let seq = recorded.last().map_or(Seq(0), |recorded| recorded.seq);
        let changes = faces::changes(&self.tables.faces, self.commit, seq, &self.known.faces)?;
        Ok(changes.into_iter().map(|(image, write)| Action { write, stake: Stake::Faces(image) }).collect())
    }

    /// The rows that lead to faces: those of photos that are erased go.
    fn leads(&self) -> Result<Vec<Action>, Impossible> {
        let table = &self.tables.faces;
        let mut wanted = faces::leads(self.commit);
        let erased = |image: &ImageId| self.commit.erased.photos.contains(image);
        let (gone, known) = self.known.faces.clone().into_iter().partition(|(image, _)| erased(image));
        if self.known.pending {
            wanted.extend(faces::leads_of(&known)?);
        }
        let mut actions = Vec::new();
        for (person, image) in wanted {
            let write = Expression::default().put(table, key_fields(&person, image.as_str()))?;
            actions.push(Action { write, stake: Stake::Nothing });
        }
        for (person, image) in faces::leads_of(&gone)? {
            let write = Expression::default().delete(table, key_fields(&person, image.as_str()))?;
            actions.push(Action { write, stake: Stake::Nothing });
        }
        Ok(actions)
    }

    /// The rows of the platform's table. Those of new persons come first.
    fn rows(&self) -> Result<Vec<Action>, Impossible> {
        let (table, counter) = (&self.tables.platform, Key::counter());
        let mut mutations = rows::merged(&self.commit.mutations)?;
        mutations.sort_by_key(|mutation| !is_new(mutation));
        let mut actions = Vec::new();
        let mut guard = self.commit.identity.as_ref();
        for mutation in mutations {
            let known = self.known.rows.get(mutation.key()).map(Option::as_ref);
            let guard = if *mutation.key() == counter { guard.take() } else { None };
            if let Some(write) = rows::action(table, &mutation, known, guard)? {
                actions.push(Action { write, stake: Stake::Row(Box::new(mutation)) });
            }
        }
        if let Some(identity) = guard {
            let mut check = Expression::default();
            rows::counter_is(&mut check, identity);
            let write = check.on(table, key_fields(&counter.pk, &counter.sk))?;
            actions.push(Action { write, stake: Stake::Identity });
        }
        Ok(actions)
    }
}

/// Whether the action may come after the event that it follows from.
fn can_wait(action: &Action) -> bool {
    match &action.stake {
        Stake::Row(mutation) => match mutation.as_ref() {
            Mutation::Set { presence, at_least, .. } => *presence != Presence::Required && at_least.is_empty(),
            Mutation::Delete { .. } | Mutation::Clear { .. } => true,
            Mutation::Take { .. } | Mutation::Add { .. } => false,
        },
        _ => false,
    }
}

impl Knowledge {
    /// Learns from a refusal: either what to try next, or that there is nothing to try.
    pub fn learn(
        &mut self,
        commit: &Commit,
        actions: &[Action],
        reasons: &[CancellationReason],
    ) -> Result<(), CommitError> {
        let refused = |reason: &CancellationReason| reason.code() == Some("ConditionalCheckFailed");
        let refused: Vec<_> = actions.iter().zip(reasons).filter(|(_, reason)| refused(reason)).collect();
        if refused.iter().any(|(action, _)| matches!(action.stake, Stake::Photo)) {
            return Err(CommitError::PhotoMoved);
        }
        if refused.iter().any(|(action, reason)| is_identity(commit, action, reason)) {
            return Err(CommitError::IdentityMoved);
        }
        for (action, reason) in refused {
            let found = reason.item();
            match &action.stake {
                Stake::Head(lane) => {
                    let seq = found.map_or(Ok(0), |fields| super::value::number(fields, "seq"))?;
                    self.heads.pass(*lane, Seq(seq));
                }
                // Whoever is there was faster, so the lane has come as far as that at least.
                Stake::Event(lane) => {
                    let taken = found.map(|fields| log::place_of(*lane, fields)).transpose()?;
                    self.heads.pass(*lane, taken.unwrap_or_default());
                }
                Stake::Row(mutation) => self.learn_row(mutation, found.map(attributes))?,
                Stake::Faces(image) => drop(self.faces.remove(image)),
                Stake::Photo | Stake::Identity | Stake::Nothing => {}
            }
        }
        Ok(())
    }

    fn learn_row(&mut self, mutation: &Mutation, found: Option<Attributes>) -> Result<(), CommitError> {
        let key = mutation.key();
        if found.is_none() && mutation.requires_row() {
            return Err(CommitError::RowMissing(key.clone()));
        }
        if found.is_some() && is_new(mutation) {
            return Err(match key.sk.parse::<PersonId>() {
                Ok(person) => CommitError::NumberTaken(person),
                Err(_) => StoreError::Unreadable(format!("the row {key} is there already")).into(),
            });
        }
        self.rows.insert(key.clone(), found);
        Ok(())
    }
}

/// Whether the refusal says that persons have changed. The counter is both decided on and written.
fn is_identity(commit: &Commit, action: &Action, reason: &CancellationReason) -> bool {
    match (&action.stake, &commit.identity) {
        (Stake::Identity, _) | (Stake::Event(Lane::IDENTITY), Some(_)) => true,
        (Stake::Row(mutation), Some(identity)) if *mutation.key() == Key::counter() => {
            let counter = reason.item().map_or(Ok(0), |fields| super::value::number(fields, "limit"));
            counter.is_ok_and(|counter| counter != u64::from(identity.counter))
        }
        _ => false,
    }
}
