//! The bucket.

use super::{Doctor, SET_UP};
use crate::{setup::bucket, trouble::Trouble};

impl Doctor {
    /// Says whether it is there.
    pub(super) async fn bucket(&mut self, name: &str) -> bool {
        let what = format!("bucket {name}");
        match bucket::exists(&self.connection.s3(), name).await {
            Ok(true) => {
                self.ok(what, "it is there");
                true
            }
            Ok(false) => {
                self.fail(what, "it is not there", format!("set bucket to the platform's, or {SET_UP}"));
                false
            }
            Err(trouble) if trouble.is_forbidden() => {
                let remedy = "grant s3:ListBucket: a worker cannot tell a missing photo from a forbidden one without; \
                              or set bucket to one that is ours";
                self.fail(what, refused(&trouble), remedy);
                true
            }
            Err(trouble) if trouble.status == Some(301) => {
                self.fail(what, "it is in another region", "set aws.region to the bucket's");
                false
            }
            Err(trouble) => {
                self.unseen(what, &trouble, "s3:ListBucket");
                false
            }
        }
    }
}

/// An answer without a body has no words of its own.
fn refused(trouble: &Trouble) -> String {
    if trouble.code.is_some() { trouble.to_string() } else { "refused (403)".to_owned() }
}
