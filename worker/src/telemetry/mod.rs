//! What a running worker tells about itself: metrics, health and logs.

pub mod http;
mod json_lines;
pub mod logs;
pub mod metrics;
