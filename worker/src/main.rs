//! The `sparks` command.
fn main() {}
