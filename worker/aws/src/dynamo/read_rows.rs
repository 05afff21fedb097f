//! Reads of rows: strongly consistent where a decision depends on them, and every page of a paged response.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::{
    operation::transact_get_items::TransactGetItemsError,
    types::{Get, KeysAndAttributes, TransactGetItem},
};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use sparks_domain::Key;
use sparks_engine::{DependencyError, Filter, Page, Query, StoreError};

use super::{
    DynamoStore,
    attribute_value::{Fields, item, key, key_fields, s},
    transact::with_reason,
};
use crate::{
    error::AwsError,
    retry::{backoff, log_retry, with_retry},
};

/// Items per `BatchGetItem` request, as DynamoDB limits them.
const BATCH: usize = 100;

/// Items per `TransactGetItems` request: they may have 4 MB in all.
const TRANSACTION_BATCH: usize = 10;

/// Concurrent requests of one read.
pub(super) const CONCURRENCY: usize = 8;

/// A query of one partition.
pub(super) struct PartitionQuery<'a> {
    pub table: &'a str,
    pub pk: &'a str,
    /// A comparison operator (or `begins_with`) and the value to compare the sort key with.
    pub sort_key: Option<(&'static str, String)>,
    /// The attributes to return; none for all.
    pub projection: Option<&'static str>,
    /// The most rows to return.
    pub limit: usize,
}

impl DynamoStore {
    /// Reads one row, strongly consistent.
    pub(super) async fn get_row(&self, table: &str, key: Fields) -> Result<Option<Fields>, StoreError> {
        let get = || self.client.get_item().table_name(table).set_key(Some(key.clone())).consistent_read(true).send();
        Ok(with_retry(get).await?.item)
    }

    /// Reads the rows of these keys that exist, strongly consistent.
    pub(super) async fn get_rows(&self, table: &str, keys: Vec<Fields>) -> Result<Vec<Fields>, StoreError> {
        let chunks: Vec<Vec<Fields>> = unique(keys).chunks(BATCH).map(<[Fields]>::to_vec).collect();
        let requests =
            chunks.into_iter().map(|keys| self.get_rows_of_tables(HashMap::from([(table.to_owned(), keys)])));
        let found: Vec<_> = stream::iter(requests).buffered(CONCURRENCY).try_collect().await?;
        Ok(found.into_iter().flat_map(|mut found| found.remove(table).unwrap_or_default()).collect())
    }

    /// Reads rows of several tables with one `BatchGetItem`, which is repeated for unprocessed keys: DynamoDB returns those
    /// that it throttles or that exceed 16 MB.
    pub(super) async fn get_rows_of_tables(
        &self,
        mut wanted: HashMap<String, Vec<Fields>>,
    ) -> Result<HashMap<String, Vec<Fields>>, StoreError> {
        let mut found: HashMap<String, Vec<Fields>> = HashMap::new();
        let mut backoff = backoff();
        loop {
            let mut requests = HashMap::new();
            for (table, keys) in wanted.iter().filter(|(_, keys)| !keys.is_empty()) {
                let request = KeysAndAttributes::builder().set_keys(Some(keys.clone())).consistent_read(true).build();
                let request = request.map_err(|error| StoreError::Unreadable(error.to_string()))?;
                requests.insert(table.clone(), request);
            }
            if requests.is_empty() {
                return Ok(found);
            }
            let get = || self.client.batch_get_item().set_request_items(Some(requests.clone())).send();
            let answer = with_retry(get).await?;
            for (table, rows) in answer.responses.unwrap_or_default() {
                found.entry(table).or_default().extend(rows);
            }
            let left = answer.unprocessed_keys.unwrap_or_default();
            wanted = left.into_iter().map(|(table, keys)| (table, keys.keys)).collect();
            if !wanted.is_empty() {
                let throttled = || {
                    let message = "DynamoDB BatchGetItem: unprocessed keys remain after all retries";
                    StoreError::Dependency(DependencyError::Throttled(message.to_owned()))
                };
                tokio::time::sleep(backoff.next().ok_or_else(throttled)?).await;
            }
        }
    }

    /// Reads the rows of these keys that exist with `TransactGetItems`, which sees each transaction completely or not at all.
    pub(super) async fn transact_get(&self, table: &str, keys: Vec<Fields>) -> Result<Vec<Fields>, StoreError> {
        let mut found = Vec::new();
        for keys in unique(keys).chunks(TRANSACTION_BATCH) {
            let get = |key: &Fields| Get::builder().table_name(table).set_key(Some(key.clone())).build();
            let gets = keys.iter().map(|key| Ok(TransactGetItem::builder().get(get(key)?).build()));
            let gets = gets.collect::<Result<Vec<_>, aws_sdk_dynamodb::error::BuildError>>();
            let gets = gets.map_err(|error| StoreError::Unreadable(error.to_string()))?;
            let mut backoff = backoff();
            let answer = loop {
                match self.client.transact_get_items().set_transact_items(Some(gets.clone())).send().await {
                    Ok(answer) => break answer,
                    Err(error) => {
                        let reasons = match error.as_service_error() {
                            Some(TransactGetItemsError::TransactionCanceledException(e)) => {
                                e.cancellation_reasons().to_vec()
                            }
                            _ => Vec::new(),
                        };
                        let error = with_reason(AwsError::from(error), &reasons);
                        let pause = backoff.next().filter(|_| error.is_throttled()).ok_or_else(|| error.clone())?;
                        log_retry(&error, pause);
                        tokio::time::sleep(pause).await;
                    }
                }
            };
            found.extend(answer.responses.unwrap_or_default().into_iter().filter_map(|row| row.item));
        }
        Ok(found)
    }

