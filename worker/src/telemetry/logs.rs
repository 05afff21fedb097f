//! Logs go to standard error: lines for humans, or JSON for machines.

use std::{
    env,
    io::{self, IsTerminal},
};

use tracing::{Level, Metadata, Subscriber, level_filters::LevelFilter, subscriber::Interest};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    fmt::MakeWriter,
    layer::{Context, Filter, SubscriberExt},
    registry::LookupSpan,
    util::SubscriberInitExt,
};

use super::json_lines::JsonLines;

/// Who logs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A command that somebody waits for: warnings, always readable.
    Command,
    /// A worker that runs for long: what it does, in JSON unless somebody watches.
    Worker,
}

/// Logs from now on. `SPARKS_LOG` asks for more or less (`debug`, `sparks_engine=trace,warn`, ...) and
/// `SPARKS_LOG_FORMAT` for the form (`json` or `text`).
pub fn start(style: Style) {
    let terminal = io::stderr().is_terminal();
    let variable = |name| env::var(name).unwrap_or_default();
    let choice = Choice::of(style, terminal, &variable("SPARKS_LOG"), &variable("SPARKS_LOG_FORMAT"));
    let lines = lines(choice.form, terminal, io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(choice.filter)).init();
    for wrong in choice.wrong {
        tracing::warn!("{wrong}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The spans come first in a line.
    Full,
    /// The message comes first.
    Compact,
    Json,
}

struct Choice {
    form: Form,
    filter: Wanted,
    /// What is said and was not understood.
    wrong: Vec<String>,
}

impl Choice {
    fn of(style: Style, terminal: bool, log: &str, format: &str) -> Self {
        let mut wrong = Vec::new();
        let (level, text) = match style {
            Style::Command => (LevelFilter::WARN, Form::Full),
            Style::Worker => (LevelFilter::INFO, Form::Compact),
        };
        let filter = (!log.is_empty()).then(|| log.parse::<Targets>()).and_then(|parsed| {
            parsed.inspect_err(|error| wrong.push(format!("`SPARKS_LOG` is {log:?}: {error}"))).ok()
        });
        let form = match format {
            "json" => Form::Json,
            "text" => text,
            _ => {
                if !format.is_empty() {
                    wrong.push(format!("`SPARKS_LOG_FORMAT` is {format:?}, expected `json` or `text`"));
                }
                if style == Style::Worker && !terminal { Form::Json } else { text }
            }
        };
        let filter = Wanted(filter.unwrap_or_else(|| Targets::new().with_default(level)));
        Self { form, filter, wrong }
    }
}

fn lines<S, W>(form: Form, colours: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    match form {
        Form::Full => tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours).boxed(),
        Form::Compact => tracing_subscriber::fmt::layer().compact().with_writer(writer).with_ansi(colours).boxed(),
        Form::Json => JsonLines::new(writer).boxed(),
    }
}

/// Events as asked for. Our own spans are there in any case: they say which photo a warning is about, and `warn` alone
/// would leave them out.
struct Wanted(Targets);

impl Wanted {
    fn is_context(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && *metadata.level() <= Level::INFO && metadata.target().starts_with("sparks")
    }
}

impl<S> Filter<S> for Wanted {
    fn enabled(&self, metadata: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        Self::is_context(metadata) || Filter::<S>::enabled(&self.0, metadata, context)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if Self::is_context(metadata) {
            return Interest::always();
        }
        Filter::<S>::callsite_enabled(&self.0, metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Filter::<S>::max_level_hint(&self.0).map(|level| level.max(LevelFilter::INFO))
    }
}

#[cfg(test)]
#[path = "logs_tests.rs"]
mod tests;
