//! What those promise who play the platform's part.

use std::{future::Future, sync::Arc};

use serde_json::{Value, json};
use sparks_domain::Key;
use sparks_engine::{Content, Objects, Platform, Store};
use tokio::task::JoinSet;

use super::{Checked, Report, checks, ensure, ensure_eq, run};
use crate::samples::{attributes, image, uploader};

/// Somebody who plays the platform's part, and where what they do is seen.
pub struct PlatformRig {
    /// Who plays it.
    pub platform: Arc<dyn Platform>,
    /// Where its rows are.
    pub store: Arc<dyn Store>,
    /// Where its originals are.
    pub objects: Arc<dyn Objects>,
}

/// Tries somebody who plays the platform's part. Each check gets one of its own.
pub async fn platform<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = PlatformRig>,
{
    let checks = checks![
        promises::{
            an_original_is_stored_over_what_there_was,
            a_row_that_is_there_stays_as_it_is,
            of_many_who_make_a_row_one_does,
            where_nobody_listens_nobody_is_told,
        },
    ];
    run(checks, make).await
}

mod promises {
    use super::*;

    pub(super) async fn an_original_is_stored_over_what_there_was(rig: PlatformRig) -> Checked {
        let (key, content) = ("originals/a b+c.jpg", Content::picture("image/jpeg"));
        let mut versions = Vec::new();
        for body in [b"one".to_vec(), b"two".to_vec(), b"one".to_vec(), Vec::new()] {
            let version = rig.platform.store(key, body.clone(), content).await?;
            let found = rig.objects.get(key, 100).await?;
            ensure_eq!(found.bytes, body, "the original");
            ensure_eq!(found.version, version, "the version that a reader finds");
            versions.push(version);
        }
        ensure!(versions[0] == versions[2] && versions[0] != versions[1], "versions go by content: {versions:?}");
        Ok(())
    }

    pub(super) async fn a_row_that_is_there_stays_as_it_is(rig: PlatformRig) -> Checked {
        let key = Key::image(&image(1), &uploader());
        let first = json!({ "entityType": "IMAGE", "persons": ["person1"], "size": 1.50, "note": null });
        ensure!(rig.platform.make_row(&key, &attributes(first.clone())).await?, "a new row is said to be there");
        let later = json!({ "entityType": "IMAGE", "persons": [] });
        ensure!(!rig.platform.make_row(&key, &attributes(later)).await?, "a row is made twice");
        let found = rig.store.get(&key).await?.map(|row| Value::Object(row.attributes));
        ensure_eq!(found, Some(first), "the row");
        let beside = Key::image(&image(1), &"somebody.else@example.org".parse()?);
        ensure!(rig.platform.make_row(&beside, &attributes(json!({ "n": 1 }))).await?, "the row beside it is new");
        Ok(())
    }

    pub(super) async fn of_many_who_make_a_row_one_does(rig: PlatformRig) -> Checked {
        let (key, mut tasks) = (Key::image(&image(2), &uploader()), JoinSet::new());
        for n in 0..6 {
            let (platform, key) = (Arc::clone(&rig.platform), key.clone());
            tasks.spawn(async move { (n, platform.make_row(&key, &attributes(json!({ "n": n }))).await) });
        }
        let mut makers = Vec::new();
        for (n, made) in tasks.join_all().await {
            makers.extend(made?.then_some(n));
        }
        ensure_eq!(makers.len(), 1, "how many of six made the row");
        let found = rig.store.get(&key).await?.map(|row| row.attributes["n"].clone());
        ensure_eq!(found, Some(json!(makers[0])), "whose row it is");
        Ok(())
    }

    pub(super) async fn where_nobody_listens_nobody_is_told(rig: PlatformRig) -> Checked {
        ensure!(!rig.platform.tells().await?, "somebody is said to hear of originals");
        Ok(())
    }
}
