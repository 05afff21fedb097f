//! Rows of the platform's table in SQLite.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use sparks_domain::{Attributes, Item, Key, Mutation};
use sparks_engine::{Filter, Page, Query};

use crate::database::DatabaseError;

/// The row's attributes.
pub(crate) fn get(tx: &Transaction<'_>, key: &Key) -> Result<Option<Attributes>, DatabaseError> {
    let mut row = tx.prepare_cached("SELECT item FROM items WHERE PK = ? AND SK = ?")?;
    let text: Option<String> = row.query_row(params![key.pk, key.sk], |row| row.get(0)).optional()?;
    text.map(|text| parse(key, &text)).transpose()
}

/// Makes the row what the mutation makes of it. Its text is canonical: attributes by name, no blanks.
pub(crate) fn apply(tx: &Transaction<'_>, mutation: &Mutation, row: Option<Attributes>) -> Result<(), DatabaseError> {
    let key = mutation.key();
    match mutation.apply(row) {
        Some(attributes) => put(tx, key, &attributes),
        None => {
            tx.prepare_cached("DELETE FROM items WHERE PK = ? AND SK = ?")?.execute(params![key.pk, key.sk])?;
            Ok(())
        }
    }
}

/// Writes the row whole.
pub(crate) fn put(tx: &Transaction<'_>, key: &Key, attributes: &Attributes) -> Result<(), DatabaseError> {
    let text = serde_json::to_string(attributes).map_err(|e| DatabaseError::Unreadable(format!("{key}: {e}")))?;
    let upsert = "INSERT INTO items (PK, SK, item) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET item = excluded.item";
    tx.prepare_cached(upsert)?.execute(params![key.pk, key.sk, text])?;
    Ok(())
}

/// One page of an answer.
pub(crate) fn query(tx: &Transaction<'_>, query: &Query) -> Result<Page, DatabaseError> {
    let (index, equals, prefix) = match &query.filter {
        Filter::Partition { pk, sk_prefix } => ("PK", pk, sk_prefix.as_str()),
        Filter::EntityType(value) => ("entityType", value, ""),
        Filter::UploadedBy(value) => ("uploadedBy", value, ""),
    };
    let (beyond, order) = if query.backwards { ("<", "DESC") } else { (">", "ASC") };
    // Named only where there is one, so that SQLite seeks to it instead of reading up to it.
    let after = query.after.as_ref().map(|_| format!("AND (PK, SK) {beyond} (?4, ?5)")).unwrap_or_default();
    let sql = format!(
        "SELECT PK, SK, item FROM items WHERE {index} = ?1 AND substr(SK, 1, length(?2)) = ?2 {after}
         ORDER BY PK {order}, SK {order} LIMIT ?3"
    );
    let mut statement = tx.prepare_cached(&sql)?;
    // One row more than asked for tells whether there are more.
    let limit = i64::try_from(query.limit.saturating_add(1)).unwrap_or(i64::MAX);
    let mut rows = match &query.after {
        None => statement.query(params![equals, prefix, limit])?,
        Some(key) => statement.query(params![equals, prefix, limit, key.pk, key.sk])?,
    };
    let mut page = Page::default();
    while let Some(row) = rows.next()? {
        if page.items.len() == query.limit {
            page.last = page.items.last().map(|item: &Item| item.key.clone());
            break;
        }
        page.items.push(item(row)?);
    }
    Ok(page)
}

/// The row `SELECT PK, SK, item` found.
pub(crate) fn item(row: &Row<'_>) -> Result<Item, DatabaseError> {
    let key = Key::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?);
    let attributes = parse(&key, row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?)?;
    Ok(Item { key, attributes })
}

fn parse(key: &Key, text: &str) -> Result<Attributes, DatabaseError> {
    serde_json::from_str(text).map_err(|e| DatabaseError::Unreadable(format!("the row {key} is not JSON: {e}")))
}
