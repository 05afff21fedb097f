//! Rows of the platform's table, which other programs write too.

use std::sync::Arc;

use serde_json::{Value, json};
use sparks_domain::{Item, Key, Mutation, Position, Presence};
use sparks_engine::{Commit, CommitError, Store};
use tokio::task::JoinSet;

use crate::{
    contract::{CheckResult, ensure, ensure_eq},
    samples::{attributes, empty_commit, image, processed, raise, set, uploader},
};

async fn write(store: &dyn Store, mutations: Vec<Mutation>) -> CheckResult {
    store.commit(&Commit { mutations, ..empty_commit() }).await?;
    Ok(())
}

async fn row(store: &dyn Store, key: &Key) -> CheckResult<Option<Value>> {
    Ok(store.get(key).await?.map(|item| Value::Object(item.attributes)))
}

pub(super) async fn set_keeps_attributes_of_other_writers(store: Arc<dyn Store>) -> CheckResult {
    let key = Key::image(&image(1), &uploader());
    let foreign = json!({ "entityType": "IMAGE", "tags": ["sea", "ünïcode"], "description": null, "persons": [] });
    write(store.as_ref(), vec![set(&key, Presence::Any, foreign)]).await?;
    let own = json!({ "persons": ["person1"], "images": { "large": "l", "medium": "m" } });
    write(store.as_ref(), vec![set(&key, Presence::Required, own)]).await?;
    let both = json!({
        "entityType": "IMAGE", "tags": ["sea", "ünïcode"], "description": null,
        "persons": ["person1"], "images": { "large": "l", "medium": "m" },
    });
    ensure_eq!(row(store.as_ref(), &key).await?, Some(both), "the row after a change of two attributes");

    let neighbour = Key::new(key.pk.clone(), "UPLOADED_BY#other@example.org");
    ensure_eq!(row(store.as_ref(), &neighbour).await?, None, "a row that was not created");
    Ok(())
}

pub(super) async fn values_of_every_type_are_returned_unchanged(store: Arc<dyn Store>) -> CheckResult {
    let key = Key::new("a", "b");
    let long: Value = serde_json::from_str("12345678901234567890.125")?;
    let values = json!({
        "text": "quotes \" and \\ and \u{1F600} and a line\nbreak", "empty": "", "yes": true, "nothing": null,
        "whole": -7, "long": long, "list": [1, "two", [3.5], {}], "map": { "a.b": { "#c": [] } },
    });
    write(store.as_ref(), vec![set(&key, Presence::Any, values.clone())]).await?;
    ensure_eq!(row(store.as_ref(), &key).await?, Some(values), "the row");
    Ok(())
}

pub(super) async fn at_least_raises_and_never_lowers(store: Arc<dyn Store>) -> CheckResult {
    let key = Key::counter();
    let steps = [
        (json!({ "limit": 9, "time": "2025-08-01T00:00:00.000Z" }), 9, "2025-08-01T00:00:00.000Z"),
        (json!({ "limit": 10 }), 10, "2025-08-01T00:00:00.000Z"),
        (json!({ "limit": 2, "time": "2024-12-31T00:00:00.000Z" }), 10, "2025-08-01T00:00:00.000Z"),
        (json!({ "limit": 10, "time": "2025-08-01T00:00:00.001Z" }), 10, "2025-08-01T00:00:00.001Z"),
    ];
    for (n, (floor, limit, time)) in steps.into_iter().enumerate() {
        write(store.as_ref(), vec![raise(&key, floor)]).await?;
        let expected = json!({ "limit": limit, "time": time });
        ensure_eq!(row(store.as_ref(), &key).await?, Some(expected), "the row after step {}", n + 1);
    }
    Ok(())
}

pub(super) async fn deleted_rows_are_removed(store: Arc<dyn Store>) -> CheckResult {
    let (deleted, kept) = (Key::new("a", "b"), Key::new("a", "c"));
    let both = [&deleted, &kept].map(|key| set(key, Presence::Any, json!({ "n": 1 })));
    write(store.as_ref(), both.to_vec()).await?;
    for _ in 0..2 {
        write(store.as_ref(), vec![Mutation::Delete { key: deleted.clone() }]).await?;
        ensure_eq!(row(store.as_ref(), &deleted).await?, None, "the deleted row");
    }
    ensure_eq!(row(store.as_ref(), &kept).await?, Some(json!({ "n": 1 })), "the other row of the partition");
    Ok(())
}

pub(super) async fn batch_get_returns_more_rows_than_one_request(store: Arc<dyn Store>) -> CheckResult {
    let key = |n: usize| Key::new(format!("p{}", n % 7), format!("s{n:03}"));
    let mut expected = Vec::new();
    // More rows than one BatchGetItem request returns.
    for chunk in (0..230).collect::<Vec<_>>().chunks(50) {
        let rows: Vec<_> = chunk.iter().map(|n| set(&key(*n), Presence::Any, json!({ "n": n }))).collect();
        write(store.as_ref(), rows).await?;
        let items = chunk.iter().map(|n| Item { key: key(*n), attributes: attributes(json!({ "n": n })) });
        expected.extend(items);
    }
    let missing = (230..260).map(key);
    let asked: Vec<Key> = (0..230).map(key).chain(missing).collect();
    let mut found = store.batch_get(&asked).await?;
    found.sort_by(|a, b| a.key.cmp(&b.key));
    expected.sort_by(|a, b| a.key.cmp(&b.key));
    ensure_eq!(found.len(), expected.len(), "the number of returned rows");
    ensure_eq!(found, expected, "the returned rows");
    ensure_eq!(store.batch_get(&[]).await?.len(), 0, "the rows of an empty request");
    Ok(())
}

