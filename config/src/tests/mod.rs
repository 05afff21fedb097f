mod aliases;
mod reference;

use std::{collections::BTreeSet, path::Path};

use toml::Value;

use crate::{
    Analyzer, Backend, ConfigError, DEFAULTS, Fit, Loaded, Origin, Setting, Settings, TaggingKey,
    alias::ALIASES,
    layers::{Layers, is_foreign},
    load,
    setting::variable,
    value_kind::ValueKind,
};

fn load_layers(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str, Value)]) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::defaults();
    layers.add_file(Path::new("sparks.toml"), file)?;
    layers.add_environment(environment.iter().map(|(name, text)| (name.to_string(), text.to_string())));
    layers.add_flags(flags);
    layers.finish()
}

fn error_text(file: &str, environment: &[(&str, &str)]) -> String {
    load_layers(file, environment, &[]).expect_err("invalid settings").to_string()
}

fn origin(loaded: &Loaded, key: &str) -> Origin {
    loaded.keys().find(|setting| setting.key == key).expect("known key").origin
}

#[test]
fn defaults_load() {
    let loaded = load(None, [], &[]).expect("valid defaults");
    assert!(loaded.keys().all(|setting| setting.origin == Origin::Default));
    let settings = loaded.settings;
    assert_eq!(settings, Settings::default());
    assert_eq!(settings, toml::from_str(DEFAULTS).expect("valid TOML"));
    assert_eq!(settings.data, Path::new("./sparks-data"));
    assert_eq!(settings.limits.max_bytes, 50 << 20);
    assert_eq!((settings.variants.large.fit, settings.variants.medium.fit), (Fit::Inside, Fit::Cover));
    assert_eq!(settings.faces.analyzer, Analyzer::Local);
    assert_eq!(settings.table.tagging_s3_key, TaggingKey::Large);
    assert_eq!(settings.prices.rekognition_call, 0.001);
}

#[test]
fn prices_load_from_every_layer() {
    let environment = [("SPARKS_PRICES_CPU_HOUR", "0.02")];
    let loaded = load_layers("[prices]\nrekognition_call = 0", &environment, &[]).expect("valid settings");
    assert_eq!((loaded.settings.prices.rekognition_call, loaded.settings.prices.cpu_hour), (0.0, 0.02));
    let text = error_text("[prices]\ncpu_hour = -1", &[]);
    assert!(text.contains("expected a number from 0 to 1000"), "{text}");
    let text = error_text("[prices]\ncpu_hours = 1", &[]);
    assert!(text.contains("did you mean `prices.cpu_hour`?"), "{text}");
}

#[test]
fn settings_round_trip_through_toml() {
    let text = toml::to_string(&Settings::default()).expect("serializable settings");
    assert_eq!(load_layers(&text, &[], &[]).expect("valid settings").settings, Settings::default());
}

#[test]
fn each_layer_overrides_the_previous_one() {
    let file = "jobs = 2\nuploader = 'a@b'\n[faces]\nthreshold = 1\n[variants.large]\nquality = 80";
    let environment = [("SPARKS_JOBS", "3"), ("SPARKS_VARIANTS_LARGE_QUALITY", "70")];
    let loaded = load_layers(file, &environment, &[("jobs", "--jobs", 4.into())]).expect("valid settings");
    assert_eq!(loaded.settings.uploader, "a@b");
    assert_eq!(loaded.settings.faces.threshold, 1.0);
    assert_eq!(loaded.settings.variants.large.quality, 70.0);
    assert_eq!(loaded.settings.variants.medium.quality, 85.0);
    assert_eq!(loaded.settings.jobs, 4);
    assert_eq!(origin(&loaded, "uploader"), Origin::File("sparks.toml".into()));
    assert_eq!(origin(&loaded, "variants.large.quality"), Origin::Environment("SPARKS_VARIANTS_LARGE_QUALITY".into()));
    assert_eq!(origin(&loaded, "jobs"), Origin::Flag("--jobs".into()));
    assert_eq!(origin(&loaded, "data"), Origin::Default);
}

