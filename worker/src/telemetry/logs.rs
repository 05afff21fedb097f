//! Logging to standard error, as text or JSON.

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

/// The defaults for level and format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LogProfile {
    /// An interactive command: warnings, as text.
    Command,
    /// A service: informational messages, as JSON unless standard error is a terminal.
    Worker,
}

/// Starts logging. `SPARKS_LOG` sets the level (`debug`, `sparks_engine=trace,warn`, ...), `SPARKS_LOG_FORMAT` the format
/// (`json` or `text`).
pub fn start(profile: LogProfile) {
    let is_terminal = io::stderr().is_terminal();
    let variable = |name| env::var(name).unwrap_or_default();
    let config = LogConfig::of(profile, is_terminal, &variable("SPARKS_LOG"), &variable("SPARKS_LOG_FORMAT"));
    let layer = log_layer(config.format, is_terminal, io::stderr);
    tracing_subscriber::registry().with(layer.with_filter(config.filter)).init();
    for warning in config.warnings {
        tracing::warn!("{warning}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogFormat {
    /// Text with the spans before the message.
    Full,
    /// Text with the message before the spans.
    Compact,
    Json,
}

struct LogConfig {
    format: LogFormat,
    filter: LogFilter,
    /// Values of the environment that were not understood.
    warnings: Vec<String>,
}

impl LogConfig {
    fn of(profile: LogProfile, is_terminal: bool, log: &str, format: &str) -> Self {
        let mut warnings = Vec::new();
        let (level, text) = match profile {
            LogProfile::Command => (LevelFilter::WARN, LogFormat::Full),
            LogProfile::Worker => (LevelFilter::INFO, LogFormat::Compact),
        };
        let filter = (!log.is_empty()).then(|| log.parse::<Targets>()).and_then(|parsed| {
            parsed.inspect_err(|error| warnings.push(format!("`SPARKS_LOG` is {log:?}: {error}"))).ok()
        });
        let format = match format {
            "json" => LogFormat::Json,
            "text" => text,
            _ => {
                if !format.is_empty() {
                    warnings.push(format!("`SPARKS_LOG_FORMAT` is {format:?}, expected `json` or `text`"));
                }
                if profile == LogProfile::Worker && !is_terminal { LogFormat::Json } else { text }
            }
        };
        let filter = LogFilter(filter.unwrap_or_else(|| Targets::new().with_default(level)));
        Self { format, filter, warnings }
    }
}

fn log_layer<S, W>(format: LogFormat, colours: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    match format {
        LogFormat::Full => tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours).boxed(),
        LogFormat::Compact => tracing_subscriber::fmt::layer().compact().with_writer(writer).with_ansi(colours).boxed(),
        LogFormat::Json => JsonLines::new(writer).boxed(),
    }
}

/// Filters events by level and target. Our own spans always pass: they say which photo a warning is about, and the level
/// `warn` alone would remove them.
struct LogFilter(Targets);

impl LogFilter {
    fn is_context(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && *metadata.level() <= Level::INFO && metadata.target().starts_with("sparks")
    }
}

impl<S> Filter<S> for LogFilter {
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
