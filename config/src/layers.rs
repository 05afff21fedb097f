//! Loading and layering of settings.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    mem::{self, Discriminant},
    path::Path,
};

use serde::Deserialize;
use toml::{Table, Value};

use crate::{
    ConfigError, Deprecation, Origin, Setting, SettingError, Settings,
    alias::{ALIASES, Alias},
    setting::{PREFIX, variable},
    value_kind::ValueKind,
};

/// The effective settings and the origin of each.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The validated settings.
    pub settings: Settings,
    /// Deprecated names in use, which the caller logs as warnings.
    pub deprecations: Vec<Deprecation>,
    keys: Vec<Setting>,
}

impl Loaded {
    /// Returns every setting in the order of `default.toml`.
    pub fn keys(&self) -> impl Iterator<Item = Setting> {
        self.keys.iter().cloned()
    }
}

/// Loads the settings: the file overrides the defaults, the environment the file, and the flags everything.
///
/// A flag consists of its key, its name for error messages (`--data`) and its value. Environment variables that do not start
/// with `SPARKS_` are ignored.
pub fn load(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
    flags: &[(&str, &str, Value)],
) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::defaults();
    if let Some(path) = file {
        layers.add_file(path, &read(path)?)?;
    }
    layers.add_environment(environment);
    layers.add_flags(flags);
    layers.finish()
}

impl Default for Settings {
    fn default() -> Self {
        settings(&Setting::defaults())
    }
}

/// The layers added so far, and their errors.
pub(crate) struct Layers {
    keys: Vec<Setting>,
    /// The name under which each layer sets a key, to detect a deprecated key beside its replacement.
    names: HashMap<(Discriminant<Origin>, String), String>,
    deprecations: Vec<Deprecation>,
    errors: Vec<SettingError>,
}

/// A known setting as a layer refers to it: by key, or in the environment by variable.
struct Reference {
    /// The key, never a deprecated one.
    key: String,
    /// The name as the layer writes it.
    written: String,
    /// The name to write, which differs from `written` if that is deprecated.
    current: String,
}

impl Layers {
    pub(crate) fn defaults() -> Self {
        Layers { keys: Setting::defaults(), names: HashMap::new(), deprecations: Vec::new(), errors: Vec::new() }
    }

