//! What a key may hold.

use std::{fmt, ops::RangeInclusive};

use toml::Value;

/// What a key may hold; its `Display` completes "expected …".
#[derive(Debug)]
pub(crate) enum Kind {
    Text,
    Anything,
    Whole(RangeInclusive<i64>),
    Number(RangeInclusive<f64>),
    Choice(&'static [&'static str]),
    Several(&'static [&'static str]),
    Switch,
}

impl Kind {
    /// The kind of a known key.
    pub(crate) fn of(key: &str) -> Option<Kind> {
        use Kind::{Anything, Choice, Number, Several, Switch, Text, Whole};
        Some(match key {
            "data" | "uploader" | "bucket" | "run.listen" => Text,
            "backend" => Choice(&["embedded", "aws"]),
            "aws.table" | "aws.log_table" | "aws.faces_table" | "aws.queue" | "aws.dead_letter_queue" => Text,
            "aws.lanes" => Whole(1..=1024),
            "aws.poll_seconds" => Whole(0..=20),
            "jobs" => Whole(0..=1024),
            "limits.max_bytes" | "limits.max_metadata_bytes" => Whole(1..=1 << 32),
            "limits.max_megapixels" => Whole(1..=10_000),
            "limits.max_side" => Whole(1..=65_535),
            "limits.max_frames" => Whole(1..=1_000_000),
            "limits.max_scans" => Whole(1..=1000),
            "limits.max_memory_mb" => Whole(64..=65_536),
            "limits.max_seconds" => Whole(1..=3600),
            "crop.padding" => Number(0.0..=2.0),
            "crop.side" => Whole(16..=4096),
            "crop.quality" => Whole(1..=100),
            "faces.analyzer" => Choice(&["off", "synthetic", "local", "rekognition"]),
            "faces.index" => Choice(&["auto", "gallery", "rekognition", "pinecone"]),
            "faces.companion" => Choice(&["local", "synthetic", "off"]),
            "faces.recent_seconds" => Whole(0..=86_400),
            "rekognition.collection" => Text,
            "rekognition.calls_per_second" => Number(0.2..=10_000.0),
            "faces.models" => Several(&["dlib", "mobilefacenet"]),
            "faces.mirror" | "faces.attributes" => Switch,
            "faces.consolidation" => Choice(&["auto", "join", "suggest"]),
            "faces.threshold" => Number(0.0..=1.0),
            "faces.candidates" => Whole(1..=100),
            "faces.founding.min_size" => Whole(0..=16_383),
            "faces.founding.min_sharpness" | "faces.founding.min_confidence" | "faces.founding.max_turn" => {
                Number(0.0..=1.0)
            }
            "table.tagging_s3_key" => Choice(&["large", "original"]),
            "queue.visibility_seconds" => Whole(1..=43_200),
            "queue.max_receives" | "queue.max_deaths" => Whole(1..=1000),
            "queue.wait_seconds" => Whole(0..=1_209_600),
            "publish.thumbnails" | "publish.events" | "run.inbox" | "darkroom.isolate" => Switch,
            "run.grace_seconds" => Whole(0..=3600),
            key if key.starts_with("prices.") => Number(0.0..=1000.0),
            key if key.starts_with("aws.") || key.starts_with("pinecone.") => Anything,
            _ => match key.strip_prefix("variants.")?.split_once('.')?.1 {
                "fit" => Choice(&["inside", "cover"]),
                "width" | "height" => Whole(1..=16_383),
                "quality" => Number(0.0..=100.0),
                "method" => Whole(0..=6),
                "sharp_yuv" => Switch,
                _ => return None,
            },
        })
    }

    /// The value a text stands for; one that stands for none stays a text, which `admit` refuses.
    pub(crate) fn parse(&self, text: String) -> Value {
        match self {
            Kind::Whole(_) => text.parse().map(Value::Integer).ok(),
            Kind::Number(_) => text.parse().map(Value::Float).ok(),
            Kind::Switch => text.parse().map(Value::Boolean).ok(),
            Kind::Several(_) => {
                Some(text.split(',').map(|part| Value::String(part.trim().to_owned())).collect::<Vec<_>>().into())
            }
            Kind::Text | Kind::Anything | Kind::Choice(_) => None,
        }
        .unwrap_or(Value::String(text))
    }

    /// The value as the settings hold it, if it is of this kind.
    pub(crate) fn admit(&self, value: &Value) -> Option<Value> {
        let admitted = match (self, value) {
            (Kind::Number(_), Value::Integer(n)) => return self.admit(&Value::Float(*n as f64)),
            (Kind::Number(range), Value::Float(n)) => range.contains(n),
            (Kind::Whole(range), Value::Integer(n)) => range.contains(n),
            (Kind::Choice(names), Value::String(text)) => names.contains(&text.as_str()),
            (Kind::Several(names), Value::Array(values)) => {
                let named = |value: &Value| value.as_str().is_some_and(|text| names.contains(&text));
                !values.is_empty() && values.iter().all(named)
            }
            (Kind::Switch, Value::Boolean(_)) => true,
            (Kind::Text, Value::String(text)) => !text.trim().is_empty(),
            (Kind::Anything, Value::String(_)) => true,
            _ => false,
        };
        admitted.then(|| value.clone())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Text => write!(out, "a text that is not empty"),
            Kind::Anything => write!(out, "a text"),
            Kind::Whole(range) => {
                write!(out, "a whole number from {} to {}", range.start(), range.end())
            }
            Kind::Number(range) => {
                write!(out, "a number from {} to {}", range.start(), range.end())
            }
            Kind::Choice(names) => write!(out, "one of \"{}\"", names.join("\", \"")),
            Kind::Several(names) => write!(out, "a list of one or more of \"{}\"", names.join("\", \"")),
            Kind::Switch => write!(out, "true or false"),
        }
    }
}
