//! What `sparks run` does besides its messages: signals, health, metrics, consolidation.

mod announcer;
mod background_tasks;
mod shutdown;
mod worker_health;

pub use announcer::Announcer;
pub use background_tasks::BackgroundTasks;
pub use shutdown::Shutdown;
pub use worker_health::WorkerHealth;
