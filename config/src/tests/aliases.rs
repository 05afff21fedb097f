use std::path::Path;

use toml::Value;

use super::{error_text, load_layers, origin};
use crate::{
    FaceModel, Loaded, Origin, Setting, Settings, alias::ALIASES, load, setting::variable, value_kind::ValueKind,
};

/// The settings file of the release before settings were renamed.
const PREVIOUS_RELEASE: &str = include_str!("previous_release.toml");

/// Returns a valid value that differs from the default.
fn other_value(key: &str) -> Value {
    let default = value(&load_layers("", &[], &[]).expect("valid defaults"), key);
    let candidates: Vec<Value> = match ValueKind::of(key).expect("every key has a kind") {
        ValueKind::Text | ValueKind::OptionalText => vec!["other".into()],
        ValueKind::Integer(range) => vec![(*range.start()).into(), (*range.end()).into()],
        ValueKind::Float(range) => vec![(*range.start()).into(), (*range.end()).into()],
        ValueKind::Choice(names) => names.iter().map(|&name| name.into()).collect(),
        ValueKind::Choices(names) => names.iter().map(|&name| vec![Value::from(name)].into()).collect(),
        ValueKind::Boolean => vec![true.into(), false.into()],
    };
    candidates.into_iter().find(|candidate| *candidate != default).expect("more than one valid value")
}

fn value(loaded: &Loaded, key: &str) -> Value {
    loaded.keys().find(|setting| setting.key == key).expect("known key").value
}

fn warnings(loaded: &Loaded) -> Vec<String> {
    loaded.deprecations.iter().map(ToString::to_string).collect()
}

#[test]
fn aliases_replace_keys_that_do_not_exist_by_keys_that_do() {
    let keys: Vec<_> = Setting::defaults().into_iter().map(|setting| setting.key).collect();
    for alias in ALIASES {
        assert!(!keys.iter().any(|key| key == alias.deprecated), "`{}` is a key", alias.deprecated);
        assert!(keys.iter().any(|key| key == alias.key), "`{}` is not a key", alias.key);
        assert_eq!(ALIASES.iter().filter(|other| other.key == alias.key).count(), 1, "aliases of `{}`", alias.key);
    }
}

#[test]
fn alias_in_file_sets_the_new_key_with_one_warning() {
    for alias in ALIASES {
        let wanted = other_value(alias.key);
        let (section, name) = alias.deprecated.rsplit_once('.').expect("a key in a section");
        let loaded = load_layers(&format!("[{section}]\n{name} = {wanted}"), &[], &[]).expect("valid settings");
        assert_eq!(value(&loaded, alias.key), wanted, "{}", alias.deprecated);
        assert_eq!(origin(&loaded, alias.key), Origin::File("sparks.toml".into()));
        assert!(
            loaded.keys().all(|setting| setting.key != alias.deprecated),
            "`sparks config show` lists the new key only"
        );
        let warning = format!("setting {} is deprecated; use {}", alias.deprecated, alias.key);
        assert_eq!(warnings(&loaded), [warning]);
        assert_eq!(loaded.deprecations[0].origin, Origin::File("sparks.toml".into()));
    }
}

#[test]
fn alias_in_environment_sets_the_new_key_with_one_warning() {
    for alias in ALIASES {
        let (wanted, deprecated) = (other_value(alias.key), variable(alias.deprecated));
        let text = wanted.as_str().map_or_else(|| wanted.to_string(), str::to_owned);
        let loaded = load_layers("", &[(&deprecated, &text)], &[]).expect("valid settings");
        assert_eq!(value(&loaded, alias.key), wanted, "{deprecated}");
        assert_eq!(origin(&loaded, alias.key), Origin::Environment(deprecated.clone()));
        assert_eq!(warnings(&loaded), [format!("setting {deprecated} is deprecated; use {}", variable(alias.key))]);
    }
}

#[test]
fn alias_beside_its_replacement_in_one_layer_is_an_error() {
    assert_eq!(
        error_text("[darkroom]\nisolate = true\n[decoder]\nisolate = true", &[]),
        "`darkroom.isolate` and `decoder.isolate` in file `sparks.toml` are the same setting: \
         remove `darkroom.isolate`, which is deprecated"
    );
    assert_eq!(
        error_text("", &[("SPARKS_QUEUE_MAX_RECEIVES", "3"), ("SPARKS_QUEUE_MAX_ATTEMPTS", "3")]),
        "`SPARKS_QUEUE_MAX_RECEIVES` and `SPARKS_QUEUE_MAX_ATTEMPTS` in the environment are the same setting: \
         remove `SPARKS_QUEUE_MAX_RECEIVES`, which is deprecated"
    );
    for alias in ALIASES {
        let wanted = other_value(alias.key).to_string();
        let wanted = wanted.trim_matches('"');
        let text = error_text("", &[(&variable(alias.deprecated), wanted), (&variable(alias.key), wanted)]);
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn alias_and_replacement_in_different_layers_override_each_other() {
    let file = "[queue]\nmax_receives = 3";
    let loaded = load_layers(file, &[("SPARKS_QUEUE_MAX_ATTEMPTS", "4")], &[]).expect("valid settings");
    assert_eq!((loaded.settings.queue.max_attempts, loaded.deprecations.len()), (4, 1));
    let file = "[queue]\nmax_attempts = 3";
    let loaded = load_layers(file, &[("SPARKS_QUEUE_MAX_RECEIVES", "4")], &[]).expect("valid settings");
    assert_eq!((loaded.settings.queue.max_attempts, loaded.deprecations.len()), (4, 1));
}

#[test]
fn invalid_value_of_an_alias_is_reported_under_the_written_key() {
    let text = error_text("[darkroom]\nisolate = 5", &[]);
    assert_eq!(text, "`darkroom.isolate` is 5 in file `sparks.toml`: expected true or false");
    assert_eq!(
        error_text("darkroom = 5", &[]),
        "`darkroom` is 5 in file `sparks.toml`: expected a table, `[darkroom]`"
    );
}

#[test]
fn current_names_produce_no_warning() {
    assert!(load_layers(crate::DEFAULTS, &[], &[]).expect("valid settings").deprecations.is_empty());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("aws.toml");
    assert!(load(Some(&path), [], &[]).expect("valid settings").deprecations.is_empty());
}

/// Keys that the previous release did not have.
const ADDED_SINCE: [&str; 3] = ["queue.dead_letter_retention_days", "publish.max_file_mib", "publish.retention_days"];

#[test]
fn settings_file_of_the_previous_release_loads_with_a_warning_per_renamed_key() {
    let loaded = load_layers(PREVIOUS_RELEASE, &[], &[]).expect("valid settings");
    // An explicit choice of models is kept.
    let mut expected = Settings::default();
    expected.faces.models = vec![FaceModel::Dlib, FaceModel::Mobilefacenet];
    assert_eq!(loaded.settings, expected);
    let unset = loaded.keys().filter(|setting| setting.origin == Origin::Default).map(|setting| setting.key);
    assert_eq!(unset.collect::<Vec<_>>(), ADDED_SINCE);
    let mut names: Vec<_> = loaded.deprecations.iter().map(|deprecation| deprecation.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ALIASES.iter().map(|alias| alias.deprecated).collect::<Vec<_>>());
}
