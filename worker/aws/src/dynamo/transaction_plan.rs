//! Plans a commit as the actions of a transaction, and interprets failed conditions.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::{
    error::BuildError,
    types::{CancellationReason, TransactWriteItem},
};
use sparks_domain::{
    Attributes, Event, FaceId, ImageId, Key, Lane, Level, Mutation, PersonId, PhotoState, Position, Presence,
    RecordedEvent, Seq,
};
use sparks_engine::{Commit, CommitError, PhotoGuard, StoreError};

use super::{
    Tables,
    attribute_value::{self, attributes, key_fields, n},
    expression::Expression,
    face_items::{self, PhotoItems},
    limits::MAX_ACTIONS,
    log_items::{self, PENDING, PhotoLanes},
    mutations,
};

/// One action of a transaction, and the item it is about.
#[derive(Debug, Clone)]
pub(crate) struct Action {
    pub write: TransactWriteItem,
    pub target: ActionTarget,
}

/// The item that an action writes or checks. It tells what a failed condition means.
#[derive(Debug, Clone)]
pub(crate) enum ActionTarget {
    /// The state of the photo that was decided on.
    Photo,
    /// The head of the identity lane, or the person counter, that was decided on.
    IdentityHead,
    /// The head of a lane.
    Head(Lane),
    /// An event. Its position in the lane must be free: events are never overwritten.
    Event(Lane),
    /// A row of the platform's table.
    Row(Box<Mutation>),
    /// The item with the signatures of a photo.
    Faces(ImageId),
    /// An item that is written without a condition.
    Unconditional,
}

/// The stored items that a plan assumes (optimistic concurrency). Failed conditions correct them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assumptions {
    /// The heads of the lanes.
    pub heads: Position,
    /// Rows of the platform's table; `None` for a row that does not exist.
    pub rows: HashMap<Key, Option<Attributes>>,
    /// The items with the signatures of photos whose faces change.
    pub faces: BTreeMap<ImageId, PhotoItems>,
    /// Whether rows of the photo's last event are still to be written.
    pub pending: bool,
}

/// The actions of a commit.
#[derive(Debug)]
pub(crate) struct TransactionPlan {
    /// The actions of the transaction.
    pub core: Vec<Action>,
    /// Actions that do not fit into the transaction: written after it, in batches that can be repeated.
    pub deferred: Vec<Action>,
    /// The events as the log holds them after the transaction.
    pub recorded: Vec<RecordedEvent>,
    /// The photo's state after the transaction, which every deferred batch checks.
    pub state: Option<(ImageId, Seq)>,
}

impl TransactionPlan {
    /// Plans the commit on these assumptions, for a log of this level.
    pub fn new(
        commit: &Commit,
        assumptions: &Assumptions,
        tables: &Tables,
        lanes: PhotoLanes,
        level: Level,
    ) -> Result<Self, StoreError> {
        TransactionPlanner { commit, assumptions, tables, lanes, level }.plan().map_err(|error| match error {
            PlanError::Build(error) => StoreError::Unreadable(format!("failed to build the transaction: {error}")),
            PlanError::Store(error) => error,
        })
    }

    /// Returns the keys of new persons' rows that are deferred. The caller must check before the transaction that they are
    /// free.
    pub fn deferred_person_keys(&self) -> Vec<Key> {
        let new = self.deferred.iter().filter_map(|action| match &action.target {
            ActionTarget::Row(row) if is_new(row) => Some(row.key().clone()),
            _ => None,
        });
        new.collect()
    }

    /// Returns the deferred actions in batches, each under the condition that the photo's state is still that of the
    /// transaction. The last batch removes the pending mark.
    pub fn deferred_batches(&self, table: &str) -> Result<Vec<Vec<Action>>, StoreError> {
        let invalid = |error: BuildError| StoreError::Unreadable(error.to_string());
        let mut batches: Vec<Vec<Action>> = self.deferred.chunks(MAX_ACTIONS - 1).map(<[_]>::to_vec).collect();
        let last = batches.len().saturating_sub(1);
        for (position, batch) in batches.iter_mut().enumerate() {
            let Some((image, seq)) = &self.state else { continue };
            let mut is_current = Expression::default();
            is_current.if_equal("seq", n(seq));
            if position == last {
                is_current.remove(PENDING);
            }
            let write = is_current.on(table, log_items::state_key(image)).map_err(invalid)?;
            batch.push(Action { write, target: ActionTarget::Photo });
        }
        Ok(batches)
    }
}

