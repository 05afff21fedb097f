//! Deprecated keys of renamed settings.

use std::fmt;

use crate::Origin;

/// Deprecated keys with the keys that replaced them. Both accept the same values.
pub(crate) const ALIASES: &[Alias] = &[
    Alias { deprecated: "darkroom.isolate", key: "decoder.isolate" },
    Alias { deprecated: "faces.companion", key: "faces.secondary_analyzer" },
    Alias { deprecated: "faces.founding.max_turn", key: "faces.new_person.max_turn" },
    Alias { deprecated: "faces.founding.min_confidence", key: "faces.new_person.min_confidence" },
    Alias { deprecated: "faces.founding.min_sharpness", key: "faces.new_person.min_sharpness" },
    Alias { deprecated: "faces.founding.min_size", key: "faces.new_person.min_size_px" },
    Alias { deprecated: "limits.max_memory_mb", key: "limits.max_memory_mib" },
    Alias { deprecated: "limits.max_seconds", key: "limits.max_cpu_seconds" },
    Alias { deprecated: "queue.max_deaths", key: "queue.max_crashes" },
    Alias { deprecated: "queue.max_receives", key: "queue.max_attempts" },
    Alias { deprecated: "queue.visibility_seconds", key: "queue.visibility_timeout_seconds" },
    Alias { deprecated: "queue.wait_seconds", key: "queue.prerequisite_timeout_seconds" },
];

/// A deprecated key and its replacement.
pub(crate) struct Alias {
    pub deprecated: &'static str,
    pub key: &'static str,
}

/// The use of a deprecated name, for a warning in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// The deprecated key, or environment variable, as it is written.
    pub name: String,
    /// The key or environment variable to use instead.
    pub replacement: String,
    /// The layer that uses the deprecated name.
    pub origin: Origin,
}

impl fmt::Display for Deprecation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "setting {} is deprecated; use {}", self.name, self.replacement)
    }
}
