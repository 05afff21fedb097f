//! Rows of a table in which we are guests.

use std::sync::Arc;

use serde_json::{Value, json};
use sparks_domain::{Item, Key, Mutation, Position, Presence};
use sparks_engine::{Commit, CommitError, Store};
use tokio::task::JoinSet;

use crate::{
    contract::{Checked, ensure, ensure_eq},
    samples::{attributes, image, nothing, processed, raise, set, uploader},
};

async fn write(store: &dyn Store, mutations: Vec<Mutation>) -> Checked {
    store.commit(&Commit { mutations, ..nothing() }).await?;
    Ok(())
}

async fn row(store: &dyn Store, key: &Key) -> Checked<Option<Value>> {
    Ok(store.get(key).await?.map(|item| Value::Object(item.attributes)))
}

pub(super) async fn attributes_of_others_survive_a_change(store: Arc<dyn Store>) -> Checked {
    let key = Key::image(&image(1), &uploader());
    let theirs = json!({ "entityType": "IMAGE", "tags": ["sea", "ünïcode"], "description": null, "persons": [] });
    write(store.as_ref(), vec![set(&key, Presence::Any, theirs)]).await?;
    let ours = json!({ "persons": ["person1"], "images": { "large": "l", "medium": "m" } });
    write(store.as_ref(), vec![set(&key, Presence::Required, ours)]).await?;
    let both = json!({
        "entityType": "IMAGE", "tags": ["sea", "ünïcode"], "description": null,
        "persons": ["person1"], "images": { "large": "l", "medium": "m" },
    });
    ensure_eq!(row(store.as_ref(), &key).await?, Some(both), "the row after a change of two attributes");

    let neighbour = Key::new(key.pk.clone(), "UPLOADED_BY#somebody.else@example.org");
    ensure_eq!(row(store.as_ref(), &neighbour).await?, None, "a row that nobody made");
    Ok(())
}

pub(super) async fn values_of_every_kind_come_back(store: Arc<dyn Store>) -> Checked {
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

pub(super) async fn floors_raise_and_never_lower(store: Arc<dyn Store>) -> Checked {
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
        ensure_eq!(row(store.as_ref(), &key).await?, Some(expected), "the row after floor {}", n + 1);
    }
    Ok(())
}

pub(super) async fn deleted_rows_are_gone(store: Arc<dyn Store>) -> Checked {
    let (gone, kept) = (Key::new("a", "b"), Key::new("a", "c"));
    let both = [&gone, &kept].map(|key| set(key, Presence::Any, json!({ "n": 1 })));
    write(store.as_ref(), both.to_vec()).await?;
    for _ in 0..2 {
        write(store.as_ref(), vec![Mutation::Delete { key: gone.clone() }]).await?;
        ensure_eq!(row(store.as_ref(), &gone).await?, None, "the deleted row");
    }
    ensure_eq!(row(store.as_ref(), &kept).await?, Some(json!({ "n": 1 })), "the row beside it");
    Ok(())
}

pub(super) async fn many_rows_are_got_at_once(store: Arc<dyn Store>) -> Checked {
    let key = |n: usize| Key::new(format!("p{}", n % 7), format!("s{n:03}"));
    let mut expected = Vec::new();
    // More than any service answers in one go.
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
    ensure_eq!(found.len(), expected.len(), "the number of rows that were found");
    ensure_eq!(found, expected, "the rows that were found");
    ensure_eq!(store.batch_get(&[]).await?.len(), 0, "the rows of no keys");
    Ok(())
}

fn add(key: &Key, amount: i64) -> Mutation {
    Mutation::Add { key: key.clone(), attribute: "limit".into(), amount }
}

