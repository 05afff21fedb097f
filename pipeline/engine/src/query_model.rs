//! The queries of the platform's API, by natural keys. Callers never see PK or SK.

use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use sparks_domain::{Email, ImageId, Item, Key, PersonId};

use crate::{Filter, Page, Query, Store, StoreError};

/// Queries of the platform's table.
pub struct QueryModel {
    store: Arc<dyn Store>,
}

/// The requested page of a list.
#[derive(Debug, Clone)]
pub struct Paging {
    /// The maximum number of items.
    pub limit: usize,
    /// The last key of the previous page.
    after: Option<Key>,
}

/// A page token that was not returned by a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a lastEvaluatedKey; pass one exactly as a previous answer returned it")]
pub struct InvalidPageToken(String);

impl Paging {
    /// Creates a request for the page after the one that returned this token, or for the first page.
    pub fn new(limit: usize, token: Option<&str>) -> Result<Self, InvalidPageToken> {
        let key = |token: &str| {
            let json = percent_decode_str(token).decode_utf8().ok()?;
            serde_json::from_str::<Key>(&json).ok()
        };
        let after = token.map(|token| key(token).ok_or_else(|| InvalidPageToken(token.to_owned()))).transpose()?;
        Ok(Self { limit, after })
    }
}

impl QueryModel {
    /// Creates a query model over this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Lists all persons.
    pub async fn persons(&self, paging: &Paging) -> Result<Value, StoreError> {
        self.list("persons", Filter::EntityType("PERSON".into()), false, paging, person).await
    }

    /// Returns one person.
    pub async fn person(&self, id: PersonId) -> Result<Option<Value>, StoreError> {
        Ok(self.store.get(&Key::person(id)).await?.map(person))
    }

    /// Lists photos, newest first; only those of one uploader, if given.
    pub async fn photos(&self, by: Option<&Email>, paging: &Paging) -> Result<Value, StoreError> {
        let filter = match by {
            Some(email) => Filter::UploadedBy(email.to_string()),
            None => Filter::EntityType("IMAGE".into()),
        };
        self.list("images", filter, true, paging, attributes).await
    }

    /// Returns one photo.
    pub async fn photo(&self, id: &ImageId) -> Result<Option<Value>, StoreError> {
        let filter = Filter::Partition { pk: id.to_string(), sk_prefix: "UPLOADED_BY#".into() };
        let page = self.store.query(&Query { filter, after: None, limit: 1, backwards: false }).await?;
        Ok(page.items.into_iter().next().map(attributes))
    }

    /// Lists the photos that are tagged with a person, newest first.
    pub async fn photos_of(&self, person: PersonId, paging: &Paging) -> Result<Value, StoreError> {
        let filter = Filter::EntityType(format!("TAGGING#{person}"));
        self.list("images", filter, true, paging, |item| {
            let image = item.key.pk.clone();
            with_attribute(attributes(item), "imageId", image)
        })
        .await
    }

    /// Lists all users.
    pub async fn users(&self, paging: &Paging) -> Result<Value, StoreError> {
        self.list("users", Filter::EntityType("USER".into()), false, paging, attributes).await
    }

    /// Returns one user.
    pub async fn user(&self, email: &Email) -> Result<Option<Value>, StoreError> {
        Ok(self.store.get(&Key::user(email)).await?.map(attributes))
    }

    /// Returns the remaining upload limit of a user.
    pub async fn limit(&self, email: &Email) -> Result<Option<Value>, StoreError> {
        let row = self.store.get(&Key::limit(email)).await?;
        Ok(row.map(|item| with_attribute(attributes(item), "email", email.to_string())))
    }

    async fn list(
        &self,
        name: &str,
        filter: Filter,
        backwards: bool,
        paging: &Paging,
        to_json: impl Fn(Item) -> Value,
    ) -> Result<Value, StoreError> {
        let query = Query { filter, after: paging.after.clone(), limit: paging.limit, backwards };
        let Page { items, last } = self.store.query(&query).await?;
        let token = last.map(|key| page_token(&key, &query.filter));
        let items: Vec<Value> = items.into_iter().map(to_json).collect();
        Ok(json!({ name: items, "lastEvaluatedKey": token }))
    }
}

/// Returns the key as DynamoDB returns it, with the attribute of the index, URL-encoded. Opaque to clients.
fn page_token(key: &Key, filter: &Filter) -> String {
    let key = match filter {
        Filter::Partition { .. } => json!({ "PK": key.pk, "SK": key.sk }),
        Filter::EntityType(value) => json!({ "PK": key.pk, "SK": key.sk, "entityType": value }),
        Filter::UploadedBy(value) => json!({ "PK": key.pk, "SK": key.sk, "uploadedBy": value }),
    };
    utf8_percent_encode(&key.to_string(), NON_ALPHANUMERIC).to_string()
}

fn person(item: Item) -> Value {
    let id = item.key.sk.clone();
    with_attribute(attributes(item), "personId", id)
}

/// Returns the row as clients see it: without the attribute that serves only the index.
fn attributes(item: Item) -> Value {
    let mut attributes = item.attributes;
    attributes.remove("entityType");
    Value::Object(attributes)
}

fn with_attribute(mut row: Value, name: &str, value: String) -> Value {
    row[name] = Value::String(value);
    row
}
