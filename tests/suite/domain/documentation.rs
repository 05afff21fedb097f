//! The documents stay true: names of metrics, dead-letter causes, events and log lines occur in them, and links resolve.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use sparks_engine::Cause;
use sparks_tests::binary::root;

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the files below the folder that end in this extension.
fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|ending| ending == extension) {
            found.push(path);
        }
    }
    found
}

/// Returns the metrics that the worker registers, with the unit and without the suffix of the type. Parsed from the source, because
/// the worker is a binary crate.
fn registered_metrics() -> BTreeSet<String> {
    let source = read("worker/src/telemetry/metrics.rs");
    let calls = source.split("registry.register").skip(1);
    let name = |call: &str| {
        let unit = if call.starts_with("_with_unit(") { "_seconds" } else { "" };
        format!("sparks_{}{unit}", call.split('"').nth(1).unwrap())
    };
    calls.map(name).collect()
}

/// Returns the metrics that the text names, without the suffixes that the text format adds.
fn named_metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("sparks_"));
    let without_suffix = |word: &str| {
        let suffix = ["_total", "_info", "_bucket", "_count", "_sum"].into_iter().find(|suffix| word.ends_with(suffix));
        suffix.and_then(|suffix| word.strip_suffix(suffix)).unwrap_or(word).to_owned()
    };
    words.map(without_suffix).collect()
}

#[test]
fn operations_describes_every_metric_and_no_other() {
    let registered = registered_metrics();
    assert!(registered.len() >= 14, "metrics found in the source: {registered:?}");
    assert_eq!(
        named_metrics(&read("docs/operations.md")),
        registered,
        "metrics in docs/operations.md, metrics of the worker"
    );
}

#[test]
fn operations_describes_every_dead_letter_cause() {
    let runbook = read("docs/operations.md");
    for code in Cause::codes() {
        assert!(runbook.contains(&format!("\n| `{code}` |")), "docs/operations.md has no row for the cause {code}");
    }
}

/// The first column of the tables in "Log lines and errors" has texts in backticks, with `...` for values.
#[test]
fn operations_quotes_log_lines_as_printed() {
    let runbook = read("docs/operations.md");
    let section = runbook.split("\n## ").find(|section| section.starts_with("Log lines and errors")).unwrap();
    let sources: String = ["worker", "pipeline", "config"]
        .iter()
        .flat_map(|folder| files_below(&root().join(folder), "rs"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    // Joins the lines of string literals that end in a backslash.
    let sources: Vec<&str> = sources.split("\\\n").map(str::trim_start).collect();
    let sources = sources.concat();
    // Messages of SQLite and of the operating system.
    let foreign = ["database or disk is full", "No space left on device"];
    let mut unknown = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let first_column = row.split(" | ").next().unwrap();
        for quoted in first_column.split('`').skip(1).step_by(2) {
            let parts = quoted.split("...").map(str::trim).filter(|part| part.len() >= 4 && !foreign.contains(part));
            unknown.extend(parts.filter(|part| !sources.contains(*part)).map(str::to_owned));
        }
    }
    assert!(unknown.is_empty(), "docs/operations.md quotes texts that no source has: {unknown:#?}");
}

#[test]
fn data_model_describes_every_event_type() {
    let data_model = read("docs/data-model.md");
    let golden = fs::read_dir(root().join("tests/golden/events")).unwrap();
    let names = golden.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let types: BTreeSet<String> = names.filter_map(|name| Some(name.split_once('.')?.0.to_owned())).collect();
    assert!(types.len() >= 15, "event types with golden files: {types:?}");
    for event_type in types {
        assert!(
            data_model.contains(&format!("\n#### {event_type}\n")),
            "docs/data-model.md lacks the event {event_type}"
        );
    }
}

/// Returns the targets of links and images, in Markdown and in HTML.
fn link_targets(markdown: &str) -> Vec<&str> {
    let openings = ["](", "src=\"", "srcset=\"", "href=\""];
    let targets = openings.iter().flat_map(|opening| markdown.split(opening).skip(1));
    targets.filter_map(|rest| rest.split([')', '"', ' ', '\n']).next()).collect()
}

#[test]
fn relative_links_of_documents_resolve() {
    let mut documents = files_below(&root().join("docs"), "md");
    documents.extend(files_below(&root().join(".github"), "md"));
    let others = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "tests/README.md", "docker/README.md"];
    documents.extend(others.map(|name| root().join(name)));
    let mut broken = Vec::new();
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for target in link_targets(&text) {
            let file = target.split('#').next().unwrap();
            let is_relative = !file.is_empty() && !file.contains(':');
            if is_relative && !document.parent().unwrap().join(file).exists() {
                broken.push(format!("{}: {target}", document.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "links to files that do not exist:\n{}", broken.join("\n"));
}