/// A commit that is refused because of this row changes neither the log nor this other one.
async fn is_refused(store: &dyn Store, mutation: Mutation, missing: &Key, beside: &Key) -> Checked {
    let before = row(store, beside).await?;
    let mutations = vec![set(beside, Presence::Any, json!({ "changed": true })), mutation];
    let events = vec![processed(&image(1), "v1", &[])];
    match store.commit(&Commit { mutations, events, ..nothing() }).await {
        Err(CommitError::RowMissing(key)) => ensure_eq!(&key, missing, "the row that is said to be missing"),
        other => ensure!(false, "a missing row gives {other:?} instead of RowMissing"),
    }
    ensure_eq!(row(store, beside).await?, before, "the row beside the missing one");
    ensure_eq!(row(store, missing).await?, None, "the missing row");
    ensure!(store.read_log(&Position::default(), 10).await?.is_empty(), "an event of a refused commit is in the log");
    Ok(())
}

pub(super) async fn only_rows_that_are_there_are_taken(store: Arc<dyn Store>) -> Checked {
    let (taken, kept) = (Key::image(&image(1), &uploader()), Key::limit(&uploader()));
    let both = [&taken, &kept].map(|key| set(key, Presence::Any, json!({ "n": 1 })));
    write(store.as_ref(), both.to_vec()).await?;
    write(store.as_ref(), vec![Mutation::Take { key: taken.clone() }]).await?;
    ensure_eq!(row(store.as_ref(), &taken).await?, None, "the row that was taken");
    is_refused(store.as_ref(), Mutation::Take { key: taken.clone() }, &taken, &kept).await
}

pub(super) async fn of_many_who_take_a_row_one_does(store: Arc<dyn Store>) -> Checked {
    let limit = Key::limit(&uploader());
    write(store.as_ref(), vec![set(&limit, Presence::Any, json!({ "limit": 7 }))]).await?;
    for round in 0..6 {
        let key = Key::image(&image(round), &uploader());
        write(store.as_ref(), vec![set(&key, Presence::Any, json!({ "n": 1 }))]).await?;
        let mut tasks = JoinSet::new();
        for _ in 0..6 {
            let (store, mutations) = (Arc::clone(&store), vec![Mutation::Take { key: key.clone() }, add(&limit, 1)]);
            tasks.spawn(async move { store.commit(&Commit { mutations, ..nothing() }).await });
        }
        let mut takers = 0;
        for done in tasks.join_all().await {
            match done {
                Ok(_) => takers += 1,
                Err(CommitError::RowMissing(missing)) => ensure_eq!(missing, key, "the row that is said to be missing"),
                Err(other) => ensure!(false, "a row that is taken gives {other:?}"),
            }
        }
        ensure_eq!(takers, 1, "how many of six took the row");
    }
    ensure_eq!(row(store.as_ref(), &limit).await?, Some(json!({ "limit": 13 })), "what each taker added to");
    Ok(())
}

pub(super) async fn adding_changes_the_number_and_nothing_else(store: Arc<dyn Store>) -> Checked {
    let key = Key::limit(&uploader());
    let sums = [("499", 1, "500"), ("0", 1, "1"), ("500", -1, "499"), ("-1", 1, "0"), ("1.5", 1, "2.5"), ("7", 0, "7")];
    for (before, amount, after) in sums {
        let theirs = |limit: &str| {
            format!(r#"{{"entityType":"DEFAULT_LIMIT","limit":{limit},"long":1234567890123456789.25,"note":"1.50"}}"#)
        };
        write(store.as_ref(), vec![Mutation::Delete { key: key.clone() }]).await?;
        write(store.as_ref(), vec![set(&key, Presence::Any, serde_json::from_str(&theirs(before))?)]).await?;
        write(store.as_ref(), vec![add(&key, amount)]).await?;
        let found = row(store.as_ref(), &key).await?.unwrap_or_default().to_string();
        ensure_eq!(found, theirs(after), "{before} and {amount}");
    }
    Ok(())
}

pub(super) async fn only_rows_that_are_there_are_added_to(store: Arc<dyn Store>) -> Checked {
    let (missing, beside) = (Key::limit(&uploader()), Key::limit(&"another@example.org".parse()?));
    write(store.as_ref(), vec![set(&beside, Presence::Any, json!({ "limit": 3 }))]).await?;
    is_refused(store.as_ref(), add(&missing, 1), &missing, &beside).await
}
