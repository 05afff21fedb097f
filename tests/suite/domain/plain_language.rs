//! Plain language: code, help and documents use the words of docs/glossary.md and not those they replaced.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sparks_tests::binary::root;

/// Words without a referent. They may occur in quotations, so a few are tolerated in the whole repository.
const VAGUE: [&str; 9] = ["whoever", "whom", "somebody", "nobody", "everybody", "anew", "mend", "mends", "mended"];
const TOLERATED: usize = 19;

/// Words that the glossary replaced, and what to write instead.
const REPLACED: [(&str, &str); 16] = [
    ("accompanied", "primary and secondary analyzer"),
    ("darkroom", "image processor, or decoder process"),
    ("easel", "renderer"),
    ("estate", "cloud resources"),
    ("founding", "new person"),
    ("guise", "alias"),
    ("guises", "aliases"),
    ("lookalikes", "suspected duplicates"),
    ("mishap", "decoder failure"),
    ("patiently", "with retry"),
    ("perseverance", "retry policy"),
    ("setback", "stage error"),
    ("stranger", "new person, or unidentified face"),
    ("strangers", "new persons, or unidentified faces"),
    ("turnstile", "arrival order"),
    ("unlearn", "remove"),
];

/// Files that have to contain such words: this one, the old names of settings, stored strings, and licences. No words: all.
const ALLOWED: [(&str, &[&str]); 11] = [
    ("tests/suite/domain/plain_language.rs", &[]),
    ("config/src", &["darkroom", "founding"]),
    ("docs/configuration.md", &["darkroom", "founding"]),
    ("CHANGELOG.md", &["darkroom", "founding"]),
    ("tests/fixtures/schema_2.sql", &["somebody"]),
    ("tests/suite/scenarios/command_line.rs", &["darkroom", "founding"]),
    ("LICENSE", &[]),
    ("pipeline/faces/models/NOTICE.md", &["whom"]),
    ("tests/photos/NOTICE.md", &["whom"]),
    ("worker/aws/src/dynamo/face_items.rs", &["nobody"]),
    ("docs/data-model.md", &["nobody"]),
];

const ENDINGS: [&str; 11] = ["rs", "md", "toml", "yaml", "yml", "py", "sql", "mjs", "sh", "svg", "json"];
const SKIPPED: [&str; 6] = ["target", ".git", "golden", "corpus", "node_modules", "photos"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                files(&path, found);
            }
        } else if path.extension().is_none_or(|ending| ENDINGS.iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
}

/// Returns each occurrence of one of these words with its file and line.
fn occurrences<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut paths = Vec::new();
    files(root(), &mut paths);
    assert!(paths.len() > 400, "{} files: is this the repository?", paths.len());
    let mut found = Vec::new();
    for path in paths {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let allowed: Vec<_> = ALLOWED.iter().filter(|(file, _)| name.starts_with(file)).collect();
        for (number, line) in text.lines().enumerate() {
            let tokens = line.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
            for token in tokens.filter(|token| words.clone().any(|word| word == token)) {
                let is_allowed = |(_, words): &&&(&str, &[&str])| words.is_empty() || words.contains(&token.as_str());
                if !allowed.iter().any(|entry| is_allowed(&entry)) {
                    found.push(format!("{name}:{}: {token}", number + 1));
                }
            }
        }
    }
    found
}

#[test]
fn vague_words_are_rare() {
    let found = occurrences(VAGUE.into_iter());
    assert!(found.len() <= TOLERATED, "{} uses of {VAGUE:?}:\n{}", found.len(), found.join("\n"));
}

#[test]
fn replaced_words_do_not_come_back() {
    let found = occurrences(REPLACED.iter().map(|(word, _)| *word));
    assert!(found.is_empty(), "docs/glossary.md has the words to use; {REPLACED:?}:\n{}", found.join("\n"));
}
