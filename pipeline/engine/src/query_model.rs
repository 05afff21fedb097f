//! What the platform's API answers, asked by natural keys. Nobody above this sees PK or SK.

use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use sparks_domain::{Email, ImageId, Item, Key, PersonId};

use crate::{Filter, Page, Query, Store, StoreError};

/// Questions about the table.
pub struct QueryModel {
    store: Arc<dyn Store>,
}

/// Which part of a long answer.
#[derive(Debug, Clone)]
pub struct Paging {
    /// How many at most.
    pub limit: usize,
    /// The last key of the part before.
    after: Option<Key>,
}

/// A token that no answer ever gave.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a lastEvaluatedKey: pass one exactly as an answer gave it")]
pub struct BadToken(String);

impl Paging {
    /// The part after the one that ended with this token, or the first.
    pub fn new(limit: usize, token: Option<&str>) -> Result<Self, BadToken> {
        let key = |token: &str| {
            let json = percent_decode_str(token).decode_utf8().ok()?;
            serde_json::from_str::<Key>(&json).ok()
        };
        let after = token.map(|token| key(token).ok_or_else(|| BadToken(token.to_owned()))).transpose()?;
        Ok(Self { limit, after })
    }
}

impl QueryModel {
    /// Asks this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// All persons.
    pub async fn persons(&self, paging: &Paging) -> Result<Value, StoreError> {
        self.list("persons", Filter::EntityType("PERSON".into()), false, paging, person).await
    }

    /// One person.
    pub async fn person(&self, id: PersonId) -> Result<Option<Value>, StoreError> {
        Ok(self.store.get(&Key::person(id)).await?.map(person))
    }

    /// The feed, newest first; of one uploader, if given.
    pub async fn photos(&self, by: Option<&Email>, paging: &Paging) -> Result<Value, StoreError> {
        let filter = match by {
            Some(email) => Filter::UploadedBy(email.to_string()),
            None => Filter::EntityType("IMAGE".into()),
        };
        self.list("images", filter, true, paging, plain).await
    }

    /// One photo.
    pub async fn photo(&self, id: &ImageId) -> Result<Option<Value>, StoreError> {
        let filter = Filter::Partition { pk: id.to_string(), sk_prefix: "UPLOADED_BY#".into() };
        let page = self.store.query(&Query { filter, after: None, limit: 1, backwards: false }).await?;
        Ok(page.items.into_iter().next().map(plain))
    }

    /// The photos a person is in, newest first.
    pub async fn photos_of(&self, person: PersonId, paging: &Paging) -> Result<Value, StoreError> {
        let filter = Filter::EntityType(format!("TAGGING#{person}"));
        self.list("images", filter, true, paging, |item| {
            let image = item.key.pk.clone();
            with(plain(item), "imageId", image)
        })
        .await
    }

    /// All users.
    pub async fn users(&self, paging: &Paging) -> Result<Value, StoreError> {
        self.list("users", Filter::EntityType("USER".into()), false, paging, plain).await
    }

    /// One user.
    pub async fn user(&self, email: &Email) -> Result<Option<Value>, StoreError> {
        Ok(self.store.get(&Key::user(email)).await?.map(plain))
    }

    /// How many more photos a user may upload.
    pub async fn limit(&self, email: &Email) -> Result<Option<Value>, StoreError> {
        Ok(self.store.get(&Key::limit(email)).await?.map(|item| with(plain(item), "email", email.to_string())))
    }

    async fn list(
        &self,
        name: &str,
        filter: Filter,
        backwards: bool,
        paging: &Paging,
        show: impl Fn(Item) -> Value,
    ) -> Result<Value, StoreError> {
        let query = Query { filter, after: paging.after.clone(), limit: paging.limit, backwards };
        let Page { items, last } = self.store.query(&query).await?;
        let token = last.map(|key| token(&key, &query.filter));
        let items: Vec<Value> = items.into_iter().map(show).collect();
        Ok(json!({ name: items, "lastEvaluatedKey": token }))
    }
}

/// A key as DynamoDB gives it, with that of the index, URL-encoded: opaque to the client.
fn token(key: &Key, filter: &Filter) -> String {
    let key = match filter {
        Filter::Partition { .. } => json!({ "PK": key.pk, "SK": key.sk }),
        Filter::EntityType(value) => json!({ "PK": key.pk, "SK": key.sk, "entityType": value }),
        Filter::UploadedBy(value) => json!({ "PK": key.pk, "SK": key.sk, "uploadedBy": value }),
    };
    utf8_percent_encode(&key.to_string(), NON_ALPHANUMERIC).to_string()
}

fn person(item: Item) -> Value {
    let id = item.key.sk.clone();
    with(plain(item), "personId", id)
}

/// A row as clients see it: without what only the table needs.
fn plain(item: Item) -> Value {
    let mut attributes = item.attributes;
    attributes.remove("entityType");
    Value::Object(attributes)
}

fn with(mut row: Value, name: &str, value: String) -> Value {
    row[name] = Value::String(value);
    row
}
