//! Generates `docs/configuration.md` from `default.toml`.

use std::{env, fmt::Write, fs, path::Path};

use crate::{DEFAULTS, alias::ALIASES, setting::variable};

/// Set to 1 to write the file instead of comparing it.
const UPDATE: &str = "UPDATE_DOCS";

const INTRODUCTION: &str = "\
# Configuration

<!-- Generated from config/default.toml by `UPDATE_DOCS=1 cargo test -p sparks-config`. Do not edit. -->

Settings are read from four layers; each overrides the previous one:

1. the defaults, [config/default.toml](../config/default.toml)
2. the settings file, named by `--config` or `SPARKS_CONFIG`
3. environment variables: `SPARKS_` followed by the key in upper case with dots replaced by underscores
4. command-line flags

A settings file needs to contain only the values that differ from the defaults; [config/aws.toml](../config/aws.toml) is an
example for AWS. Unknown keys and invalid values are errors, and all of them are reported at once. `sparks config check`
validates the settings, `sparks config show` lists every setting with its value and origin.

Deprecated names are still accepted and log the warning `setting X is deprecated; use Y`. It is an error if one layer sets
both a deprecated name and its replacement. [Deprecated names](#deprecated-names) lists them.
";

#[test]
fn configuration_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let expected = render();
    if env::var_os(UPDATE).is_some_and(|value| value == "1") {
        fs::write(&path, expected).expect("docs/configuration.md is writable");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/configuration.md is out of date; run `{UPDATE}=1 cargo test -p sparks-config`");
}

fn render() -> String {
    let mut out = format!("{INTRODUCTION}\n## Top level\n");
    let (mut section, mut comment) = (String::new(), Vec::new());
    for line in DEFAULTS.lines() {
        if let Some(text) = line.strip_prefix('#') {
            comment.push(text.trim());
            continue;
        }
        let doc = comment.join(" ");
        comment.clear();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{name}.");
            write!(out, "\n## `[{name}]`\n\n{doc}\n").expect("writing to a string");
        } else if let Some((name, value)) = line.split_once(" = ") {
            write!(out, "{}", entry(&format!("{section}{name}"), value, &doc)).expect("writing to a string");
        }
    }
    out.push_str("\n## Deprecated names\n\n| deprecated key | deprecated variable | use |\n|---|---|---|\n");
    for alias in ALIASES {
        let (deprecated, key) = (alias.deprecated, alias.key);
        writeln!(out, "| `{deprecated}` | `{}` | `{key}` |", variable(deprecated)).expect("writing to a string");
    }
    out
}

fn entry(key: &str, value: &str, doc: &str) -> String {
    let deprecated = ALIASES.iter().find(|alias| alias.key == key).map_or_else(String::new, |alias| {
        format!("<br>\nDeprecated: `{}` (`{}`)", alias.deprecated, variable(alias.deprecated))
    });
    format!("\n### `{key}`\n\nDefault: `{value}`<br>\nEnvironment variable: `{}`{deprecated}\n\n{doc}\n", variable(key))
}