#[test]
fn environment_values_are_parsed_by_the_type_of_the_key() {
    let environment = [("SPARKS_UPLOADER", "7"), ("SPARKS_CROP_PADDING", "1"), ("SPARKS_FACES_ANALYZER", "off")];
    let settings = load_layers("", &environment, &[]).expect("valid settings").settings;
    assert_eq!((settings.uploader.as_str(), settings.crop.padding), ("7", 1.0));
    assert_eq!(settings.faces.analyzer, Analyzer::Off);
}

#[test]
fn unknown_key_in_file_suggests_the_nearest() {
    for (file, key, nearest) in [
        ("[limits]\nmax_byte = 1", "limits.max_byte", "limits.max_bytes"),
        ("max_bytes = 1", "max_bytes", "limits.max_bytes"),
        ("[varients.large]\nquality = 1", "varients.large.quality", "variants.large.quality"),
        ("[face]", "face", "faces.index"),
        ("'limits.max_bytes' = 1", "\"limits.max_bytes\"", "limits.max_bytes"),
    ] {
        let expected = format!("unknown key `{key}` in file `sparks.toml`: did you mean `{nearest}`?");
        assert_eq!(error_text(file, &[]), expected);
    }
}

#[test]
fn unknown_variable_suggests_the_nearest() {
    assert_eq!(
        error_text("", &[("SPARKS_LIMIT_MAX_BYTES", "1")]),
        "unknown key `limit_max_bytes` in environment variable `SPARKS_LIMIT_MAX_BYTES`: \
         did you mean `SPARKS_LIMITS_MAX_BYTES`?"
    );
}

#[test]
fn unknown_flag_suggests_the_nearest() {
    let error = load_layers("", &[], &[("date", "--data", "x".into())]).expect_err("unknown key");
    assert_eq!(error.to_string(), "unknown key `date` in flag `--data`: did you mean `data`?");
}

#[test]
fn wrong_type_is_rejected_with_the_expected_type() {
    for (file, expected) in [
        ("jobs = 'many'", "`jobs` is \"many\" in file `sparks.toml`: expected an integer from 0 to 1024"),
        ("jobs = 1.5", "`jobs` is 1.5 in file `sparks.toml`: expected an integer from 0 to 1024"),
        ("data = 5", "`data` is 5 in file `sparks.toml`: expected a non-empty string"),
        ("data = { a = 1 }", "`data` is { a = 1 } in file `sparks.toml`: expected a non-empty string"),
        ("limits = 5", "`limits` is 5 in file `sparks.toml`: expected a table, `[limits]`"),
        (
            "[faces]\nanalyzer = 'remote'",
            "`faces.analyzer` is \"remote\" in file `sparks.toml`: \
             expected one of \"off\", \"synthetic\", \"local\", \"rekognition\"",
        ),
    ] {
        assert_eq!(error_text(file, &[]), expected);
    }
    assert_eq!(
        error_text("", &[("SPARKS_JOBS", "many")]),
        "`jobs` is \"many\" in environment variable `SPARKS_JOBS`: \
         expected an integer from 0 to 1024"
    );
}

#[test]
fn value_out_of_range_is_rejected_with_the_range() {
    assert_eq!(
        error_text("[variants.large]\nquality = 200", &[]),
        "`variants.large.quality` is 200 in file `sparks.toml`: \
         expected a number from 0 to 100"
    );
    assert_eq!(
        error_text("", &[("SPARKS_FACES_THRESHOLD", "NaN")]),
        "`faces.threshold` is nan in environment variable `SPARKS_FACES_THRESHOLD`: \
         expected a number from 0 to 1"
    );
}

