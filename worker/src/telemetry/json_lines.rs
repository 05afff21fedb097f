//! Logs as one flat JSON object per line.

use std::{
    error::Error,
    fmt::{Debug, Write as _},
    io::Write as _,
};

use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    fmt::{
        MakeWriter,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::Context,
    registry::LookupSpan,
};

/// Writes every event with the fields of all enclosing spans at the top level. The event's own fields win over those of
/// spans, and inner spans over outer ones. The JSON layer of `tracing-subscriber` nests span fields, where a search for
/// the lines of one photo does not find them.
pub struct JsonLines<W>(W);

/// Fields of every line. Another field of the same name gets a trailing underscore.
const RESERVED_FIELDS: [&str; 4] = ["timestamp", "level", "message", "target"];

impl<W> JsonLines<W> {
    /// Returns a layer that writes each line in one call, so that lines of several threads do not mix.
    pub fn new(writer: W) -> Self {
        Self(writer)
    }
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        // Record the values before locking the span: formatting a value may log.
        let mut later = Fields::default();
        values.record(&mut later);
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            fields.0.extend(later.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut of_event = Fields::default();
        event.record(&mut of_event);
        let message = of_event.0.remove("message").unwrap_or_else(|| "".into());
        let mut fields = Map::new();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                fields.extend(of_span.0.clone());
            }
        }
        fields.extend(of_event.0);

        let metadata = event.metadata();
        let own = [now().into(), metadata.level().as_str().to_lowercase().into(), message, metadata.target().into()];
        let line = line(RESERVED_FIELDS.map(str::to_owned).into_iter().zip(own).chain(fields.into_iter().map(
            |(name, value)| {
                let is_reserved = RESERVED_FIELDS.contains(&name.as_str());
                (if is_reserved { name + "_" } else { name }, value)
            },
        )));
        // A failure to write the log cannot be logged.
        let _ = self.0.make_writer_for(metadata).write_all(line.as_bytes());
    }
}

/// Formats the line by hand: a `serde_json` map would sort the timestamp among the other fields.
fn line(fields: impl Iterator<Item = (String, Value)>) -> String {
    let mut line = String::new();
    for (name, value) in fields {
        let before = if line.is_empty() { '{' } else { ',' };
        let _ = write!(line, "{before}{}:{value}", Value::String(name));
    }
    line + "}\n"
}

fn now() -> String {
    let mut text = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

/// The fields of a span or an event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        let name = field.name();
        self.0.insert(name.strip_prefix("r#").unwrap_or(name).to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(error) = source {
            let _ = write!(text, ": {error}");
            source = error.source();
        }
        self.put(field, text);
    }
}
