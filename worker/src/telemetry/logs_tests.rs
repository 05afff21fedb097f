//! What is written, by lines that are read again.

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
        self.0.lock().expect("nobody panicked").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Buffer {
    /// Logs of this thread come here until the guard is dropped.
    fn start(&self, form: Form, log: &str) -> DefaultGuard {
        let buffer = self.clone();
        let choice = Choice::of(Style::Worker, false, log, "");
        let lines = lines(form, false, move || buffer.clone());
        tracing_subscriber::registry().with(lines.with_filter(choice.filter)).set_default()
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("nobody panicked").clone()).expect("text")
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
    }
}

#[tokio::test]
async fn fields_of_spans_are_in_every_line_also_across_awaits() {
    let buffer = Buffer::default();
    let guard = buffer.start(Form::Json, "");
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
fn a_line_has_its_own_fields_first_and_nothing_replaces_them() {
    let buffer = Buffer::default();
    let guard = buffer.start(Form::Json, "");
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
fn errors_are_told_with_their_causes() {
    let buffer = Buffer::default();
    let guard = buffer.start(Form::Json, "");
    let cause = io::Error::other("the disk is full");
    let error = sparks_config::ConfigError::Unreadable { path: "sparks.toml".into(), source: cause };
    tracing::error!(error = &error as &dyn std::error::Error);
    drop(guard);
    let line = &buffer.lines()[0];
    assert!(line["error"].as_str().is_some_and(|text| text.ends_with(": the disk is full")), "{line}");
    assert_eq!(line["message"], "", "there is no text");
}

#[test]
fn a_filter_leaves_the_fields_of_our_spans() {
    let buffer = Buffer::default();
    let guard = buffer.start(Form::Json, "warn");
    let spans =
        (info_span!("photo", image = "i1").entered(), info_span!(target: "other", "call", host = "h").entered());
    tracing::info!("not asked for");
    tracing::warn!("asked for");
    drop((spans, guard));
    let lines = buffer.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["image"], lines[0].get("host")), (&json!("i1"), None));
}

#[test]
fn lines_for_humans_show_the_fields_of_spans() {
    for form in [Form::Full, Form::Compact] {
        let buffer = Buffer::default();
        let guard = buffer.start(form, "");
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
fn who_logs_where_and_what_is_asked_for_choose_the_form() {
    let form = |style, terminal, format| Choice::of(style, terminal, "", format).form;
    assert_eq!(form(Style::Command, true, ""), Form::Full);
    assert_eq!(form(Style::Command, false, ""), Form::Full);
    assert_eq!(form(Style::Command, false, "json"), Form::Json);
    assert_eq!(form(Style::Worker, true, ""), Form::Compact);
    assert_eq!(form(Style::Worker, false, ""), Form::Json);
    assert_eq!(form(Style::Worker, true, "json"), Form::Json);
    assert_eq!(form(Style::Worker, false, "text"), Form::Compact);
}

#[test]
fn what_is_not_understood_is_told_and_changes_nothing() {
    let choice = Choice::of(Style::Command, false, "sparks=loud", "yaml");
    assert_eq!(choice.form, Form::Full);
    assert!(
        choice.filter.0.would_enable("sparks", &Level::WARN) && !choice.filter.0.would_enable("sparks", &Level::INFO)
    );
    assert_eq!(choice.wrong.len(), 2);
    assert_eq!(choice.wrong[1], "`SPARKS_LOG_FORMAT` is \"yaml\", expected `json` or `text`");
    let level = Choice::of(Style::Worker, false, "sparks=debug,error", "text");
    assert!(
        level.filter.0.would_enable("sparks", &Level::DEBUG) && !level.filter.0.would_enable("hyper", &Level::INFO)
    );
    assert!(level.wrong.is_empty());
}
