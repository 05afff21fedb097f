//! A finding of `sparks doctor`.

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The status of the checked resource.
    pub status: FindingStatus,
    /// The checked resource or setting.
    pub subject: String,
    /// The observation.
    pub observation: String,
    /// The remedy, unless the status is [`FindingStatus::Ok`].
    pub remedy: Option<String>,
}

/// The status of a checked resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingStatus {
    /// No problem.
    Ok,
    /// A worker can run, but an operator should look.
    Warn,
    /// A worker cannot run.
    Fail,
}

impl FindingStatus {
    /// Returns the name, as printed by `sparks doctor`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Finding {
    /// Creates a finding without a problem.
    pub fn ok(subject: impl Into<String>, observation: impl ToString) -> Self {
        Self { status: FindingStatus::Ok, subject: subject.into(), observation: observation.to_string(), remedy: None }
    }

    /// Creates a finding that an operator should look at.
    pub fn warn(subject: impl Into<String>, observation: impl ToString, remedy: impl Into<String>) -> Self {
        Self { status: FindingStatus::Warn, remedy: Some(remedy.into()), ..Self::ok(subject, observation) }
    }

    /// Creates a finding that keeps a worker from running.
    pub fn fail(subject: impl Into<String>, observation: impl ToString, remedy: impl Into<String>) -> Self {
        Self { status: FindingStatus::Fail, remedy: Some(remedy.into()), ..Self::ok(subject, observation) }
    }
}
