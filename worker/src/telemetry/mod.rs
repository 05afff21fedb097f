//! Observability of a running worker: metrics, health checks and logs.

pub mod http;
mod json_lines;
pub mod logs;
pub mod metrics;
