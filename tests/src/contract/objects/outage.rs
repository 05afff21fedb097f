//! The contract of a bucket during an outage: requests fail as unavailable, and never report missing objects.

use std::{future::Future, sync::Arc};

use sparks_engine::{DependencyError, Objects, ObjectsError, PutMode};

use super::{UNLIMITED, get, put, put_new};
use crate::contract::{CheckResult, Report, checks, ensure, ensure_eq, run};

/// A bucket whose outage a test can start and end.
pub struct OutageFixture {
    /// The bucket.
    pub objects: Arc<dyn Objects>,
    /// Starts the outage.
    pub start_outage: Box<dyn Fn() + Send + Sync>,
    /// Ends the outage.
    pub end_outage: Box<dyn Fn() + Send + Sync>,
}

/// Runs the suite. `make` returns an empty bucket without an outage.
pub async fn outage<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = OutageFixture>,
{
    use super::outage as suite;
    let checks = checks![suite::{
        an_outage_is_not_reported_as_missing_objects,
        nothing_is_stored_during_an_outage,
        requests_succeed_after_an_outage,
    }];
    run(checks, make).await
}

fn is_unavailable<T>(answer: &Result<T, ObjectsError>) -> bool {
    matches!(answer, Err(ObjectsError::Dependency { error: DependencyError::Unavailable(_), .. }))
}

pub(super) async fn an_outage_is_not_reported_as_missing_objects(fixture: OutageFixture) -> CheckResult {
    put_new(fixture.objects.as_ref(), "a/b", b"1").await?;
    (fixture.start_outage)();
    for key in ["a/b", "a/c", "missing"] {
        let got = fixture.objects.get(key, UNLIMITED).await;
        ensure!(is_unavailable(&got), "get of {key} returns {got:?}");
        let head = fixture.objects.head(key).await;
        ensure!(is_unavailable(&head), "head of {key} returns {head:?}");
        let deleted = fixture.objects.delete(key).await;
        ensure!(is_unavailable(&deleted), "delete of {key} returns {deleted:?}");
    }
    for prefix in ["", "a/", "nothing/"] {
        let listed = fixture.objects.list(prefix, None, 10).await;
        ensure!(is_unavailable(&listed), "list of {prefix:?} returns {listed:?}");
    }
    let checked = fixture.objects.check().await;
    ensure!(is_unavailable(&checked), "check returns {checked:?}");
    (fixture.end_outage)();
    Ok(())
}

pub(super) async fn nothing_is_stored_during_an_outage(fixture: OutageFixture) -> CheckResult {
    put_new(fixture.objects.as_ref(), "a/b", b"1").await?;
    (fixture.start_outage)();
    for mode in [PutMode::Replace, PutMode::IfAbsent] {
        for key in ["a/b", "c", "d/e/f"] {
            let stored = put(fixture.objects.as_ref(), key, b"2", mode.clone()).await;
            ensure!(is_unavailable(&stored), "put of {key} returns {stored:?}");
        }
    }
    // A put that recreated the bucket would make the check pass.
    let checked = fixture.objects.check().await;
    ensure!(is_unavailable(&checked), "check after puts returns {checked:?}");
    (fixture.end_outage)();
    let keys: Vec<_> = fixture.objects.list("", None, 10).await?.into_iter().map(|listed| listed.key).collect();
    ensure_eq!(keys, vec!["a/b"], "listing after the outage");
    ensure_eq!(get(fixture.objects.as_ref(), "a/b").await?.bytes, b"1", "the object after the outage");
    Ok(())
}

pub(super) async fn requests_succeed_after_an_outage(fixture: OutageFixture) -> CheckResult {
    put_new(fixture.objects.as_ref(), "a/b", b"1").await?;
    for _ in 0..2 {
        (fixture.start_outage)();
        ensure!(fixture.objects.check().await.is_err(), "check succeeds during an outage");
        (fixture.end_outage)();
        fixture.objects.check().await?;
        ensure_eq!(
            fixture.objects.head("a/b").await?.map(|info| info.bytes),
            Some(1),
            "size of an object after the outage"
        );
        let missing = fixture.objects.get("a/c", UNLIMITED).await;
        ensure!(
            matches!(missing, Err(ObjectsError::NotFound(_))),
            "get of a missing object after the outage returns {missing:?}"
        );
        put_new(fixture.objects.as_ref(), "d/e", b"2").await?;
        fixture.objects.delete("d/e").await?;
    }
    Ok(())
}
