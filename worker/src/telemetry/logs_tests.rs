//! Tests that parse the written log lines.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::task::yield_now;
use tracing::{Instrument, info_span, subscriber::DefaultGuard};

use super::*;

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("the lock is not poisoned").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Buffer {
    /// Captures the logs of this thread until the guard is dropped.
    fn start(&self, format: LogFormat, log: &str) -> DefaultGuard {
        let buffer = self.clone();
        let config = LogConfig::of(LogProfile::Worker, false, log, "");
        let layer = log_layer(format, false, move || buffer.clone());
        tracing_subscriber::registry().with(layer.with_filter(config.filter)).set_default()
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("the lock is not poisoned").clone()).expect("text")
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
    }
}

#[tokio::test]
async fn every_line_has_the_fields_of_its_spans_across_awaits() {
    let buffer = Buffer::default();
    let guard = buffer.start(LogFormat::Json, "");
    let photo = |id: &'static str, number: u64| {
        async move {
            tracing::info!("begun");
            yield_now().await;
            async {
                tracing::warn!(took = 1.5, "slow");
                yield_now().await;
                tracing::info!(stage = "done", "rendered");
            }
            .instrument(info_span!("stage", stage = "render"))
            .await;
        }
        .instrument(info_span!("photo", message_id = id, image = %format_args!("i{number}"), number))
    };
    tokio::join!(photo("a", 1), photo("b", 2));
    tracing::info!("outside");
    drop(guard);

    let lines = buffer.lines();
    assert_eq!(lines.len(), 7);
    for (id, number) in [("a", 1), ("b", 2)] {
        let own: Vec<_> = lines.iter().filter(|line| line["message_id"] == id).collect();
        assert_eq!(own.iter().map(|line| &line["message"]).collect::<Vec<_>>(), ["begun", "slow", "rendered"]);
        assert!(own.iter().all(|line| line["image"] == format!("i{number}") && line["number"] == json!(number)));
        assert_eq!(
            [&own[0]["stage"], &own[1]["stage"], &own[2]["stage"]],
            [&Value::Null, &json!("render"), &json!("done")]
        );
        assert_eq!((&own[1]["level"], &own[1]["took"]), (&json!("warn"), &json!(1.5)));
    }
    assert_eq!(lines[6].get("message_id"), None);
}

#[test]
fn reserved_fields_come_first_and_are_never_replaced() {
    let buffer = Buffer::default();
    let guard = buffer.start(LogFormat::Json, "");
    let span = info_span!("photo", message = "m1", level = 7, later = tracing::field::Empty, r#type = "x").entered();
    span.record("later", true);
    tracing::info!(target: "sparks", timestamp = "never", "said \"so\"\n{}", 1);
    drop((span, guard));

    let text = buffer.text();
    assert!(text.starts_with("{\"timestamp\":\"2") && text.ends_with("}\n"), "{text}");
    let rest = text.split_once("Z\",").expect("the time is in UTC").1;
    let expected = r#""level":"info","message":"said \"so\"\n1","target":"sparks","later":true,"level_":7,"message_":"m1","timestamp_":"never","type":"x"}"#;
    assert_eq!(rest.trim_end(), expected);
}

#[test]
fn errors_are_logged_with_their_causes() {
    let buffer = Buffer::default();
    let guard = buffer.start(LogFormat::Json, "");
    let cause = io::Error::other("the disk is full");
    let error = sparks_config::ConfigError::Unreadable { path: "sparks.toml".into(), source: cause };
    tracing::error!(error = &error as &dyn std::error::Error);
    drop(guard);
    let line = &buffer.lines()[0];
    assert!(line["error"].as_str().is_some_and(|text| text.ends_with(": the disk is full")), "{line}");
    assert_eq!(line["message"], "", "the message is empty");
}

#[test]
fn a_level_filter_keeps_the_fields_of_our_spans() {
    let buffer = Buffer::default();
    let guard = buffer.start(LogFormat::Json, "warn");
    let spans =
        (info_span!("photo", image = "i1").entered(), info_span!(target: "other", "call", host = "h").entered());
    tracing::info!("below the level");
    tracing::warn!("at the level");
    drop((spans, guard));
    let lines = buffer.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["image"], lines[0].get("host")), (&json!("i1"), None));
}

#[test]
fn text_lines_show_the_fields_of_spans() {
    for format in [LogFormat::Full, LogFormat::Compact] {
        let buffer = Buffer::default();
        let guard = buffer.start(format, "");
        info_span!("photo", message_id = "m1").in_scope(|| tracing::info!(took = 3, "committed"));
        drop(guard);
        let text = buffer.text();
        for part in ["INFO", "committed", "took=3", "message_id=\"m1\""] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        assert!(!text.contains('\u{1b}'), "no colours: {text:?}");
    }
}

#[test]
fn the_format_follows_profile_terminal_and_environment() {
    let format = |profile, is_terminal, format| LogConfig::of(profile, is_terminal, "", format).format;
    assert_eq!(format(LogProfile::Command, true, ""), LogFormat::Full);
    assert_eq!(format(LogProfile::Command, false, ""), LogFormat::Full);
    assert_eq!(format(LogProfile::Command, false, "json"), LogFormat::Json);
    assert_eq!(format(LogProfile::Worker, true, ""), LogFormat::Compact);
    assert_eq!(format(LogProfile::Worker, false, ""), LogFormat::Json);
    assert_eq!(format(LogProfile::Worker, true, "json"), LogFormat::Json);
    assert_eq!(format(LogProfile::Worker, false, "text"), LogFormat::Compact);
}

#[test]
fn invalid_environment_values_warn_and_change_nothing() {
    let config = LogConfig::of(LogProfile::Command, false, "sparks=loud", "yaml");
    assert_eq!(config.format, LogFormat::Full);
    assert!(
        config.filter.0.would_enable("sparks", &Level::WARN) && !config.filter.0.would_enable("sparks", &Level::INFO)
    );
    assert_eq!(config.warnings.len(), 2);
    assert_eq!(config.warnings[1], "`SPARKS_LOG_FORMAT` is \"yaml\", expected `json` or `text`");
    let level = LogConfig::of(LogProfile::Worker, false, "sparks=debug,error", "text");
    assert!(
        level.filter.0.would_enable("sparks", &Level::DEBUG) && !level.filter.0.would_enable("hyper", &Level::INFO)
    );
    assert!(level.warnings.is_empty());
}
