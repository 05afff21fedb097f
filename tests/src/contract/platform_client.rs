//! The contract of the [`PlatformClient`] port, which acts as the platform in local runs and load tests.

use std::{future::Future, sync::Arc};

use serde_json::{Value, json};
use sparks_domain::Key;
use sparks_engine::{Content, Objects, PlatformClient, Store};
use tokio::task::JoinSet;

use super::{CheckResult, Report, checks, ensure, ensure_eq, run};
use crate::samples::{attributes, image, uploader};

/// A platform client, and the adapters through which its effects are visible.
pub struct PlatformFixture {
    /// The platform client.
    pub platform: Arc<dyn PlatformClient>,
    /// The store with its rows.
    pub store: Arc<dyn Store>,
    /// The bucket with its originals.
    pub objects: Arc<dyn Objects>,
}

/// Runs the suite. `make` returns a client of an empty table and bucket.
pub async fn platform_client<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = PlatformFixture>,
{
    let checks = checks![
        suite::{
            storing_replaces_the_original,
            an_existing_row_is_not_changed,
            one_of_many_concurrent_calls_creates_a_row,
            a_bucket_without_notifications_reports_none,
        },
    ];
    run(checks, make).await
}

mod suite {
    use super::*;

    pub(super) async fn storing_replaces_the_original(fixture: PlatformFixture) -> CheckResult {
        let (key, content) = ("originals/a b+c.jpg", Content::image("image/jpeg"));
        let mut versions = Vec::new();
        for body in [b"one".to_vec(), b"two".to_vec(), b"one".to_vec(), Vec::new()] {
            let version = fixture.platform.put_original(key, body.clone(), content).await?;
            let found = fixture.objects.get(key, 100).await?;
            ensure_eq!(found.bytes, body, "the stored original");
            ensure_eq!(found.version, version, "the returned version");
            versions.push(version);
        }
        ensure!(
            versions[0] == versions[2] && versions[0] != versions[1],
            "versions do not follow the content: {versions:?}"
        );
        Ok(())
    }

    pub(super) async fn an_existing_row_is_not_changed(fixture: PlatformFixture) -> CheckResult {
        let key = Key::image(&image(1), &uploader());
        let first = json!({ "entityType": "IMAGE", "persons": ["person1"], "size": 1.50, "note": null });
        ensure!(
            fixture.platform.create_row(&key, &attributes(first.clone())).await?,
            "creating a new row reports an existing one"
        );
        let later = json!({ "entityType": "IMAGE", "persons": [] });
        ensure!(
            !fixture.platform.create_row(&key, &attributes(later)).await?,
            "creating an existing row reports a new one"
        );
        let found = fixture.store.get(&key).await?.map(|row| Value::Object(row.attributes));
        ensure_eq!(found, Some(first), "the existing row");
        let other = Key::image(&image(1), &"other@example.org".parse()?);
        ensure!(
            fixture.platform.create_row(&other, &attributes(json!({ "n": 1 }))).await?,
            "creating the row of another uploader reports an existing one"
        );
        Ok(())
    }

    pub(super) async fn one_of_many_concurrent_calls_creates_a_row(fixture: PlatformFixture) -> CheckResult {
        let (key, mut tasks) = (Key::image(&image(2), &uploader()), JoinSet::new());
        for n in 0..6 {
            let (platform, key) = (Arc::clone(&fixture.platform), key.clone());
            tasks.spawn(async move { (n, platform.create_row(&key, &attributes(json!({ "n": n }))).await) });
        }
        let mut creators = Vec::new();
        for (n, created) in tasks.join_all().await {
            creators.extend(created?.then_some(n));
        }
        ensure_eq!(creators.len(), 1, "number of six concurrent calls that report a new row");
        let found = fixture.store.get(&key).await?.map(|row| row.attributes["n"].clone());
        ensure_eq!(found, Some(json!(creators[0])), "the value in the created row");
        Ok(())
    }

    pub(super) async fn a_bucket_without_notifications_reports_none(fixture: PlatformFixture) -> CheckResult {
        ensure!(
            !fixture.platform.has_upload_notifications().await?,
            "notifications are reported for a bucket that has none"
        );
        Ok(())
    }
}
