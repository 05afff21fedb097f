//! What a running worker tells about itself: metrics, health and logs.

#[cfg_attr(not(test), expect(dead_code, reason = "used by `sparks run`"))]
pub mod http;
mod json_lines;
pub mod logs;
#[cfg_attr(not(test), expect(dead_code, reason = "used by `sparks run`"))]
pub mod metrics;