#[test]
fn all_errors_are_reported_at_once() {
    let text = error_text("colour = 1\n[crop]\nside = 8", &[("SPARKS_JOBS", "-1"), ("SPARKS_JOB", "1")]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    for (line, part) in lines.iter().zip(["`colour`", "`crop.side` is 8", "`SPARKS_JOB`", "`jobs` is -1"]) {
        assert!(line.contains(part), "{line} does not contain {part}");
    }
}

#[test]
fn foreign_environment_variables_are_ignored() {
    let names = [
        "SPARKS_SERVICE_HOST",
        "SPARKS_SERVICE_PORT_HTTP",
        "SPARKS_PORT",
        "SPARKS_PORT_80_TCP_ADDR",
        "SPARKS_CONFIG",
        "SPARKS_LOG",
        "SPARKS_LOG_FORMAT",
        "SPARKS_TEST_SEED",
        "SPARKSJOBS",
        "PATH",
    ];
    let loaded = load_layers("", &names.map(|name| (name, "tcp://10.0.0.1:80")), &[]);
    assert_eq!(loaded.expect("valid settings").settings, Settings::default());
}

#[test]
fn every_key_has_its_own_variable() {
    let deprecated = ALIASES.iter().map(|alias| variable(alias.deprecated));
    let names: BTreeSet<_> = Setting::defaults().iter().map(Setting::variable).chain(deprecated).collect();
    assert_eq!(names.len(), Setting::defaults().len() + ALIASES.len());
    assert!(!names.iter().any(|name| is_foreign(&name["SPARKS_".len()..])));
}

#[test]
fn every_key_is_documented() {
    for Setting { key, doc, .. } in Setting::defaults() {
        assert!(doc.len() > 10 && doc.ends_with('.'), "documentation of `{key}` is {doc:?}");
    }
}

#[test]
fn keys_are_in_the_order_of_the_file() {
    let keys: Vec<_> = Setting::defaults().into_iter().map(|setting| setting.key).collect();
    assert_eq!(keys[..4], ["backend", "data", "uploader", "jobs"]);
    assert_eq!(keys.last().map(String::as_str), Some("aws.endpoints.sts"));
}

/// The limits of every kind are accepted by the settings and stated in the documentation.
#[test]
fn limits_of_every_kind_are_accepted_and_documented() {
    for Setting { key, doc, value, .. } in Setting::defaults() {
        let kind = ValueKind::of(&key).expect("every key has a kind");
        assert_eq!(kind.validate(&value), Some(value), "default of `{key}`");
        let limits: Vec<Value> = match kind {
            ValueKind::Text => vec!["x".into()],
            ValueKind::OptionalText => vec!["x".into(), "".into()],
            ValueKind::Integer(range) => vec![(*range.start()).into(), (*range.end()).into()],
            ValueKind::Float(range) => vec![(*range.start()).into(), (*range.end()).into()],
            ValueKind::Choice(names) => names.iter().map(|&name| name.into()).collect(),
            ValueKind::Choices(names) => names.iter().map(|&name| vec![Value::from(name)].into()).collect(),
            ValueKind::Boolean => vec![true.into(), false.into()],
        };
        for value in limits {
            load_layers("", &[], &[(&key, "--flag", value.clone())]).expect("valid value");
            let text = match &value {
                Value::Boolean(_) => continue,
                Value::Array(names) => format!("`{}`", names[0].as_str().expect("a string")),
                Value::String(name) => format!("`{name}`"),
                number => number.to_string(),
            };
            let text = text.trim_end_matches(".0");
            assert!(["`x`", "``"].contains(&text) || doc.contains(text), "documentation of `{key}` lacks {text}");
        }
    }
}

#[test]
fn missing_file_is_named() {
    let error = load(Some(Path::new("nowhere/sparks.toml")), [], &[]).expect_err("missing file");
    assert!(matches!(error, ConfigError::Missing { .. }));
    assert!(error.to_string().contains("`nowhere/sparks.toml` does not exist"), "{error}");
    let folder = load(Some(Path::new(env!("CARGO_MANIFEST_DIR"))), [], &[]);
    assert!(matches!(folder, Err(ConfigError::Unreadable { .. })));
}

#[test]
fn file_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("default.toml");
    let loaded = load(Some(&path), [], &[]).expect("valid settings");
    assert!(loaded.keys().all(|setting| setting.origin == Origin::File(path.clone())));
}

#[test]
fn syntax_error_names_the_line() {
    let text = error_text("jobs = 1\n\ndata =", &[]);
    assert!(text.starts_with("failed to parse settings file `sparks.toml` as TOML: line 3: "), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn aws_example_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("aws.toml");
    let loaded = load(Some(&path), [], &[]).expect("valid settings");
    assert_eq!(loaded.settings.backend, Backend::Aws);
    assert!(!loaded.settings.aws.events_topic.is_empty());
}
