//! A single setting: key, value, origin and documentation.

use std::{fmt, path::PathBuf};

use toml::Value;

/// The text of `default.toml`: every key with its documentation and default.
pub const DEFAULTS: &str = include_str!("../default.toml");

/// Prefix of the environment variables of settings.
pub(crate) const PREFIX: &str = "SPARKS_";

/// The layer a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `default.toml`.
    Default,
    /// The settings file at this path.
    File(PathBuf),
    /// The environment variable of this name.
    Environment(String),
    /// The flag of this name.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => write!(out, "the defaults"),
            Origin::File(path) => write!(out, "file `{}`", path.display()),
            Origin::Environment(name) => write!(out, "environment variable `{name}`"),
            Origin::Flag(name) => write!(out, "flag `{name}`"),
        }
    }
}

/// A setting with its current value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Path in the settings file, such as `variants.large.quality`.
    pub key: String,
    /// The effective value.
    pub value: Value,
    /// The layer that set the value.
    pub origin: Origin,
    /// The comment above the key in `default.toml`, on one line.
    pub doc: String,
}

impl Setting {
    /// Returns the name of the environment variable that sets it.
    pub fn variable(&self) -> String {
        variable(&self.key)
    }

    /// Returns all settings with their defaults, in the order of `default.toml`.
    pub(crate) fn defaults() -> Vec<Setting> {
        let (mut settings, mut section, mut doc) = (Vec::new(), String::new(), Vec::new());
        for line in DEFAULTS.lines() {
            if let Some(comment) = line.strip_prefix('#') {
                doc.push(comment.trim());
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = format!("{name}.");
            } else if let Some((name, value)) = line.split_once(" = ") {
                settings.push(Setting {
                    key: format!("{section}{name}"),
                    value: value.parse().expect("a default is a TOML value on one line"),
                    origin: Origin::Default,
                    doc: doc.join(" "),
                });
            }
            doc.clear();
        }
        settings
    }
}

/// Returns the name of the environment variable that sets a key.
pub(crate) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_uppercase())
}
