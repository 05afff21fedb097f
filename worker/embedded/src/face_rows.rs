//! Signatures of faces and the persons they are identified as, in SQLite.

use std::collections::BTreeSet;

use rusqlite::{Row, Transaction, params};
use sparks_domain::{FaceId, PersonId, Seq, Signature};
use sparks_engine::{DecidedFace, Erasure, StoredFace};

use crate::{
    database::DatabaseError,
    event_log::{number, sequence},
};

/// Inserts the faces that the event at `seq` decided.
pub(crate) fn insert(tx: &Transaction<'_>, faces: &[StoredFace], seq: Seq) -> Result<(), DatabaseError> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO faces (image_id, n, model, signature, person, template, seq) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    for StoredFace { face, model, signature, person, template } in faces {
        let person = person.map(PersonId::number);
        insert.execute(params![
            face.image.as_str(),
            face.n,
            model,
            signature.to_bytes(),
            person,
            template,
            number(seq)
        ])?;
    }
    Ok(())
}

/// Sets the persons of unidentified faces.
pub(crate) fn identify(tx: &Transaction<'_>, faces: &[(FaceId, PersonId)]) -> Result<(), DatabaseError> {
    let mut update = tx.prepare_cached("UPDATE faces SET person = ? WHERE image_id = ? AND n = ?")?;
    for (face, person) in faces {
        update.execute(params![person.number(), face.image.as_str(), face.n])?;
    }
    Ok(())
}

/// Makes these faces templates as of the event at `seq`, so that readers of templates that are at an earlier position find them.
/// `faces.seq` stays the deciding event, because co-occurrence is computed from it.
pub(crate) fn promote(tx: &Transaction<'_>, faces: &[FaceId], seq: Seq) -> Result<(), DatabaseError> {
    let mut update = tx.prepare_cached("UPDATE faces SET template = 1, promoted = ? WHERE image_id = ? AND n = ?")?;
    for face in faces {
        update.execute(params![number(seq), face.image.as_str(), face.n])?;
    }
    Ok(())
}

/// Deletes signatures.
pub(crate) fn delete(tx: &Transaction<'_>, erasure: &Erasure) -> Result<(), DatabaseError> {
    for image in &erasure.photos {
        tx.prepare_cached("DELETE FROM faces WHERE image_id = ?")?.execute([image.as_str()])?;
    }
    for face in &erasure.faces {
        let sql = "DELETE FROM faces WHERE image_id = ? AND n = ?";
        tx.prepare_cached(sql)?.execute(params![face.image.as_str(), face.n])?;
    }
    Ok(())
}

/// Returns all faces that were decided to be one of these persons, newest first for each.
pub(crate) fn of_persons(tx: &Transaction<'_>, persons: &[PersonId]) -> Result<Vec<DecidedFace>, DatabaseError> {
    let mut faces = Vec::new();
    for person in persons {
        faces.extend(select(tx, "person = ?1 ORDER BY seq DESC, n", params![person.number()])?);
    }
    Ok(faces)
}

/// Returns those of the faces that are stored.
pub(crate) fn get(tx: &Transaction<'_>, faces: Vec<FaceId>) -> Result<Vec<StoredFace>, DatabaseError> {
    let mut found = Vec::with_capacity(faces.len());
    for face in faces {
        let one = select(tx, "image_id = ?1 AND n = ?2", params![face.image.as_str(), face.n])?;
        found.extend(one.into_iter().map(|decided| decided.kept));
    }
    Ok(found)
}

/// Returns about `most` templates of the events after `after`, never a part of an event.
pub(crate) fn templates(tx: &Transaction<'_>, after: Seq, most: usize) -> Result<Vec<DecidedFace>, DatabaseError> {
    let sql = "SELECT max(since) FROM (SELECT coalesce(promoted, seq) AS since FROM faces
               WHERE template AND coalesce(promoted, seq) > ? ORDER BY coalesce(promoted, seq) LIMIT ?)";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let last: Option<i64> = tx.prepare_cached(sql)?.query_row(params![number(after), most], |row| row.get(0))?;
    let Some(last) = last else { return Ok(Vec::new()) };
    let filter = "template AND coalesce(promoted, seq) > ?1 AND coalesce(promoted, seq) <= ?2
                  ORDER BY coalesce(promoted, seq), image_id, n";
    select_since(tx, "coalesce(promoted, seq)", filter, params![number(after), last])
}

/// Returns unidentified faces, ordered by image and number.
pub(crate) fn unidentified(
    tx: &Transaction<'_>,
    after: Option<&FaceId>,
    most: usize,
) -> Result<Vec<DecidedFace>, DatabaseError> {
    let (image, n) = after.map_or(("", 0), |face| (face.image.as_str(), face.n));
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let filter = "person IS NULL AND (image_id, n) > (?1, ?2) ORDER BY image_id, n LIMIT ?3";
    select(tx, filter, params![image, n, most])
}

/// Returns the pairs of persons that appear in one photo; with `of`, only the pairs that contain one of these.
pub(crate) fn co_occurrences(
    tx: &Transaction<'_>,
    of: Option<&BTreeSet<PersonId>>,
) -> Result<BTreeSet<(PersonId, PersonId)>, DatabaseError> {
    const PAIRS: &str = "SELECT DISTINCT min(a.person, b.person), max(a.person, b.person)
                         FROM faces a JOIN faces b USING (image_id, seq)";
    let Some(of) = of else { return pairs(tx, &format!("{PAIRS} WHERE a.person < b.person"), []) };
    let mut found = BTreeSet::new();
    for person in of {
        let sql = format!("{PAIRS} WHERE a.person = ? AND a.person != b.person");
        found.extend(pairs(tx, &sql, [person.number()])?);
    }
    Ok(found)
}

fn pairs(
    tx: &Transaction<'_>,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<BTreeSet<(PersonId, PersonId)>, DatabaseError> {
    let mut statement = tx.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut pairs = BTreeSet::new();
    while let Some(row) = rows.next()? {
        pairs.extend(PersonId::new(row.get(0)?).zip(PersonId::new(row.get(1)?)));
    }
    Ok(pairs)
}

/// Selects faces with the event that decided each.
fn select(
    tx: &Transaction<'_>,
    filter: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<DecidedFace>, DatabaseError> {
    select_since(tx, "seq", filter, values)
}

/// Selects faces with a sequence number computed by the SQL expression `event`.
fn select_since(
    tx: &Transaction<'_>,
    event: &str,
    filter: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<DecidedFace>, DatabaseError> {
    let sql = format!("SELECT image_id, n, model, signature, person, template, {event} FROM faces WHERE {filter}");
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query(values)?;
    let mut faces = Vec::new();
    while let Some(row) = rows.next()? {
        faces.extend(to_face(row)?);
    }
    Ok(faces)
}

/// Converts a row; `None` if its signature has been erased.
fn to_face(row: &Row<'_>) -> Result<Option<DecidedFace>, DatabaseError> {
    let signature = Signature::from_bytes(row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?);
    let Some(signature) = signature else { return Ok(None) };
    let image = row.get::<_, String>(0)?;
    let image =
        image.parse().map_err(|e| DatabaseError::Unreadable(format!("failed to parse a face of {image:?}: {e}")))?;
    let kept = StoredFace {
        face: FaceId { image, n: row.get(1)? },
        model: row.get(2)?,
        signature,
        person: row.get::<_, Option<u32>>(4)?.and_then(PersonId::new),
        template: row.get(5)?,
    };
    Ok(Some(DecidedFace { seq: sequence(row, 6)?, kept }))
}
