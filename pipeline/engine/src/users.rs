//! Users and the persons they are.

use std::collections::BTreeSet;

use sparks_domain::{Email, Item, Key, PersonId};

use crate::{Filter, Query, Store, StoreError};

const PAGE: usize = 256;

/// The users whose row says that they are this person. The index may still show what rows said before, so those that it shows
/// are read again.
pub(crate) async fn users_who_are(store: &dyn Store, person: PersonId) -> Result<Vec<Email>, StoreError> {
    let mut query = Query { filter: Filter::EntityType("USER".into()), after: None, limit: PAGE, backwards: false };
    let mut users = Vec::new();
    let person = person.to_string();
    let is_theirs = |row: &Item| row.text("personId") == Some(&person);
    loop {
        let page = store.query(&query).await?;
        let shown: Vec<Key> = page.items.into_iter().filter(is_theirs).map(|row| row.key).collect();
        let rows = store.batch_get(&shown).await?;
        let there: BTreeSet<Key> = rows.into_iter().filter(is_theirs).map(|row| row.key).collect();
        users.extend(shown.iter().filter(|key| there.contains(key)).filter_map(|key| key.pk.parse::<Email>().ok()));
        match page.last {
            Some(last) => query.after = Some(last),
            None => return Ok(users),
        }
    }
}