    /// Queries a partition, strongly consistent, all pages up to the limit.
    pub(super) async fn query_partition(&self, query: PartitionQuery<'_>) -> Result<Vec<Fields>, StoreError> {
        let PartitionQuery { table, pk, sort_key, projection, limit } = query;
        let (mut rows, mut start) = (Vec::new(), None);
        let condition = match &sort_key {
            None => "PK = :pk".to_owned(),
            Some(("begins_with", _)) => "PK = :pk AND begins_with(SK, :sk)".to_owned(),
            Some((comparison, _)) => format!("PK = :pk AND SK {comparison} :sk"),
        };
        let mut values = Fields::from([(":pk".to_owned(), s(pk))]);
        values.extend(sort_key.map(|(_, sk)| (":sk".to_owned(), s(sk))));
        loop {
            let room = i32::try_from(limit - rows.len()).unwrap_or(i32::MAX);
            let query = || {
                let query = self.client.query().table_name(table).consistent_read(true).limit(room);
                let query =
                    query.key_condition_expression(&condition).set_projection_expression(projection.map(str::to_owned));
                let query = query.set_expression_attribute_values(Some(values.clone()));
                query.set_exclusive_start_key(Clone::clone(&start)).send()
            };
            let answer = with_retry(query).await?;
            rows.extend(answer.items.unwrap_or_default());
            start = answer.last_evaluated_key;
            if start.is_none() || rows.len() >= limit {
                return Ok(rows);
            }
        }
    }

    /// Returns a page of rows of the table or of an index. Reads of a global index are eventually consistent.
    pub(super) async fn page(&self, query: &Query) -> Result<Page, StoreError> {
        let (index, name, value, prefix) = match &query.filter {
            Filter::Partition { pk, sk_prefix } => (None, "PK", pk, sk_prefix.as_str()),
            Filter::EntityType(value) => (Some("entityType-PK-index"), "entityType", value, ""),
            Filter::UploadedBy(value) => (Some("uploadedBy-PK-index"), "uploadedBy", value, ""),
        };
        let narrowed = if prefix.is_empty() { "" } else { " AND begins_with(SK, :sk)" };
        let condition = format!("#key = :key{narrowed}");
        let mut values = Fields::from([(":key".to_owned(), s(value.as_str()))]);
        values.extend((!prefix.is_empty()).then(|| (":sk".to_owned(), s(prefix))));
        let start = |after: &Key| {
            let mut start = key_fields(&after.pk, &after.sk);
            start.insert(name.to_owned(), s(if index.is_some() { value } else { &after.pk }));
            start
        };
        let (mut page, mut after) = (Page::default(), query.after.as_ref().map(start));
        // One row more than the limit tells whether there is another page.
        while page.items.len() <= query.limit {
            let room = i32::try_from(query.limit - page.items.len()).unwrap_or(i32::MAX - 1) + 1;
            let send = || {
                let send =
                    self.client.query().table_name(&self.tables.platform).set_index_name(index.map(str::to_owned));
                let send = send.consistent_read(index.is_none()).scan_index_forward(!query.backwards).limit(room);
                let send = send.key_condition_expression(&condition).expression_attribute_names("#key", name);
                let send = send.set_expression_attribute_values(Some(values.clone()));
                send.set_exclusive_start_key(after.clone()).send()
            };
            let answer = with_retry(send).await?;
            for row in answer.items.unwrap_or_default() {
                page.items.push(item(&row)?);
            }
            after = answer.last_evaluated_key;
            if after.is_none() {
                break;
            }
        }
        if page.items.len() > query.limit {
            page.items.truncate(query.limit);
            page.last = page.items.last().map(|item| item.key.clone());
        }
        Ok(page)
    }
}

/// Removes duplicate keys: DynamoDB rejects a request that names an item twice.
fn unique(keys: Vec<Fields>) -> Vec<Fields> {
    let mut seen = BTreeSet::new();
    let name = |fields: &Fields| key(fields).map_or_else(|_| String::new(), |key| format!("{key:?}"));
    keys.into_iter().filter(|fields| seen.insert(name(fields))).collect()
}
