//! The type and range of each setting's value.

use std::{fmt, ops::RangeInclusive};

use toml::Value;

/// The valid values of a setting. `Display` completes the phrase "expected ...".
#[derive(Debug)]
pub(crate) enum ValueKind {
    /// A string that is not blank.
    Text,
    /// A string that may be empty.
    OptionalText,
    Integer(RangeInclusive<i64>),
    Float(RangeInclusive<f64>),
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A non-empty list of these strings.
    Choices(&'static [&'static str]),
    Boolean,
}

impl ValueKind {
    /// Returns the kind of a known key.
    pub(crate) fn of(key: &str) -> Option<ValueKind> {
        use ValueKind::{Boolean, Choice, Choices, Float, Integer, OptionalText, Text};
        Some(match key {
            "data" | "uploader" | "bucket" | "run.listen" => Text,
            "backend" => Choice(&["embedded", "aws"]),
            "aws.table" | "aws.log_table" | "aws.faces_table" | "aws.queue" | "aws.dead_letter_queue" => Text,
            "aws.lanes" => Integer(1..=1024),
            "aws.poll_seconds" => Integer(0..=20),
            "jobs" => Integer(0..=1024),
            "limits.max_bytes" | "limits.max_metadata_bytes" => Integer(1..=1 << 32),
            "limits.max_megapixels" => Integer(1..=10_000),
            "limits.max_side" => Integer(1..=65_535),
            "limits.max_frames" => Integer(1..=1_000_000),
            "limits.max_scans" => Integer(1..=1000),
            "limits.max_memory_mib" => Integer(64..=65_536),
            "limits.max_cpu_seconds" => Integer(1..=3600),
            "crop.padding" => Float(0.0..=2.0),
            "crop.side" => Integer(16..=4096),
            "crop.quality" => Integer(1..=100),
            "faces.analyzer" => Choice(&["off", "synthetic", "local", "rekognition"]),
            "faces.index" => Choice(&["auto", "gallery", "rekognition", "pinecone"]),
            "faces.secondary_analyzer" => Choice(&["local", "synthetic", "off"]),
            "faces.recent_seconds" => Integer(0..=86_400),
            "rekognition.collection" => Text,
            "rekognition.calls_per_second" => Float(0.2..=10_000.0),
            "faces.models" => Choices(&["sface", "dlib", "mobilefacenet"]),
            "faces.mirror" | "faces.attributes" => Boolean,
            "faces.consolidation" => Choice(&["auto", "join", "suggest"]),
            "faces.threshold" => Float(0.0..=1.0),
            "faces.candidates" => Integer(1..=100),
            "faces.new_person.min_size_px" => Integer(0..=16_383),
            "faces.new_person.min_sharpness" | "faces.new_person.min_confidence" | "faces.new_person.max_turn" => {
                Float(0.0..=1.0)
            }
            "table.tagging_s3_key" => Choice(&["large", "original"]),
            "queue.visibility_timeout_seconds" => Integer(1..=43_200),
            "queue.max_attempts" | "queue.max_crashes" => Integer(1..=1000),
            "queue.prerequisite_timeout_seconds" => Integer(0..=1_209_600),
            "queue.dead_letter_retention_days" | "publish.retention_days" => Integer(0..=36_500),
            "publish.max_file_mib" => Integer(0..=1 << 20),
            "publish.thumbnails" | "publish.events" | "run.inbox" | "decoder.isolate" => Boolean,
            "run.grace_seconds" => Integer(0..=3600),
            key if key.starts_with("prices.") => Float(0.0..=1000.0),
            key if key.starts_with("aws.") || key.starts_with("pinecone.") => OptionalText,
            _ => match key.strip_prefix("variants.")?.split_once('.')?.1 {
                "fit" => Choice(&["inside", "cover"]),
                "width" | "height" => Integer(1..=16_383),
                "quality" => Float(0.0..=100.0),
                "method" => Integer(0..=6),
                "sharp_yuv" => Boolean,
                _ => return None,
            },
        })
    }

    /// Parses the value of an environment variable. Text that cannot be parsed is returned as a string, which `validate` rejects.
    pub(crate) fn parse(&self, text: String) -> Value {
        match self {
            ValueKind::Integer(_) => text.parse().map(Value::Integer).ok(),
            ValueKind::Float(_) => text.parse().map(Value::Float).ok(),
            ValueKind::Boolean => text.parse().map(Value::Boolean).ok(),
            ValueKind::Choices(_) => Some(
                text.split(',')
                    .filter(|part| !part.trim().is_empty())
                    .map(|part| Value::String(part.trim().to_owned()))
                    .collect::<Vec<_>>()
                    .into(),
            ),
            ValueKind::Text | ValueKind::OptionalText | ValueKind::Choice(_) => None,
        }
        .unwrap_or(Value::String(text))
    }

    /// Returns the value if it is valid, with integers converted where a float is expected.
    pub(crate) fn validate(&self, value: &Value) -> Option<Value> {
        let is_valid = match (self, value) {
            (ValueKind::Float(_), Value::Integer(n)) => return self.validate(&Value::Float(*n as f64)),
            (ValueKind::Float(range), Value::Float(n)) => range.contains(n),
            (ValueKind::Integer(range), Value::Integer(n)) => range.contains(n),
            (ValueKind::Choice(names), Value::String(text)) => names.contains(&text.as_str()),
            (ValueKind::Choices(names), Value::Array(values)) => {
                let is_known = |value: &Value| value.as_str().is_some_and(|text| names.contains(&text));
                values.iter().all(is_known)
            }
            (ValueKind::Boolean, Value::Boolean(_)) => true,
            (ValueKind::Text, Value::String(text)) => !text.trim().is_empty(),
            (ValueKind::OptionalText, Value::String(_)) => true,
            _ => false,
        };
        is_valid.then(|| value.clone())
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueKind::Text => write!(out, "a non-empty string"),
            ValueKind::OptionalText => write!(out, "a string"),
            ValueKind::Integer(range) => write!(out, "an integer from {} to {}", range.start(), range.end()),
            ValueKind::Float(range) => write!(out, "a number from {} to {}", range.start(), range.end()),
            ValueKind::Choice(names) => write!(out, "one of \"{}\"", names.join("\", \"")),
            ValueKind::Choices(names) => write!(out, "a list of any of \"{}\"", names.join("\", \"")),
            ValueKind::Boolean => write!(out, "true or false"),
        }
    }
}
