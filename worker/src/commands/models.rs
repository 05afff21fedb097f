//! `sparks models`

use std::process::ExitCode;

use serde_json::json;

use crate::output::Output;

/// Lists the models built into the binary.
pub fn run(output: &mut Output) -> anyhow::Result<ExitCode> {
    let listed = sparks_faces::models().iter().map(|model| (model, model.sha256()));
    if output.is_json() {
        for (model, sha256) in listed {
            output.json(&json!({
                "name": model.name,
                "purpose": model.purpose,
                "licence": model.licence,
                "origin": model.origin,
                "bytes": model.bytes.len(),
                "sha256": sha256,
            }))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let header = ["name", "licence", "size", "sha-256", "origin", "purpose"];
    let rows = listed.map(|(model, sha256)| {
        let size = format!("{:.1} MB", model.bytes.len() as f64 / 1e6);
        vec![model.name.into(), model.licence.into(), size, sha256, model.origin.into(), model.purpose.into()]
    });
    output.table(&header, rows.collect::<Vec<_>>())?;
    Ok(ExitCode::SUCCESS)
}
