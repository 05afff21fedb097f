//! How often the service was called: it is paid for by the call.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the service is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Who is nearest.
    Query,
    /// To keep vectors.
    Upsert,
    /// To drop vectors.
    Delete,
    /// Which vectors there are.
    List,
    /// For vectors by their names.
    Fetch,
    /// What the index is like.
    Stats,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Query, Self::Upsert, Self::Delete, Self::List, Self::Fetch, Self::Stats];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Upsert => "upsert",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Fetch => "fetch",
            Self::Stats => "describe_index_stats",
        }
    }

    /// Where it is asked for.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Query => "/query",
            Self::Upsert => "/vectors/upsert",
            Self::Delete => "/vectors/delete",
            Self::List => "/vectors/list",
            Self::Fetch => "/vectors/fetch",
            Self::Stats => "/describe_index_stats",
        }
    }
}

/// A counter an operation.
#[derive(Debug, Default)]
pub(crate) struct Calls([AtomicU64; Operation::ALL.len()]);

impl Calls {
    /// One more.
    pub fn count(&self, operation: Operation) {
        self.0[operation as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn all(&self) -> [(Operation, u64); Operation::ALL.len()] {
        Operation::ALL.map(|operation| (operation, self.0[operation as usize].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_counted_by_itself() {
        let calls = Calls::default();
        for operation in [Operation::Query, Operation::Stats, Operation::Query] {
            calls.count(operation);
        }
        let counted: Vec<u64> = calls.all().iter().map(|(_, count)| *count).collect();
        assert_eq!(counted, [2, 0, 0, 0, 0, 1]);
    }
}