fn add(key: &Key, amount: i64) -> Mutation {
    Mutation::Add { key: key.clone(), attribute: "limit".into(), amount }
}

/// Fails unless a commit on the missing row is refused and changes neither the log nor the other row.
async fn ensure_refused(store: &dyn Store, mutation: Mutation, missing: &Key, other: &Key) -> CheckResult {
    let before = row(store, other).await?;
    let mutations = vec![set(other, Presence::Any, json!({ "changed": true })), mutation];
    let events = vec![processed(&image(1), "v1", &[])];
    match store.commit(&Commit { mutations, events, ..empty_commit() }).await {
        Err(CommitError::RowMissing(key)) => ensure_eq!(&key, missing, "the row that the error names"),
        other => ensure!(false, "a commit on a missing row returns {other:?} instead of RowMissing"),
    }
    ensure_eq!(row(store, other).await?, before, "the other row");
    ensure_eq!(row(store, missing).await?, None, "the missing row");
    ensure!(store.read_log(&Position::default(), 10).await?.is_empty(), "an event of a failed commit is in the log");
    Ok(())
}

pub(super) async fn delete_existing_fails_for_a_missing_row(store: Arc<dyn Store>) -> CheckResult {
    let (deleted, kept) = (Key::image(&image(1), &uploader()), Key::limit(&uploader()));
    let both = [&deleted, &kept].map(|key| set(key, Presence::Any, json!({ "n": 1 })));
    write(store.as_ref(), both.to_vec()).await?;
    write(store.as_ref(), vec![Mutation::DeleteExisting { key: deleted.clone() }]).await?;
    ensure_eq!(row(store.as_ref(), &deleted).await?, None, "the deleted row");
    ensure_refused(store.as_ref(), Mutation::DeleteExisting { key: deleted.clone() }, &deleted, &kept).await
}

pub(super) async fn one_of_many_concurrent_delete_existing_succeeds(store: Arc<dyn Store>) -> CheckResult {
    let limit = Key::limit(&uploader());
    write(store.as_ref(), vec![set(&limit, Presence::Any, json!({ "limit": 7 }))]).await?;
    for round in 0..6 {
        let key = Key::image(&image(round), &uploader());
        write(store.as_ref(), vec![set(&key, Presence::Any, json!({ "n": 1 }))]).await?;
        let mut tasks = JoinSet::new();
        for _ in 0..6 {
            let (store, mutations) =
                (Arc::clone(&store), vec![Mutation::DeleteExisting { key: key.clone() }, add(&limit, 1)]);
            tasks.spawn(async move { store.commit(&Commit { mutations, ..empty_commit() }).await });
        }
        let mut deleted = 0;
        for done in tasks.join_all().await {
            match done {
                Ok(_) => deleted += 1,
                Err(CommitError::RowMissing(missing)) => ensure_eq!(missing, key, "the row that the error names"),
                Err(other) => ensure!(false, "a concurrent delete returns {other:?}"),
            }
        }
        ensure_eq!(deleted, 1, "number of six concurrent deletes that succeed");
    }
    ensure_eq!(
        row(store.as_ref(), &limit).await?,
        Some(json!({ "limit": 13 })),
        "the limit that each successful delete credits"
    );
    Ok(())
}

pub(super) async fn add_changes_one_number_and_nothing_else(store: Arc<dyn Store>) -> CheckResult {
    let key = Key::limit(&uploader());
    let sums = [("499", 1, "500"), ("0", 1, "1"), ("500", -1, "499"), ("-1", 1, "0"), ("1.5", 1, "2.5"), ("7", 0, "7")];
    for (before, amount, after) in sums {
        let row_text = |limit: &str| {
            format!(r#"{{"entityType":"DEFAULT_LIMIT","limit":{limit},"long":1234567890123456789.25,"note":"1.50"}}"#)
        };
        write(store.as_ref(), vec![Mutation::Delete { key: key.clone() }]).await?;
        write(store.as_ref(), vec![set(&key, Presence::Any, serde_json::from_str(&row_text(before))?)]).await?;
        write(store.as_ref(), vec![add(&key, amount)]).await?;
        let found = row(store.as_ref(), &key).await?.unwrap_or_default().to_string();
        ensure_eq!(found, row_text(after), "{before} plus {amount}");
    }
    Ok(())
}

pub(super) async fn add_fails_for_a_missing_row(store: Arc<dyn Store>) -> CheckResult {
    let (missing, other) = (Key::limit(&uploader()), Key::limit(&"another@example.org".parse()?));
    write(store.as_ref(), vec![set(&other, Presence::Any, json!({ "limit": 3 }))]).await?;
    ensure_refused(store.as_ref(), add(&missing, 1), &missing, &other).await
}
