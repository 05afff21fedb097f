//! The description of an index, and its checks for `sparks doctor`.

use std::collections::BTreeMap;

use sparks_engine::Finding;

use crate::wire::StatsResponse;

/// The description of an index. Counts are eventually consistent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDescription {
    /// The host of the index.
    pub host: String,
    /// The dimensions of its vectors; none for an index of sparse vectors.
    pub dimension: Option<usize>,
    /// The similarity metric; none if the API does not return it.
    pub metric: Option<String>,
    /// The number of vectors in each namespace of the worker.
    pub own_vectors: BTreeMap<String, u64>,
    /// The number of vectors in other namespaces.
    pub other_vectors: u64,
}

impl IndexDescription {
    /// Converts the response; `is_own` selects the worker's namespaces.
    pub(crate) fn new(host: &str, stats: StatsResponse, is_own: impl Fn(&str) -> bool) -> Self {
        let total = stats.total_vector_count;
        let own_vectors: BTreeMap<String, u64> = stats
            .namespaces
            .into_iter()
            .filter(|(name, _)| is_own(name))
            .map(|(name, summary)| (name, summary.vector_count))
            .collect();
        let other_vectors = total.saturating_sub(own_vectors.values().sum());
        Self { host: host.to_owned(), dimension: stats.dimension, metric: stats.metric, own_vectors, other_vectors }
    }

    /// Checks that the index holds signatures of this many dimensions and compares them by cosine.
    pub fn findings(&self, dimensions: usize) -> Vec<Finding> {
        let remedy = format!(
            "create an index of {dimensions} dimensions with the metric cosine, and set pinecone.host to its host"
        );
        let what = format!("Pinecone index {}", self.host);
        let dimension = match self.dimension {
            Some(dimension) if dimension == dimensions => {
                Finding::ok(format!("{what}: dimensions"), format!("{dimension}, as signatures have"))
            }
            Some(dimension) => Finding::fail(
                format!("{what}: dimensions"),
                format!("{dimension}, but signatures have {dimensions}"),
                &remedy,
            ),
            None => Finding::fail(format!("{what}: dimensions"), "not an index of dense vectors", &remedy),
        };
        let metric = match self.metric.as_deref() {
            Some("cosine") => Finding::ok(format!("{what}: metric"), "cosine"),
            Some(metric) => Finding::fail(format!("{what}: metric"), format!("{metric}, not cosine"), &remedy),
            None => Finding::warn(
                format!("{what}: metric"),
                "unknown",
                "check in Pinecone's console that the metric is cosine",
            ),
        };
        vec![dimension, metric, Finding::ok(format!("{what}: vectors"), self.vector_counts())]
    }

    /// Describes the numbers of vectors.
    fn vector_counts(&self) -> String {
        let own_vectors: Vec<String> =
            self.own_vectors.iter().map(|(name, count)| format!("{count} in {name}")).collect();
        let own_vectors =
            if own_vectors.is_empty() { "none in the worker's namespaces".to_owned() } else { own_vectors.join(", ") };
        match self.other_vectors {
            0 => own_vectors,
            other_vectors => format!("{own_vectors}; {other_vectors} in other namespaces"),
        }
    }
}

#[cfg(test)]
mod tests {
    use sparks_engine::FindingStatus;

    use super::*;

    fn described(json: &str) -> IndexDescription {
        let stats = serde_json::from_str(json).expect("an answer");
        IndexDescription::new("host", stats, |name| name.starts_with("sparks:"))
    }

    #[test]
    fn a_suitable_index_passes_all_checks() {
        let description = described(
            r#"{"namespaces":{"sparks:m-1":{"vectorCount":3},"":{"vectorCount":2}},"indexFullness":0,
                "totalVectorCount":5,"dimension":128,"metric":"cosine","vectorType":"dense"}"#,
        );
        let findings = description.findings(128);
        assert!(findings.iter().all(|finding| finding.status == FindingStatus::Ok), "{findings:?}");
        assert_eq!(findings[2].observation, "3 in sparks:m-1; 2 in other namespaces");
    }

    #[test]
    fn an_unsuitable_index_fails_with_a_remedy() {
        let statuses = |json: &str| described(json).findings(128).iter().map(|f| f.status).collect::<Vec<_>>();
        assert_eq!(
            statuses(r#"{"dimension":3,"metric":"dotproduct"}"#),
            [FindingStatus::Fail, FindingStatus::Fail, FindingStatus::Ok]
        );
        assert_eq!(statuses(r#"{"metric":"cosine"}"#), [FindingStatus::Fail, FindingStatus::Ok, FindingStatus::Ok]);
        assert_eq!(
            statuses(r#"{"dimension":128}"#),
            [FindingStatus::Ok, FindingStatus::Warn, FindingStatus::Ok],
            "older API versions return no metric"
        );
        let remedy = described(r#"{"dimension":3}"#).findings(128)[0].remedy.clone().unwrap_or_default();
        assert!(remedy.contains("128 dimensions") && remedy.contains("cosine"), "{remedy}");
    }
}
