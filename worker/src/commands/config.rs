//! `sparks config`

use std::process::ExitCode;

use serde_json::json;

use crate::{
    cli::{ConfigAction, ConfigArgs, Global},
    output::Output,
    wiring,
};

/// Shows or checks the settings.
pub fn run(global: &Global, args: ConfigArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let loaded = wiring::settings(global, &[])?;
    match args.action {
        ConfigAction::Check if output.is_json() => output.json(&json!({ "ok": true }))?,
        ConfigAction::Check => output.line("the settings are valid")?,
        ConfigAction::Show if output.is_json() => {
            let keys = loaded.keys().map(|s| {
                let value = serde_json::to_value(&s.value).unwrap_or_default();
                (s.key.clone(), json!({ "value": value, "origin": s.origin.to_string(), "variable": s.variable() }))
            });
            output.pretty(&keys.collect::<serde_json::Map<_, _>>().into())?;
        }
        ConfigAction::Show => {
            let rows = loaded.keys().map(|s| vec![s.key.clone(), s.value.to_string(), s.origin.to_string()]);
            output.table(&["key", "value", "origin"], rows.collect::<Vec<_>>())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
