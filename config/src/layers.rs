//! The layers, laid one over the other.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::Deserialize;
use toml::{Table, Value};

use crate::{ConfigError, Origin, Problem, Setting, Settings, kind::Kind, setting::PREFIX};

/// The settings and where each of them comes from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings, checked.
    pub settings: Settings,
    keys: Vec<Setting>,
}

impl Loaded {
    /// Every setting in the order of `default.toml`.
    pub fn keys(&self) -> impl Iterator<Item = Setting> {
        self.keys.iter().cloned()
    }
}

/// Lays the file over the defaults, the environment over the file and the flags over all.
///
/// A flag is its key, its name for error messages (`--data`) and its value. Of the environment only
/// what starts with `SPARKS_` is looked at.
pub fn load(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
    flags: &[(&str, &str, Value)],
) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::defaults();
    if let Some(path) = file {
        layers.file(path, &read(path)?)?;
    }
    layers.environment(environment);
    layers.flags(flags);
    layers.settle()
}

impl Default for Settings {
    fn default() -> Self {
        settings(&Setting::defaults())
    }
}

/// Settings under way: what the layers so far say, and what is wrong with them.
pub(crate) struct Layers {
    keys: Vec<Setting>,
    problems: Vec<Problem>,
}

impl Layers {
    pub(crate) fn defaults() -> Self {
        Layers { keys: Setting::defaults(), problems: Vec::new() }
    }

    pub(crate) fn file(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let table = text.parse().map_err(|error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            ConfigError::Syntax {
                path: path.to_owned(),
                line: 1 + text.bytes().take(start).filter(|&byte| byte == b'\n').count(),
                reason: error.message().replace('\n', ", "),
            }
        })?;
        self.table("", table, &Origin::File(path.to_owned()));
        Ok(())
    }

    pub(crate) fn environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        // Sorted, so that problems come in the same order each time.
        for (name, text) in variables.into_iter().collect::<BTreeMap<_, _>>() {
            let Some(rest) = name.strip_prefix(PREFIX).filter(|rest| !is_foreign(rest)) else {
                continue;
            };
            match self.keys.iter().find(|setting| setting.variable() == name) {
                Some(Setting { key, .. }) => {
                    let (key, value) = (key.clone(), kind(key).parse(text));
                    self.set(&key, value, Origin::Environment(name));
                }
                None => self.problems.push(Problem::Unknown {
                    key: rest.to_lowercase(),
                    nearest: nearest(&name, self.keys.iter().map(Setting::variable)),
                    origin: Origin::Environment(name),
                }),
            }
        }
    }

    pub(crate) fn flags(&mut self, flags: &[(&str, &str, Value)]) {
        for (key, name, value) in flags {
            self.set(key, value.clone(), Origin::Flag((*name).to_owned()));
        }
    }

    pub(crate) fn settle(self) -> Result<Loaded, ConfigError> {
        if !self.problems.is_empty() {
            return Err(ConfigError::Settings(self.problems));
        }
        Ok(Loaded { settings: settings(&self.keys), keys: self.keys })
    }

    /// Sets what a table of the file holds; `prefix` is empty or ends with a dot.
    fn table(&mut self, prefix: &str, table: Table, origin: &Origin) {
        for (name, value) in table {
            let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let name = if name.chars().all(bare) { name } else { format!("{name:?}") };
            let key = format!("{prefix}{name}");
            let inside = format!("{key}.");
            let is_setting = self.keys.iter().any(|setting| setting.key == key);
            let is_section = self.keys.iter().any(|setting| setting.key.starts_with(&inside));
            match value {
                // The keys of an unknown section have nearest ones of their own.
                Value::Table(table) if is_section || !(is_setting || table.is_empty()) => {
                    self.table(&inside, table, origin);
                }
                value if is_section => {
                    self.refuse(&key, &value, origin.clone(), format!("a table, `[{key}]`"));
                }
                value => self.set(&key, value, origin.clone()),
            }
        }
    }

    fn set(&mut self, key: &str, value: Value, origin: Origin) {
        let Some(setting) = self.keys.iter_mut().find(|setting| setting.key == key) else {
            let nearest = nearest(key, self.keys.iter().map(|setting| setting.key.clone()));
            self.problems.push(Problem::Unknown { key: key.to_owned(), origin, nearest });
            return;
        };
        match kind(key).admit(&value) {
            Some(value) => (setting.value, setting.origin) = (value, origin),
            None => self.refuse(key, &value, origin, kind(key).to_string()),
        }
    }

    fn refuse(&mut self, key: &str, value: &Value, origin: Origin, expected: String) {
        let value = match value {
            Value::String(text) => format!("{text:?}"), // on one line
            other => other.to_string(),
        };
        self.problems.push(Problem::Invalid { key: key.to_owned(), origin, value, expected });
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ConfigError::Missing { path: path.to_owned() },
        _ => ConfigError::Unreadable { path: path.to_owned(), source },
    })
}

/// Whether a variable that starts like a setting belongs to somebody else.
pub(crate) fn is_foreign(rest: &str) -> bool {
    // `SPARKS_CONFIG` is the path of the file, `SPARKS_LOG` the log filter and `SPARKS_LOG_FORMAT` its form: all
    // are needed before there are settings. `SPARKS_TEST_` steers tests. For a service called `sparks` Kubernetes puts
    // `SPARKS_SERVICE_HOST`, `SPARKS_PORT`, `SPARKS_PORT_80_TCP` and the like into every pod of the
    // namespace, and nobody who only named a service should find the worker refusing to start.
    matches!(rest, "CONFIG" | "LOG" | "LOG_FORMAT" | "PORT")
        || ["TEST_", "SERVICE_", "PORT_"].iter().any(|start| rest.starts_with(start))
}

fn kind(key: &str) -> Kind {
    Kind::of(key).expect("every key of `default.toml` has a kind")
}

fn nearest(wanted: &str, known: impl Iterator<Item = String>) -> String {
    // Whoever begins like a known key means one of those.
    let begins = |known: &String| known.starts_with(wanted);
    let likeness = |known: &String| strsim::normalized_damerau_levenshtein(wanted, known);
    let nearer = |a: &String, b: &String| begins(a).cmp(&begins(b)).then(likeness(a).total_cmp(&likeness(b)));
    known.max_by(nearer).unwrap_or_default()
}

fn settings(keys: &[Setting]) -> Settings {
    let mut root = Table::new();
    for Setting { key, value, .. } in keys {
        let (sections, name) = key.rsplit_once('.').unwrap_or(("", key));
        let mut table = &mut root;
        for section in sections.split_terminator('.') {
            let inner = table.entry(section).or_insert_with(|| Table::new().into());
            table = inner.as_table_mut().expect("a section holds no value of its own");
        }
        table.insert(name.to_owned(), value.clone());
    }
    Settings::deserialize(root).expect("what a kind admits, the settings hold")
}
