//! The log, its heads and its guards in SQLite.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use sparks_domain::{Event, ImageId, Lane, PhotoState, Recorded, Seq, Timestamp};
use sparks_engine::Commit;

use crate::database::DatabaseError;

const COLUMNS: &str = "seq, event_id, actor, when_occurred, event_type, event_data";

/// Appends the events in order and moves the heads.
pub(crate) fn append(tx: &Transaction<'_>, commit: &Commit) -> Result<Vec<Recorded>, DatabaseError> {
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
        let (lane, actor) = (Lane::IDENTITY, commit.actor.clone());
        recorded.push(Recorded { lane, seq, id, actor, when, event: event.clone() });
    }
    move_head(tx, "EVENTS", seq)?;
    if let Some(seq) = identity {
        move_head(tx, "IDENTITY", seq)?;
    }
    Ok(recorded)
}

/// The last sequence of the lane.
pub(crate) fn head(tx: &Transaction<'_>, lane: &str) -> Result<Seq, DatabaseError> {
    let mut head = tx.prepare_cached("SELECT seq FROM heads WHERE lane = ?")?;
    Ok(head.query_row([lane], |row| sequence(row, 0))?)
}

/// This is the last sequence of the lane from now on.
pub(crate) fn move_head(tx: &Transaction<'_>, lane: &str, seq: Seq) -> Result<(), DatabaseError> {
    tx.prepare_cached("UPDATE heads SET seq = ? WHERE lane = ?")?.execute(params![number(seq), lane])?;
    Ok(())
}

/// Writes what is there already: fails where nothing can be written.
pub(crate) fn touch(tx: &Transaction<'_>) -> Result<(), DatabaseError> {
    tx.execute("UPDATE heads SET seq = seq WHERE lane = 'EVENTS'", [])?;
    Ok(())
}

/// An event as its row holds it. Reading is quick and parsing is not, so it is done where nobody waits for the connection.
pub(crate) struct Line {
    seq: Seq,
    id: String,
    actor: String,
    when: String,
    event_type: String,
    data: String,
}

/// At most `most` events after `after`.
pub(crate) fn read(tx: &Transaction<'_>, after: Seq, most: usize) -> Result<Vec<Line>, DatabaseError> {
    select(tx, "seq > ?", after, most)
}

/// The identity events after `after`.
pub(crate) fn read_identity(tx: &Transaction<'_>, after: Seq) -> Result<Vec<Line>, DatabaseError> {
    select(tx, "seq > ? AND identity", after, usize::MAX)
}

fn select(tx: &Transaction<'_>, filter: &str, after: Seq, most: usize) -> Result<Vec<Line>, DatabaseError> {
    let sql = format!("SELECT {COLUMNS} FROM log WHERE {filter} ORDER BY seq LIMIT ?");
    let mut statement = tx.prepare_cached(&sql)?;
    let rows = statement.query_map(params![number(after), i64::try_from(most).unwrap_or(i64::MAX)], |row| {
        Ok(Line {
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

/// The events that the lines hold.
pub(crate) fn parse(lines: Vec<Line>) -> Result<Vec<Recorded>, DatabaseError> {
    lines.into_iter().map(Line::parse).collect()
}

impl Line {
    fn parse(self) -> Result<Recorded, DatabaseError> {
        let unreadable = |reason: String| DatabaseError::Unreadable(format!("event {}: {reason}", self.seq));
        Ok(Recorded {
            lane: Lane::IDENTITY,
            seq: self.seq,
            id: self.id.parse().map_err(|e: sparks_domain::InvalidId| unreadable(e.to_string()))?,
            when: self.when.parse::<Timestamp>().map_err(|e| unreadable(e.to_string()))?,
            event: Event::parse(&self.event_type, &self.data).map_err(|e| unreadable(e.to_string()))?,
            actor: self.actor,
        })
    }
}

/// What the log knows of a photo.
pub(crate) fn state(tx: &Transaction<'_>, image: &ImageId) -> Result<Option<PhotoState>, DatabaseError> {
    let mut state = tx.prepare_cached("SELECT state FROM states WHERE subject = ?")?;
    let text: Option<String> = state.query_row([subject(image)], |row| row.get(0)).optional()?;
    let parse = |text: String| serde_json::from_str(&text);
    text.map(parse).transpose().map_err(|e| DatabaseError::Unreadable(format!("the state of {image}: {e}")))
}

/// Keeps what the log knows of a photo after these events.
pub(crate) fn keep_state(
    tx: &Transaction<'_>,
    image: &ImageId,
    before: Option<PhotoState>,
    recorded: &[Recorded],
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

/// The sequence in a column.
pub(crate) fn sequence(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    Ok(Seq(row.get::<_, i64>(column)?.cast_unsigned()))
}

/// A sequence as SQLite keeps it.
pub(crate) fn number(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}
