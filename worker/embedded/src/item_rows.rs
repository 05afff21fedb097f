//! Rows of the platform's table in SQLite.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use sparks_domain::{Attributes, Item, Key, Mutation};
use sparks_engine::{Filter, Page, Query};

use crate::database::DatabaseError;

/// Returns the attributes of a row.
pub(crate) fn get(tx: &Transaction<'_>, key: &Key) -> Result<Option<Attributes>, DatabaseError> {
    let mut row = tx.prepare_cached("SELECT item FROM items WHERE PK = ? AND SK = ?")?;
    let text: Option<String> = row.query_row(params![key.pk, key.sk], |row| row.get(0)).optional()?;
    text.map(|text| parse(key, &text)).transpose()
}

/// Applies a mutation to a row. The stored JSON is canonical: attributes sorted by name, no white space.
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

/// Replaces a row.
pub(crate) fn put(tx: &Transaction<'_>, key: &Key, attributes: &Attributes) -> Result<(), DatabaseError> {
    let text = serde_json::to_string(attributes)
        .map_err(|e| DatabaseError::Unreadable(format!("failed to serialize the row {key}: {e}")))?;
    let upsert = "INSERT INTO items (PK, SK, item) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET item = excluded.item";
    tx.prepare_cached(upsert)?.execute(params![key.pk, key.sk, text])?;
    Ok(())
}

/// Returns one page of a query.
pub(crate) fn query(tx: &Transaction<'_>, query: &Query) -> Result<Page, DatabaseError> {
    let (index, equals, prefix) = match &query.filter {
        Filter::Partition { pk, sk_prefix } => ("PK", pk, sk_prefix.as_str()),
        Filter::EntityType(value) => ("entityType", value, ""),
        Filter::UploadedBy(value) => ("uploadedBy", value, ""),
    };
    let (comparison, order) = if query.backwards { ("<", "DESC") } else { (">", "ASC") };
    // Part of the statement only if present, so that SQLite seeks in the index instead of filtering.
    let after = query.after.as_ref().map(|_| format!("AND (PK, SK) {comparison} (?4, ?5)")).unwrap_or_default();
    let sql = format!(
        "SELECT PK, SK, item FROM items WHERE {index} = ?1 AND substr(SK, 1, length(?2)) = ?2 {after}
         ORDER BY PK {order}, SK {order} LIMIT ?3"
    );
    let mut statement = tx.prepare_cached(&sql)?;
    // One more row than requested shows whether there is another page.
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

/// Converts a row of `SELECT PK, SK, item`.
pub(crate) fn item(row: &Row<'_>) -> Result<Item, DatabaseError> {
    let key = Key::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?);
    let attributes = parse(&key, row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?)?;
    Ok(Item { key, attributes })
}

fn parse(key: &Key, text: &str) -> Result<Attributes, DatabaseError> {
    serde_json::from_str(text)
        .map_err(|e| DatabaseError::Unreadable(format!("failed to parse the row {key} as JSON: {e}")))
}
