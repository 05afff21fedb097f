//! The users that a person is linked to.

use std::collections::BTreeSet;

use sparks_domain::{Email, Item, Key, PersonId};

use crate::{Filter, Query, Store, StoreError};

const PAGE: usize = 256;

/// Returns the users whose row names this person. The index may lag behind the table, so each row it returns is read again.
pub(crate) async fn users_of_person(store: &dyn Store, person: PersonId) -> Result<Vec<Email>, StoreError> {
    let mut query = Query { filter: Filter::EntityType("USER".into()), after: None, limit: PAGE, backwards: false };
    let mut users = Vec::new();
    let person = person.to_string();
    let names_person = |row: &Item| row.text("personId") == Some(&person);
    loop {
        let page = store.query(&query).await?;
        let indexed: Vec<Key> = page.items.into_iter().filter(names_person).map(|row| row.key).collect();
        let rows = store.batch_get(&indexed).await?;
        let confirmed: BTreeSet<Key> = rows.into_iter().filter(names_person).map(|row| row.key).collect();
        users.extend(
            indexed.iter().filter(|key| confirmed.contains(key)).filter_map(|key| key.pk.parse::<Email>().ok()),
        );
        match page.last {
            Some(last) => query.after = Some(last),
            None => return Ok(users),
        }
    }
}
