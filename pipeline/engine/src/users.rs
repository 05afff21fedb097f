//! Users and the persons they are.

use sparks_domain::{Email, PersonId};

use crate::{Filter, Query, Store, StoreError};

const PAGE: usize = 256;

/// The users whose row says that they are this person.
pub(crate) async fn users_who_are(store: &dyn Store, person: PersonId) -> Result<Vec<Email>, StoreError> {
    let mut query = Query { filter: Filter::EntityType("USER".into()), after: None, limit: PAGE, backwards: false };
    let mut users = Vec::new();
    loop {
        let page = store.query(&query).await?;
        let theirs = page.items.iter().filter(|item| item.text("personId") == Some(&person.to_string()));
        users.extend(theirs.filter_map(|item| item.key.pk.parse::<Email>().ok()));
        match page.last {
            Some(last) => query.after = Some(last),
            None => return Ok(users),
        }
    }
}
