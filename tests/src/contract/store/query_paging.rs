//! Paged queries: every row once and in order.

use std::sync::Arc;

use serde_json::{Value, json};
use sparks_domain::{Item, Key, Mutation, Presence};
use sparks_engine::{Commit, Filter, Query, Store};

use crate::{
    contract::{CheckResult, ensure, ensure_eq},
    samples::{attributes, empty_commit, image, set},
};

async fn fill(store: &dyn Store, rows: Vec<(Key, Value)>) -> CheckResult {
    for rows in rows.chunks(50) {
        let mutations = rows.iter().map(|(key, row)| set(key, Presence::Any, row.clone())).collect();
        store.commit(&Commit { mutations, ..empty_commit() }).await?;
    }
    Ok(())
}

/// Reads all pages of a query.
async fn query_all(store: &dyn Store, filter: &Filter, limit: usize, backwards: bool) -> CheckResult<Vec<Item>> {
    let mut found = Vec::new();
    let mut after = None;
    for _ in 0..1000 {
        let query = Query { filter: filter.clone(), after, limit, backwards };
        let page = store.query(&query).await?;
        ensure!(page.items.len() <= limit, "a page of {limit} holds {} rows", page.items.len());
        found.extend(page.items);
        after = page.last;
        if after.is_none() {
            return Ok(found);
        }
    }
    Err(format!("{filter:?} in pages of {limit} does not end").into())
}

/// Fails unless a query returns these sorted rows, in every page size and in both directions.
async fn ensure_rows(store: &dyn Store, filter: Filter, rows: &[(Key, Value)]) -> CheckResult {
    let mut expected: Vec<Item> =
        rows.iter().map(|(key, row)| Item { key: key.clone(), attributes: attributes(row.clone()) }).collect();
    for backwards in [false, true] {
        for limit in [1, 2, 5, expected.len().max(1), expected.len() + 1, 1000] {
            let found = query_all(store, &filter, limit, backwards).await?;
            let keys = |items: &[Item]| items.iter().map(|item| item.key.to_string()).collect::<Vec<_>>();
            let what = format!("{filter:?} in pages of {limit}, backwards: {backwards}");
            ensure_eq!(keys(&found), keys(&expected), "{what}");
            ensure_eq!(found, expected, "{what}");
        }
        expected.reverse();
    }
    Ok(())
}

pub(super) async fn a_partition_is_paged_in_order(store: Arc<dyn Store>) -> CheckResult {
    // Byte order: capitals sort first, and a key sorts before its extensions.
    let sorted = ["A", "A#1", "A#10", "A#2", "B", "Z", "_", "a", "a b", "b", "ä"];
    let rows: Vec<_> = sorted.iter().map(|sk| (Key::new("p", *sk), json!({ "sk": sk }))).collect();
    let others = ["", "P", "p#", "pp", "o"].map(|pk| (Key::new(format!("{pk}x"), "A"), json!({})));
    fill(store.as_ref(), rows.iter().rev().cloned().chain(others).collect()).await?;
    ensure_rows(store.as_ref(), Filter::Partition { pk: "p".into(), sk_prefix: String::new() }, &rows).await?;
    ensure_rows(store.as_ref(), Filter::Partition { pk: "missing".into(), sk_prefix: String::new() }, &[]).await
}

pub(super) async fn a_partition_query_filters_by_sort_key_prefix(store: Arc<dyn Store>) -> CheckResult {
    let key = |sk: &str| (Key::new("p", sk), json!({ "sk": sk }));
    let wanted: Vec<_> = (10..31).map(|n| key(&format!("UPLOADED_BY#{n}"))).collect();
    // Keys that a pattern match (`_` in LIKE) or a case-insensitive comparison would include.
    let others =
        ["UPLOADED_BY", "UPLOADEDxBY#15", "uploaded_by#15", "UPLOADED_BZ#1", "PERSON#person1", "xUPLOADED_BY#1"];
    let elsewhere = (Key::new("q", "UPLOADED_BY#15"), json!({}));
    let rows = others.map(key).into_iter().chain([elsewhere]).chain(wanted.clone()).collect();
    fill(store.as_ref(), rows).await?;
    let filter = |prefix: &str| Filter::Partition { pk: "p".into(), sk_prefix: prefix.into() };
    ensure_rows(store.as_ref(), filter("UPLOADED_BY#"), &wanted).await?;
    ensure_rows(store.as_ref(), filter("UPLOADED_BY#2"), &wanted[10..20]).await?;
    ensure_rows(store.as_ref(), filter("%"), &[]).await
}

pub(super) async fn entity_types_are_paged_in_order(store: Arc<dyn Store>) -> CheckResult {
    let tagging = |n: u64, person: &str| {
        let row = json!({ "entityType": format!("TAGGING#{person}"), "n": n });
        (Key::new(image(n).to_string(), format!("PERSON#{person}")), row)
    };
    let wanted: Vec<_> = (0..23).map(|n| tagging(n, "person1")).collect();
    let others = (0..23).map(|n| tagging(n, "person10"));
    let untyped = (Key::new(image(3).to_string(), "NOTE"), json!({ "about": "TAGGING#person1" }));
    fill(store.as_ref(), others.chain([untyped]).chain(wanted.clone()).collect()).await?;
    ensure_rows(store.as_ref(), Filter::EntityType("TAGGING#person1".into()), &wanted).await?;
    ensure_rows(store.as_ref(), Filter::EntityType("TAGGING#person".into()), &[]).await
}

pub(super) async fn uploads_are_paged_in_order(store: Arc<dyn Store>) -> CheckResult {
    let upload = |n: u64| {
        let by = if n.is_multiple_of(3) { "a@example.org" } else { "b@example.org" };
        let row = json!({ "entityType": "IMAGE", "uploadedBy": by, "n": n });
        (Key::new(image(n).to_string(), format!("UPLOADED_BY#{by}")), row)
    };
    let all: Vec<_> = (0..40).map(upload).collect();
    fill(store.as_ref(), all.iter().rev().cloned().collect()).await?;
    let (a, b): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|(key, _)| key.sk.ends_with("#a@example.org"));
    ensure_rows(store.as_ref(), Filter::UploadedBy("a@example.org".into()), &a).await?;
    ensure_rows(store.as_ref(), Filter::UploadedBy("b@example.org".into()), &b).await?;
    ensure_rows(store.as_ref(), Filter::EntityType("IMAGE".into()), &all).await
}

pub(super) async fn indexes_follow_changed_rows(store: Arc<dyn Store>) -> CheckResult {
    let row = |n: u64, entity: &str| (Key::new(image(n).to_string(), "x"), json!({ "entityType": entity }));
    fill(store.as_ref(), (0..4).map(|n| row(n, "OLD")).collect()).await?;
    fill(store.as_ref(), vec![row(1, "NEW")]).await?;
    let deletion = Mutation::Delete { key: row(2, "OLD").0 };
    store.commit(&Commit { mutations: vec![deletion], ..empty_commit() }).await?;
    ensure_rows(store.as_ref(), Filter::EntityType("OLD".into()), &[row(0, "OLD"), row(3, "OLD")]).await?;
    ensure_rows(store.as_ref(), Filter::EntityType("NEW".into()), &[row(1, "NEW")]).await
}
