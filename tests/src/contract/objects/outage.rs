//! A bucket that is away for a while: nothing is there, and nothing is said not to be.

use std::{future::Future, sync::Arc};

use sparks_engine::{Objects, ObjectsError, PutMode};

use super::{MANY, get, put, put_new};
use crate::contract::{Checked, Report, checks, ensure, ensure_eq, run};

/// A bucket that can be taken away and brought back.
pub struct OutageRig {
    /// The bucket.
    pub objects: Arc<dyn Objects>,
    /// Takes it away.
    pub away: Box<dyn Fn() + Send + Sync>,
    /// Brings it back.
    pub back: Box<dyn Fn() + Send + Sync>,
}

/// Tries a bucket that goes away. Each check gets one that is empty and there.
pub async fn outage<Fut>(make: impl Fn() -> Fut) -> Report
where
    Fut: Future<Output = OutageRig>,
{
    use super::outage as promises;
    let checks = checks![promises::{
        a_bucket_that_is_away_is_not_empty,
        nothing_is_stored_where_the_bucket_was,
        all_is_well_when_it_is_back,
    }];
    run(checks, make).await
}

fn is_unavailable<T>(answer: &Result<T, ObjectsError>) -> bool {
    matches!(answer, Err(ObjectsError::Unavailable { .. }))
}

pub(super) async fn a_bucket_that_is_away_is_not_empty(rig: OutageRig) -> Checked {
    put_new(rig.objects.as_ref(), "a/b", b"1").await?;
    (rig.away)();
    for key in ["a/b", "a/c", "nobody"] {
        let got = rig.objects.get(key, MANY).await;
        ensure!(is_unavailable(&got), "getting {key} gives {got:?}");
        let head = rig.objects.head(key).await;
        ensure!(is_unavailable(&head), "looking for {key} gives {head:?}");
        let deleted = rig.objects.delete(key).await;
        ensure!(is_unavailable(&deleted), "deleting {key} gives {deleted:?}");
    }
    for prefix in ["", "a/", "nothing/"] {
        let listed = rig.objects.list(prefix, None, 10).await;
        ensure!(is_unavailable(&listed), "listing {prefix:?} gives {listed:?}");
    }
    let checked = rig.objects.check().await;
    ensure!(is_unavailable(&checked), "a check gives {checked:?}");
    (rig.back)();
    Ok(())
}

pub(super) async fn nothing_is_stored_where_the_bucket_was(rig: OutageRig) -> Checked {
    put_new(rig.objects.as_ref(), "a/b", b"1").await?;
    (rig.away)();
    for mode in [PutMode::Replace, PutMode::IfAbsent] {
        for key in ["a/b", "c", "d/e/f"] {
            let stored = put(rig.objects.as_ref(), key, b"2", mode).await;
            ensure!(is_unavailable(&stored), "putting {key} gives {stored:?}");
        }
    }
    // Had anything been made anew there, it would be a bucket now.
    let checked = rig.objects.check().await;
    ensure!(is_unavailable(&checked), "a check after puts gives {checked:?}");
    (rig.back)();
    let keys: Vec<_> = rig.objects.list("", None, 10).await?.into_iter().map(|listed| listed.key).collect();
    ensure_eq!(keys, vec!["a/b"], "what is there when it is back");
    ensure_eq!(get(rig.objects.as_ref(), "a/b").await?.bytes, b"1", "the object when it is back");
    Ok(())
}

pub(super) async fn all_is_well_when_it_is_back(rig: OutageRig) -> Checked {
    put_new(rig.objects.as_ref(), "a/b", b"1").await?;
    for _ in 0..2 {
        (rig.away)();
        ensure!(rig.objects.check().await.is_err(), "a check finds a bucket that is away");
        (rig.back)();
        rig.objects.check().await?;
        ensure_eq!(rig.objects.head("a/b").await?, Some(1), "an object when it is back");
        let missing = rig.objects.get("a/c", MANY).await;
        ensure!(matches!(missing, Err(ObjectsError::NotFound(_))), "an object that is not there gives {missing:?}");
        put_new(rig.objects.as_ref(), "d/e", b"2").await?;
        rig.objects.delete("d/e").await?;
    }
    Ok(())
}
