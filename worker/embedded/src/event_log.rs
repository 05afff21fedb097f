//! The event log, its heads and the photo states in SQLite.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use sparks_domain::{Event, ImageId, Lane, Level, PhotoState, RecordedEvent, Seq, Timestamp};
use sparks_engine::Commit;

use crate::database::DatabaseError;

const COLUMNS: &str = "seq, event_id, actor, when_occurred, event_type, event_data";

/// Appends the events of a commit in order and updates the heads.
pub(crate) fn append(tx: &Transaction<'_>, commit: &Commit) -> Result<Vec<RecordedEvent>, DatabaseError> {
    let mut seq = head(tx, "EVENTS")?;
    let mut identity = None;
    let mut insert = tx.prepare_cached(
        "INSERT INTO log (seq, event_id, actor, when_occurred, event_type, event_data, identity)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut recorded = Vec::with_capacity(commit.events.len());
    for event in &commit.events {
        seq = Seq(seq.0 + 1);
        let (id, when) = (event.id(), commit.when);
        let is_identity = event.is_identity();
        insert.execute(params![
            number(seq),
            id.to_string(),
            commit.actor,
            when.to_string(),
            event.event_type(),
            event.to_data(),
            is_identity
        ])?;
        identity = is_identity.then_some(seq).or(identity);
        if let Event::LevelRaised(raised) = event {
            set_level(tx, raised.level)?;
        }
        let (lane, actor) = (Lane::IDENTITY, commit.actor.clone());
        recorded.push(RecordedEvent { lane, seq, id, actor, when, event: event.clone() });
    }
    set_head(tx, "EVENTS", seq)?;
    if let Some(seq) = identity {
        set_head(tx, "IDENTITY", seq)?;
    }
    Ok(recorded)
}

/// Returns the last sequence number of a lane or checkpoint.
pub(crate) fn head(tx: &Transaction<'_>, lane: &str) -> Result<Seq, DatabaseError> {
    let mut head = tx.prepare_cached("SELECT seq FROM heads WHERE lane = ?")?;
    Ok(head.query_row([lane], |row| sequence(row, 0))?)
}

/// Sets the last sequence number of a lane or checkpoint.
pub(crate) fn set_head(tx: &Transaction<'_>, lane: &str, seq: Seq) -> Result<(), DatabaseError> {
    tx.prepare_cached("UPDATE heads SET seq = ? WHERE lane = ?")?.execute(params![number(seq), lane])?;
    Ok(())
}

/// Returns the reader level of the log. Kept beside the heads, where releases without levels ignore it; absent at the first level.
pub(crate) fn level(tx: &Connection) -> Result<Level, DatabaseError> {
    let mut level = tx.prepare_cached("SELECT seq FROM heads WHERE lane = 'LEVEL'")?;
    let level: Option<u32> = level.query_row([], |row| row.get(0)).optional()?;
    Ok(level.map_or(Level::FIRST, Level))
}

fn set_level(tx: &Transaction<'_>, Level(level): Level) -> Result<(), DatabaseError> {
    tx.execute("INSERT OR REPLACE INTO heads (lane, seq) VALUES ('LEVEL', ?)", [level])?;
    Ok(())
}

/// Writes a head unchanged, which fails if the database is not writable.
pub(crate) fn touch(tx: &Transaction<'_>) -> Result<(), DatabaseError> {
    tx.execute("UPDATE heads SET seq = seq WHERE lane = 'EVENTS'", [])?;
    Ok(())
}

/// A row of the event log, not parsed yet. Parsing is slow compared to reading, so it happens after the connection is released.
pub(crate) struct EventRow {
    seq: Seq,
    id: String,
    actor: String,
    when: String,
    event_type: String,
    data: String,
}

/// Reads at most `most` events after `after`.
pub(crate) fn read(tx: &Transaction<'_>, after: Seq, most: usize) -> Result<Vec<EventRow>, DatabaseError> {
    select(tx, "seq > ?", after, most)
}

/// Reads the identity events after `after`.
pub(crate) fn read_identity(tx: &Transaction<'_>, after: Seq) -> Result<Vec<EventRow>, DatabaseError> {
    select(tx, "seq > ? AND identity", after, usize::MAX)
}

fn select(tx: &Transaction<'_>, filter: &str, after: Seq, most: usize) -> Result<Vec<EventRow>, DatabaseError> {
    let sql = format!("SELECT {COLUMNS} FROM log WHERE {filter} ORDER BY seq LIMIT ?");
    let mut statement = tx.prepare_cached(&sql)?;
    let rows = statement.query_map(params![number(after), i64::try_from(most).unwrap_or(i64::MAX)], |row| {
        Ok(EventRow {
            seq: sequence(row, 0)?,
            id: row.get(1)?,
            actor: row.get(2)?,
            when: row.get(3)?,
            event_type: row.get(4)?,
            data: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Parses rows into events.
pub(crate) fn parse(rows: Vec<EventRow>) -> Result<Vec<RecordedEvent>, DatabaseError> {
    rows.into_iter().map(EventRow::parse).collect()
}

impl EventRow {
    fn parse(self) -> Result<RecordedEvent, DatabaseError> {
        let unreadable =
            |reason: String| DatabaseError::UnreadableEvent(format!("failed to parse event {}: {reason}", self.seq));
        Ok(RecordedEvent {
            lane: Lane::IDENTITY,
            seq: self.seq,
            id: self.id.parse().map_err(|e: sparks_domain::InvalidId| unreadable(e.to_string()))?,
            when: self.when.parse::<Timestamp>().map_err(|e| unreadable(e.to_string()))?,
            event: Event::parse(&self.event_type, &self.data).map_err(|e| unreadable(e.to_string()))?,
            actor: self.actor,
        })
    }
}

/// Returns the state of a photo.
pub(crate) fn state(tx: &Transaction<'_>, image: &ImageId) -> Result<Option<PhotoState>, DatabaseError> {
    let mut state = tx.prepare_cached("SELECT state FROM states WHERE subject = ?")?;
    let text: Option<String> = state.query_row([subject(image)], |row| row.get(0)).optional()?;
    let parse = |text: String| serde_json::from_str(&text);
    text.map(parse)
        .transpose()
        .map_err(|e| DatabaseError::Unreadable(format!("failed to parse the state of {image}: {e}")))
}

/// Stores the state of a photo after these events.
pub(crate) fn update_state(
    tx: &Transaction<'_>,
    image: &ImageId,
    before: Option<PhotoState>,
    recorded: &[RecordedEvent],
) -> Result<(), DatabaseError> {
    let after = recorded.iter().fold(before, |state, r| PhotoState::evolve(state, r.seq, &r.event));
    let Some(after) = after else { return Ok(()) };
    let text = serde_json::to_string(&after).map_err(|e| DatabaseError::Unreadable(e.to_string()))?;
    tx.prepare_cached("INSERT OR REPLACE INTO states (subject, state) VALUES (?, ?)")?
        .execute(params![subject(image), text])?;
    Ok(())
}

fn subject(image: &ImageId) -> String {
    format!("IMG#{image}")
}

/// Reads a sequence number from a column.
pub(crate) fn sequence(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    Ok(Seq(row.get::<_, i64>(column)?.cast_unsigned()))
}

/// Converts a sequence number to the integer type of SQLite.
pub(crate) fn number(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}