/// Returns whether the row must not exist.
fn is_new(mutation: &Mutation) -> bool {
    matches!(mutation, Mutation::Set { presence: Presence::Absent, .. })
}

/// Errors of planning.
enum PlanError {
    Build(BuildError),
    Store(StoreError),
}

impl From<BuildError> for PlanError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<StoreError> for PlanError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

struct TransactionPlanner<'a> {
    commit: &'a Commit,
    assumptions: &'a Assumptions,
    tables: &'a Tables,
    lanes: PhotoLanes,
    level: Level,
}

impl TransactionPlanner<'_> {
    fn plan(&self) -> Result<TransactionPlan, PlanError> {
        let recorded = self.recorded_events();
        let mut core = self.log_actions(&recorded)?;
        core.extend(self.face_actions(&recorded)?);
        let (fixed, mut deferrable): (Vec<_>, Vec<_>) =
            self.row_actions()?.into_iter().partition(|action| !can_defer(action));
        core.extend(fixed);
        deferrable.extend(self.lookup_actions()?);
        // The photo's state is added below.
        let room = MAX_ACTIONS.saturating_sub(core.len() + usize::from(self.commit.photo.is_some()));
        let deferred = deferrable.split_off(room.min(deferrable.len()));
        core.extend(deferrable);
        let mut state = None;
        if let Some(guard) = &self.commit.photo {
            let after =
                recorded.iter().fold(guard.before.clone(), |state, r| PhotoState::evolve(state, r.seq, &r.event));
            core.insert(0, self.state_action(guard, after.as_ref(), !deferred.is_empty())?);
            state = after.map(|after| (guard.image.clone(), after.seq));
        }
        Ok(TransactionPlan { core, deferred, recorded, state })
    }

    /// Returns the assumed head of the lane: the one that was decided on, otherwise the last one read.
    fn assumed_head(&self, lane: Lane) -> Seq {
        match &self.commit.identity {
            Some(identity) if lane == Lane::IDENTITY => identity.seq,
            _ => self.assumptions.heads.in_lane(lane),
        }
    }

    /// Returns the events with the positions they will have.
    fn recorded_events(&self) -> Vec<RecordedEvent> {
        let mut heads: BTreeMap<Lane, Seq> = BTreeMap::new();
        let record = |event: &Event| {
            let lane = self.lanes.of_event(event);
            let head = heads.entry(lane).or_insert_with(|| self.assumed_head(lane));
            *head = Seq(head.0 + 1);
            let (id, actor, when) = (event.id(), self.commit.actor.clone(), self.commit.when);
            RecordedEvent { lane, seq: *head, id, actor, when, event: event.clone() }
        };
        self.commit.events.iter().map(record).collect()
    }

    /// Returns the writes of events and heads. All templates of the commit are recorded with one event, in the identity
    /// lane if it has one there: readers of that lane alone then see the templates of all new persons.
    fn log_actions(&self, recorded: &[RecordedEvent]) -> Result<Vec<Action>, PlanError> {
        let table = &self.tables.log;
        let stored = self.commit.signatures.iter().filter(|face| face.template).map(|face| &face.face);
        let templates: Vec<FaceId> = stored.chain(&self.commit.promoted).cloned().collect();
        let carrier = recorded.iter().rposition(|r| r.lane == Lane::IDENTITY).or(recorded.len().checked_sub(1));
        let mut actions = Vec::new();
        let mut moved: BTreeMap<Lane, Seq> = BTreeMap::new();
        let mut enrollment = None;
        for (n, recorded) in recorded.iter().enumerate() {
            moved.insert(recorded.lane, recorded.seq);
            let carried = if Some(n) == carrier { templates.as_slice() } else { &[] };
            if !carried.is_empty() {
                enrollment = Some((recorded.lane, recorded.seq));
            }
            let mut event = Expression::default();
            event.if_absent();
            let items = log_items::event_items(recorded, carried, self.level);
            actions.push(Action { write: event.put(table, items.event)?, target: ActionTarget::Event(recorded.lane) });
            for part in items.parts {
                let write = Expression::default().put(table, part)?;
                actions.push(Action { write, target: ActionTarget::Unconditional });
            }
        }
        if self.commit.identity.is_some() {
            moved.entry(Lane::IDENTITY).or_insert_with(|| self.assumed_head(Lane::IDENTITY));
        }
        for (lane, seq) in moved {
            let enrolled = enrollment.filter(|(enrolled, _)| *enrolled == lane).map(|(_, seq)| seq);
            actions.push(self.move_head(lane, seq, enrolled)?);
        }
        Ok(actions)
    }

    /// Moves the head of a lane; `enrolled` is the position of the lane's new event with templates, if there is one.
    fn move_head(&self, lane: Lane, to: Seq, enrolled: Option<Seq>) -> Result<Action, BuildError> {
        let (from, mut head) = (self.assumed_head(lane), Expression::default());
        match from {
            Seq(0) => head.if_equal_or_absent("seq", n(0)),
            from => head.if_equal("seq", n(from)),
        };
        if to != from {
            head.set("seq", n(to));
            // A new lane has no event with templates yet.
            if let Some(enrolled) = enrolled.or((from == Seq(0)).then_some(from)) {
                head.set(log_items::LAST_ENROLLMENT, n(enrolled));
            }
        }
        let raised = self.commit.events.iter().rev().find_map(|event| match event {
            Event::LevelRaised(raised) if lane == Lane::IDENTITY => Some(raised.level),
            _ => None,
        });
        if let Some(level) = raised {
            head.set(log_items::LEVEL, n(level));
        }
        let write = head.on(&self.tables.log, log_items::head_key(lane))?;
        let decided_on = lane == Lane::IDENTITY && self.commit.identity.is_some();
        Ok(Action { write, target: if decided_on { ActionTarget::IdentityHead } else { ActionTarget::Head(lane) } })
    }

    /// Returns the write of the photo's state, under the condition that it is still the one decided on.
    fn state_action(&self, guard: &PhotoGuard, after: Option<&PhotoState>, pending: bool) -> Result<Action, PlanError> {
        let (table, mut state) = (&self.tables.log, Expression::default());
        match &guard.before {
            Some(before) => state.if_equal("seq", n(before.seq)),
            None => state.if_absent(),
        };
        let write = match after {
            Some(after) if guard.before.as_ref() != Some(after) => {
                state.put(table, log_items::state_fields(&guard.image, after, pending)?)?
            }
            _ => {
                if self.assumptions.pending && !pending {
                    state.remove(PENDING);
                }
                state.on(table, log_items::state_key(&guard.image))?
            }
        };
        Ok(Action { write, target: ActionTarget::Photo })
    }

    fn face_actions(&self, recorded: &[RecordedEvent]) -> Result<Vec<Action>, PlanError> {
        let seq = recorded.last().map_or(Seq(0), |recorded| recorded.seq);
        let changes = face_items::changes(&self.tables.faces, self.commit, seq, &self.assumptions.faces, self.level)?;
        Ok(changes.into_iter().map(|(image, write)| Action { write, target: ActionTarget::Faces(image) }).collect())
    }

    /// Returns the writes of lookup rows, and the deletions of those of erased photos.
    fn lookup_actions(&self) -> Result<Vec<Action>, PlanError> {
        let table = &self.tables.faces;
        let mut wanted = face_items::lookup_rows(self.commit);
        let erased = |image: &ImageId| self.commit.erased.photos.contains(image);
        let (removed, remaining) = self.assumptions.faces.clone().into_iter().partition(|(image, _)| erased(image));
        if self.assumptions.pending {
            wanted.extend(face_items::lookup_rows_of(&remaining)?);
        }
        let mut actions = Vec::new();
        for (person, image) in wanted {
            let write = Expression::default().put(table, key_fields(&person, image.as_str()))?;
            actions.push(Action { write, target: ActionTarget::Unconditional });
        }
        for (person, image) in face_items::lookup_rows_of(&removed)? {
            let write = Expression::default().delete(table, key_fields(&person, image.as_str()))?;
            actions.push(Action { write, target: ActionTarget::Unconditional });
        }
        Ok(actions)
    }

    /// Returns the writes of the platform's rows, those of new persons first.
    fn row_actions(&self) -> Result<Vec<Action>, PlanError> {
        let (table, counter) = (&self.tables.platform, Key::counter());
        let mut mutations = mutations::merged(&self.commit.mutations)?;
        mutations.sort_by_key(|mutation| !is_new(mutation));
        let mut actions = Vec::new();
        let mut guard = self.commit.identity.as_ref();
        for mutation in mutations {
            let assumed = self.assumptions.rows.get(mutation.key()).map(Option::as_ref);
            let guard = if *mutation.key() == counter { guard.take() } else { None };
            if let Some(write) = mutations::action(table, &mutation, assumed, guard)? {
                actions.push(Action { write, target: ActionTarget::Row(Box::new(mutation)) });
            }
        }
        if let Some(identity) = guard {
            let mut check = Expression::default();
            mutations::counter_is(&mut check, identity);
            let write = check.on(table, key_fields(&counter.pk, &counter.sk))?;
            actions.push(Action { write, target: ActionTarget::IdentityHead });
        }
        Ok(actions)
    }
}

