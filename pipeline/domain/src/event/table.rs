//! The macro behind the event table in `mod.rs`.

/// Turns the event table into the [`Event`](super::Event) enum and everything that differs by event type: its name, its
/// JSON, its lane and its rows.
///
/// A line is `Type | version | level | lane | rows | meaning`. `Type` is the struct and the type name in the log; `version` is
/// that of the schema; `level` is the lowest reader level of a log that may hold it. The lane is `photo` (the struct has an `image_id`) or `identity`. `rows` is the function that
/// returns the rows of the platform's table that the event changes: in `photo_rows` or `person_rows`, by the lane.
macro_rules! event_table {
    ($($type:ident | $version:literal | $level:literal | $lane:ident | $rows:ident | $meaning:literal;)*) => {
        /// Everything that the log can hold.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $(#[doc = $meaning] $type($type),)*
        }

        // The version in the table is the version in the struct.
        $(const _: fn(&$type) -> Version<$version> = |event| event.v;)*

        impl Event {
            /// Names of all event types.
            pub const TYPES: &'static [&'static str] = &[$(stringify!($type)),*];

            /// Returns the type's name in the log.
            pub fn event_type(&self) -> &'static str {
                match self {
                    $(Self::$type(_) => stringify!($type),)*
                }
            }

            /// Returns the schema version under which the event is written.
            pub fn version(&self) -> u32 {
                match self {
                    $(Self::$type(_) => $version,)*
                }
            }

            /// Returns the reader level of the event's type and version.
            fn type_level(&self) -> Level {
                Level(match self {
                    $(Self::$type(_) => $level,)*
                })
            }

            /// Returns the event's JSON, as the log stores it.
            pub fn to_data(&self) -> String {
                match self {
                    $(Self::$type(event) => serde_json::to_string(event),)*
                }
                .unwrap_or_default() // plain structs with text keys always serialize
            }

            /// Reads what [`Event::to_data`] of this or any earlier release wrote.
            pub fn parse(event_type: &str, data: &str) -> Result<Self, UnreadableEvent> {
                match event_type {
                    $(stringify!($type) => serde_json::from_str(data).map(Self::$type),)*
                    unknown => return Err(UnreadableEvent::UnknownType(unknown.to_owned())),
                }
                .map_err(|error| UnreadableEvent::BadData {
                    event_type: event_type.to_owned(),
                    reason: error.to_string(),
                })?
                .check_level()
            }

            /// Returns the photo whose lane the event is in; `None` for events of the identity lane.
            pub fn image(&self) -> Option<&ImageId> {
                match self {
                    $(Self::$type(event) => event_table!(@image $lane event),)*
                }
            }

            /// Returns the changes to the platform's table. Called through [`Projection::project`].
            pub(crate) fn rows(&self, projection: Projection, context: &ProjectionContext<'_>) -> Vec<Mutation> {
                match self {
                    $(Self::$type(event) => event_table!(@rows $lane $rows)(projection, event, context),)*
                }
            }
        }
    };
    (@rows photo $rows:ident) => { photo_rows::$rows };
    (@rows identity $rows:ident) => { person_rows::$rows };
    (@image photo $event:ident) => { Some(&$event.image_id) };
    (@image identity $event:ident) => {{
        let _ = $event;
        None
    }};
}

pub(super) use event_table;