    pub(crate) fn add_file(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let table = text.parse().map_err(|error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            ConfigError::Syntax {
                path: path.to_owned(),
                line: 1 + text.bytes().take(start).filter(|&byte| byte == b'\n').count(),
                reason: error.message().replace('\n', ", "),
            }
        })?;
        self.add_table("", table, &Origin::File(path.to_owned()));
        Ok(())
    }

    pub(crate) fn add_environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        // Sorted to report errors in a deterministic order.
        for (name, text) in variables.into_iter().collect::<BTreeMap<_, _>>() {
            let Some(rest) = name.strip_prefix(PREFIX).filter(|rest| !is_foreign(rest)) else {
                continue;
            };
            match self.find(|key| variable(key) == name) {
                Some(key) => {
                    let (value, current) = (kind(&key).parse(text), variable(&key));
                    self.set(Reference { key, written: name.clone(), current }, value, Origin::Environment(name));
                }
                None => self.errors.push(SettingError::Unknown {
                    key: rest.to_lowercase(),
                    nearest: nearest(&name, self.keys.iter().map(Setting::variable)),
                    origin: Origin::Environment(name),
                }),
            }
        }
    }

    pub(crate) fn add_flags(&mut self, flags: &[(&str, &str, Value)]) {
        for (key, name, value) in flags {
            self.set_key(key, value.clone(), Origin::Flag((*name).to_owned()));
        }
    }

    pub(crate) fn finish(self) -> Result<Loaded, ConfigError> {
        if !self.errors.is_empty() {
            return Err(ConfigError::Settings(self.errors));
        }
        Ok(Loaded { settings: settings(&self.keys), deprecations: self.deprecations, keys: self.keys })
    }

    /// Applies a table of the file. `prefix` is empty or ends with a dot.
    fn add_table(&mut self, prefix: &str, table: Table, origin: &Origin) {
        for (name, value) in table {
            let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let name = if name.chars().all(is_bare) { name } else { format!("{name:?}") };
            let key = format!("{prefix}{name}");
            let inside = format!("{key}.");
            let is_setting = self.find(|known| known == key).is_some();
            let is_section = self.find(|known| known.starts_with(&inside)).is_some();
            match value {
                // Descends into unknown sections too, because each of their keys has a nearest key of its own.
                Value::Table(table) if is_section || !(is_setting || table.is_empty()) => {
                    self.add_table(&inside, table, origin);
                }
                value if is_section => {
                    self.reject(&key, &value, origin.clone(), format!("a table, `[{key}]`"));
                }
                value => self.set_key(&key, value, origin.clone()),
            }
        }
    }

    /// Returns the first key that matches, or the replacement of the first deprecated key that does.
    fn find(&self, matches: impl Fn(&str) -> bool) -> Option<String> {
        let key = self.keys.iter().map(|setting| setting.key.as_str()).find(|key| matches(key));
        let replacement = || ALIASES.iter().find(|alias| matches(alias.deprecated)).map(|Alias { key, .. }| *key);
        key.or_else(replacement).map(str::to_owned)
    }

    fn set_key(&mut self, written: &str, value: Value, origin: Origin) {
        match self.find(|key| key == written) {
            Some(key) => {
                let reference = Reference { current: key.clone(), key, written: written.to_owned() };
                self.set(reference, value, origin);
            }
            None => {
                let nearest = nearest(written, self.keys.iter().map(|setting| setting.key.clone()));
                self.errors.push(SettingError::Unknown { key: written.to_owned(), origin, nearest });
            }
        }
    }

    fn set(&mut self, reference: Reference, value: Value, origin: Origin) {
        let Reference { key, written, current } = reference;
        if let Some(other) = self.names.insert((mem::discriminant(&origin), key.clone()), written.clone())
            && other != written
        {
            let deprecated = if written == current { other } else { written.clone() };
            let layer = match &origin {
                Origin::Environment(_) => "the environment".to_owned(),
                origin => origin.to_string(),
            };
            self.errors.push(SettingError::Duplicate { deprecated, name: current.clone(), layer });
        }
        match kind(&key).validate(&value) {
            Some(value) => {
                let setting = self.keys.iter_mut().find(|setting| setting.key == key).expect("a known key");
                (setting.value, setting.origin) = (value, origin.clone());
            }
            None => {
                let shown = if matches!(origin, Origin::Environment(_)) { &key } else { &written };
                self.reject(shown, &value, origin.clone(), kind(&key).to_string());
            }
        }
        if written != current {
            self.deprecations.push(Deprecation { name: written, replacement: current, origin });
        }
    }

    fn reject(&mut self, key: &str, value: &Value, origin: Origin, expected: String) {
        let value = match value {
            Value::String(text) => format!("{text:?}"), // on one line
            other => other.to_string(),
        };
        self.errors.push(SettingError::Invalid { key: key.to_owned(), origin, value, expected });
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ConfigError::Missing { path: path.to_owned() },
        _ => ConfigError::Unreadable { path: path.to_owned(), source },
    })
}

/// Whether a variable with the prefix of settings is not a setting. `rest` is the name without the prefix.
pub(crate) fn is_foreign(rest: &str) -> bool {
    // `SPARKS_CONFIG` (path of the settings file), `SPARKS_LOG` (log filter) and `SPARKS_LOG_FORMAT` are needed before the
    // settings are loaded. `SPARKS_TEST_` variables control tests. For a service named `sparks`, Kubernetes adds
    // `SPARKS_SERVICE_HOST`, `SPARKS_PORT`, `SPARKS_PORT_80_TCP` and the like to every pod of the namespace; the worker must
    // start regardless.
    matches!(rest, "CONFIG" | "LOG" | "LOG_FORMAT" | "PORT")
        || ["TEST_", "SERVICE_", "PORT_"].iter().any(|start| rest.starts_with(start))
}

fn kind(key: &str) -> ValueKind {
    ValueKind::of(key).expect("every key of `default.toml` has a kind")
}

/// Returns the most similar known name: one that starts with `wanted` if there is any, then by Damerau-Levenshtein distance.
fn nearest(wanted: &str, known: impl Iterator<Item = String>) -> String {
    let is_prefix = |known: &String| known.starts_with(wanted);
    let similarity = |known: &String| strsim::normalized_damerau_levenshtein(wanted, known);
    let order = |a: &String, b: &String| is_prefix(a).cmp(&is_prefix(b)).then(similarity(a).total_cmp(&similarity(b)));
    known.max_by(order).unwrap_or_default()
}

fn settings(keys: &[Setting]) -> Settings {
    let mut root = Table::new();
    for Setting { key, value, .. } in keys {
        let (sections, name) = key.rsplit_once('.').unwrap_or(("", key));
        let mut table = &mut root;
        for section in sections.split_terminator('.') {
            let inner = table.entry(section).or_insert_with(|| Table::new().into());
            table = inner.as_table_mut().expect("a section has no value of its own");
        }
        table.insert(name.to_owned(), value.clone());
    }
    Settings::deserialize(root).expect("the settings accept every value that its kind accepts")
}
