//! Counters of calls: Pinecone bills by the call.

use std::sync::atomic::{AtomicU64, Ordering};

/// An operation of Pinecone's data plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Finds the nearest vectors.
    Query,
    /// Writes vectors.
    Upsert,
    /// Deletes vectors by ID.
    Delete,
    /// Lists the IDs of vectors.
    List,
    /// Reads vectors by ID.
    Fetch,
    /// Describes the index.
    Stats,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 6] = [Self::Query, Self::Upsert, Self::Delete, Self::List, Self::Fetch, Self::Stats];

    /// Returns the name of the operation, as metrics and errors show it.
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

    /// Returns the path of the operation.
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

/// One counter per operation.
#[derive(Debug, Default)]
pub(crate) struct CallCounters([AtomicU64; Operation::ALL.len()]);

impl CallCounters {
    /// Counts one call.
    pub fn count(&self, operation: Operation) {
        self.0[operation as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of calls of each operation.
    pub fn all(&self) -> [(Operation, u64); Operation::ALL.len()] {
        Operation::ALL.map(|operation| (operation, self.0[operation as usize].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_its_own_counter() {
        let calls = CallCounters::default();
        for operation in [Operation::Query, Operation::Stats, Operation::Query] {
            calls.count(operation);
        }
        let counted: Vec<u64> = calls.all().iter().map(|(_, count)| *count).collect();
        assert_eq!(counted, [2, 0, 0, 0, 0, 1]);
    }
}
