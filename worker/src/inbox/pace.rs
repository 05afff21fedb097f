//! How long the inbox waits for what.

use std::time::Duration;

/// How long the inbox waits for what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Between two looks at the folder.
    pub poll: Duration,
    /// Between two looks while files are waiting.
    pub soon: Duration,
    /// A file that has not changed for this long is looked at.
    pub quiet: Duration,
    /// A file that does not look whole is taken as it is once it has not changed for this long.
    pub patient: Duration,
    /// What went wrong is tried again after this.
    pub again: Duration,
    /// For so long files are taken before the folder is looked at again.
    pub round: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(1),
            soon: Duration::from_millis(100),
            quiet: Duration::from_secs(2),
            patient: Duration::from_secs(30),
            again: Duration::from_secs(10),
            round: Duration::from_secs(1),
        }
    }
}
