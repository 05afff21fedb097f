//! What an index is like, and whether it suits us.

use std::collections::BTreeMap;

use sparks_engine::Finding;

use crate::wire::Stats;

/// An index as it describes itself. Counts lag behind what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its host.
    pub host: String,
    /// How long its vectors are; nothing where it keeps another kind of vectors.
    pub dimension: Option<usize>,
    /// How it compares; nothing where it does not say.
    pub metric: Option<String>,
    /// How many vectors each of our namespaces holds.
    pub ours: BTreeMap<String, u64>,
    /// How many vectors it holds that are in no namespace of ours.
    pub others: u64,
}

impl Description {
    /// Of these, ours are those that `is_ours` says.
    pub(crate) fn new(host: &str, stats: Stats, is_ours: impl Fn(&str) -> bool) -> Self {
        let total = stats.total_vector_count;
        let ours: BTreeMap<String, u64> = stats
            .namespaces
            .into_iter()
            .filter(|(name, _)| is_ours(name))
            .map(|(name, summary)| (name, summary.vector_count))
            .collect();
        let others = total.saturating_sub(ours.values().sum());
        Self { host: host.to_owned(), dimension: stats.dimension, metric: stats.metric, ours, others }
    }

    /// Whether it takes signatures of so many dimensions, and compares them as we do.
    pub fn findings(&self, dimensions: usize) -> Vec<Finding> {
        let remedy =
            format!("make an index of {dimensions} dimensions with the metric cosine, and give the worker its host");
        let what = format!("the Pinecone index at {}", self.host);
        let dimension = match self.dimension {
            Some(dimension) if dimension == dimensions => {
                Finding::ok(format!("{what}: dimensions"), format!("{dimension}, as signatures have"))
            }
            Some(dimension) => Finding::fail(
                format!("{what}: dimensions"),
                format!("{dimension}, but signatures have {dimensions}"),
                &remedy,
            ),
            None => Finding::fail(format!("{what}: dimensions"), "it keeps no dense vectors", &remedy),
        };
        let metric = match self.metric.as_deref() {
            Some("cosine") => Finding::ok(format!("{what}: metric"), "cosine"),
            Some(metric) => Finding::fail(format!("{what}: metric"), format!("{metric}, not cosine"), &remedy),
            None => Finding::warn(format!("{what}: metric"), "it does not say which", "see that it is cosine"),
        };
        vec![dimension, metric, Finding::ok(format!("{what}: vectors"), self.holds())]
    }

    /// What it holds, in words.
    fn holds(&self) -> String {
        let ours: Vec<String> = self.ours.iter().map(|(name, count)| format!("{count} in {name}")).collect();
        let ours = if ours.is_empty() { "none of ours yet".to_owned() } else { ours.join(", ") };
        match self.others {
            0 => ours,
            others => format!("{ours}; {others} of somebody else"),
        }
    }
}

#[cfg(test)]
mod tests {
    use sparks_engine::State;

    use super::*;

    fn described(json: &str) -> Description {
        let stats = serde_json::from_str(json).expect("an answer");
        Description::new("host", stats, |name| name.starts_with("sparks:"))
    }

    #[test]
    fn an_index_that_suits_us() {
        let description = described(
            r#"{"namespaces":{"sparks:m-1":{"vectorCount":3},"":{"vectorCount":2}},"indexFullness":0,
                "totalVectorCount":5,"dimension":128,"metric":"cosine","vectorType":"dense"}"#,
        );
        let findings = description.findings(128);
        assert!(findings.iter().all(|finding| finding.state == State::Ok), "{findings:?}");
        assert_eq!(findings[2].seen, "3 in sparks:m-1; 2 of somebody else");
    }

    #[test]
    fn an_index_that_does_not() {
        let states = |json: &str| described(json).findings(128).iter().map(|f| f.state).collect::<Vec<_>>();
        assert_eq!(states(r#"{"dimension":3,"metric":"dotproduct"}"#), [State::Fail, State::Fail, State::Ok]);
        assert_eq!(states(r#"{"metric":"cosine"}"#), [State::Fail, State::Ok, State::Ok]);
        assert_eq!(states(r#"{"dimension":128}"#), [State::Ok, State::Warn, State::Ok], "older versions say no metric");
        let remedy = described(r#"{"dimension":3}"#).findings(128)[0].remedy.clone().unwrap_or_default();
        assert!(remedy.contains("128 dimensions") && remedy.contains("cosine"), "{remedy}");
    }
}
