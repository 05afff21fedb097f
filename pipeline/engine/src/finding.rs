//! What an examination found.

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How it is.
    pub state: State,
    /// What was looked at.
    pub what: String,
    /// What was seen.
    pub seen: String,
    /// What helps, where something has to.
    pub remedy: Option<String>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Ok,
    /// A worker works, but somebody should know.
    Warn,
    /// A worker does not work.
    Fail,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Finding {
    /// All is well.
    pub fn ok(what: impl Into<String>, seen: impl ToString) -> Self {
        Self { state: State::Ok, what: what.into(), seen: seen.to_string(), remedy: None }
    }

    /// Somebody should know.
    pub fn warn(what: impl Into<String>, seen: impl ToString, remedy: impl Into<String>) -> Self {
        Self { state: State::Warn, what: what.into(), seen: seen.to_string(), remedy: Some(remedy.into()) }
    }

    /// A worker does not work like this.
    pub fn fail(what: impl Into<String>, seen: impl ToString, remedy: impl Into<String>) -> Self {
        Self { state: State::Fail, what: what.into(), seen: seen.to_string(), remedy: Some(remedy.into()) }
    }
}