/// Returns whether the action may be written after the transaction.
fn can_defer(action: &Action) -> bool {
    match &action.target {
        ActionTarget::Row(mutation) => match mutation.as_ref() {
            Mutation::Set { presence, at_least, .. } => *presence != Presence::Required && at_least.is_empty(),
            Mutation::Delete { .. } | Mutation::RemoveAttributes { .. } => true,
            Mutation::DeleteExisting { .. } | Mutation::Add { .. } => false,
        },
        _ => false,
    }
}

impl Assumptions {
    /// Corrects the assumptions by the items that failed conditions return, or fails with a conflict that the caller must
    /// resolve.
    pub fn correct(
        &mut self,
        commit: &Commit,
        actions: &[Action],
        reasons: &[CancellationReason],
    ) -> Result<(), CommitError> {
        let has_failed = |reason: &CancellationReason| reason.code() == Some("ConditionalCheckFailed");
        let failed: Vec<_> = actions.iter().zip(reasons).filter(|(_, reason)| has_failed(reason)).collect();
        if failed.iter().any(|(action, _)| matches!(action.target, ActionTarget::Photo)) {
            return Err(CommitError::PhotoMoved);
        }
        if failed.iter().any(|(action, reason)| is_identity_conflict(commit, action, reason)) {
            return Err(CommitError::IdentityMoved);
        }
        for (action, reason) in failed {
            let found = reason.item();
            match &action.target {
                ActionTarget::Head(lane) => {
                    let seq = found.map_or(Ok(0), |fields| attribute_value::number(fields, "seq"))?;
                    self.heads.advance(*lane, Seq(seq));
                }
                // The position is taken, so the lane reaches at least that far.
                ActionTarget::Event(lane) => {
                    let taken = found.map(|fields| log_items::event_seq(*lane, fields)).transpose()?;
                    self.heads.advance(*lane, taken.unwrap_or_default());
                }
                ActionTarget::Row(mutation) => self.correct_row(mutation, found.map(attributes))?,
                ActionTarget::Faces(image) => drop(self.faces.remove(image)),
                ActionTarget::Photo | ActionTarget::IdentityHead | ActionTarget::Unconditional => {}
            }
        }
        Ok(())
    }

    fn correct_row(&mut self, mutation: &Mutation, found: Option<Attributes>) -> Result<(), CommitError> {
        let key = mutation.key();
        if found.is_none() && mutation.requires_row() {
            return Err(CommitError::RowMissing(key.clone()));
        }
        if found.is_some() && is_new(mutation) {
            return Err(match key.sk.parse::<PersonId>() {
                Ok(person) => CommitError::NumberTaken(person),
                Err(_) => StoreError::Unreadable(format!("row {key} exists already")).into(),
            });
        }
        self.rows.insert(key.clone(), found);
        Ok(())
    }
}

/// Returns whether the failed condition means that persons were allocated since. The counter is both decided on and written.
fn is_identity_conflict(commit: &Commit, action: &Action, reason: &CancellationReason) -> bool {
    match (&action.target, &commit.identity) {
        (ActionTarget::IdentityHead, _) | (ActionTarget::Event(Lane::IDENTITY), Some(_)) => true,
        (ActionTarget::Row(mutation), Some(identity)) if *mutation.key() == Key::counter() => {
            let counter = reason.item().map_or(Ok(0), |fields| attribute_value::number(fields, "limit"));
            counter.is_ok_and(|counter| counter != u64::from(identity.counter))
        }
        _ => false,
    }
}
