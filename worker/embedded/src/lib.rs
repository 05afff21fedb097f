//! The backend that needs nothing: SQLite table, log and queue, files as objects
