//! `sparks cost`

use std::process::ExitCode;

use serde_json::{Value, json};
use sparks_engine::{AnalyzerUsage, UsageTally};

use super::cost_model::{CostEstimate, FaceSetup, PhotoAverages};
use crate::{
    cli::Global,
    output::{Output, progress_bar},
    wiring,
};

/// The estimate of one combination.
struct Row {
    setup: FaceSetup,
    estimate: CostEstimate,
    /// The cost relative to the configured combination.
    ratio: Option<f64>,
    is_configured: bool,
}

/// Counts photos and faces in the event log and prints the estimated cost of each combination.
pub async fn run(global: &Global, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let bar = progress_bar(backend.store.heads().await?.events(), "events");
    let tally = UsageTally::of(backend.store.as_ref(), |read| bar.set_position(read)).await?;
    bar.finish_and_clear();
    let averages = PhotoAverages::of(&tally);
    let configured = FaceSetup::of(&settings.faces);
    let rows: Vec<Row> = averages.map_or_else(Vec::new, |averages| {
        let estimate =
            |setup: FaceSetup| setup.estimate(&averages, settings.faces.secondary_analyzer, &settings.prices);
        let base = estimate(configured).usd;
        let row = |setup: FaceSetup| {
            let estimate = estimate(setup);
            let ratio = (base > 0.0).then(|| estimate.usd / base);
            Row { setup, ratio, estimate, is_configured: setup == configured }
        };
        FaceSetup::ALL.map(row).into_iter().collect()
    });
    if output.is_json() {
        output.json(&to_json(&tally, averages.as_ref(), &rows))?;
    } else {
        print(&tally, averages.as_ref(), &rows, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(tally: &UsageTally, averages: Option<&PhotoAverages>, rows: &[Row]) -> Value {
    let analyzer = |(analyzer, usage): (&String, &AnalyzerUsage)| {
        json!({
            "analyzer": analyzer,
            "decisions": usage.decisions,
            "faces": usage.faces,
            "persons_founded": usage.new_persons,
            "faces_known_by": usage.templates,
        })
    };
    let row = |Row { setup, estimate, ratio, is_configured }: &Row| {
        let calls: serde_json::Map<String, Value> =
            estimate.calls.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
        json!({
            "way": setup.code(),
            "set": is_configured,
            "calls_per_1000_photos": calls,
            "cpu_seconds_per_1000_photos": estimate.cpu_seconds,
            "usd_per_1000_photos": estimate.usd,
            "usd_a_month_for_keeping_them": estimate.usd_per_month,
            "ratio": ratio,
        })
    };
    let per_photo = |averages: &PhotoAverages| json!({ "faces": averages.faces, "persons_founded": averages.new_persons, "faces_known_by": averages.templates });
    json!({
        "photos": tally.photos,
        "work": tally.analyzers.iter().map(analyzer).collect::<Vec<_>>(),
        "a_photo": averages.map(per_photo),
        "ways": rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn print(
    tally: &UsageTally,
    averages: Option<&PhotoAverages>,
    rows: &[Row],
    output: &mut Output,
) -> anyhow::Result<()> {
    let Some(averages) = averages else {
        return Ok(output.line("no photo has been analyzed for faces yet: there is nothing to count")?);
    };
    output.line(format!(
        "{} photos, each with {:.2} faces and {:.3} new persons\n",
        tally.photos, averages.faces, averages.new_persons
    ))?;
    let analyzers = tally.analyzers.iter().map(|(analyzer, usage)| {
        vec![analyzer.clone(), usage.decisions.to_string(), usage.faces.to_string(), usage.new_persons.to_string()]
    });
    output.table(&["analyzer", "photos decided", "faces", "new persons"], analyzers.collect::<Vec<_>>())?;
    output.line("")?;
    let header = ["setup", "calls per 1,000 photos", "CPU", "USD per 1,000", "USD per month", "ratio"];
    output.table(&header, rows.iter().map(cells).collect::<Vec<_>>())?;
    output.line(
        "\nUSD per month: storage of the faces of 1,000 photos. Prices and CPU seconds come from the settings (prices.*);\n\
         check them against your own. Requests to S3, DynamoDB, SQS and SNS are the same for all setups and not included, nor\n\
         is the minimum price of a plan (Pinecone).",
    )?;
    Ok(())
}

fn cells(Row { setup, estimate, ratio, is_configured }: &Row) -> Vec<String> {
    let calls: Vec<String> = estimate.calls.iter().map(|(name, count)| format!("{count:.0} {name}")).collect();
    let configured = if *is_configured { " (configured)" } else { "" };
    vec![
        setup.name().into(),
        if calls.is_empty() { "none".into() } else { calls.join(", ") },
        format!("{:.0} s", estimate.cpu_seconds),
        format!("{:.4}", estimate.usd),
        format!("{:.6}", estimate.usd_per_month),
        ratio.map_or_else(|| format!("-{configured}"), |ratio| format!("{ratio:.3}{configured}")),
    ]
}
