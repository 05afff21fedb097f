//! `sparks cost`

use std::process::ExitCode;

use serde_json::{Value, json};
use sparks_engine::{Tally, Work};

use crate::{
    cli::Global,
    cost::{Averages, Bill, Way},
    output::{Output, progress},
    wiring,
};

/// A way, what it costs, and that as a share of what the way costs that is set.
struct Row {
    way: Way,
    bill: Bill,
    ratio: Option<f64>,
    is_set: bool,
}

/// Counts what was done, and says what that would cost in each way.
pub async fn run(global: &Global, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let bar = progress(backend.store.heads().await?.events(), "events");
    let tally = Tally::of(backend.store.as_ref(), |read| bar.set_position(read)).await?;
    bar.finish_and_clear();
    let averages = Averages::of(&tally);
    let set = Way::of(&settings.faces);
    let rows: Vec<Row> = averages.map_or_else(Vec::new, |averages| {
        let bill = |way: Way| way.bill(&averages, settings.faces.companion, &settings.prices);
        let now = bill(set).usd;
        let row = |way: Way| {
            let bill = bill(way);
            Row { way, ratio: (now > 0.0).then(|| bill.usd / now), bill, is_set: way == set }
        };
        Way::ALL.map(row).into_iter().collect()
    });
    if output.is_json() {
        output.json(&to_json(&tally, averages.as_ref(), &rows))?;
    } else {
        tell(&tally, averages.as_ref(), &rows, output)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(tally: &Tally, averages: Option<&Averages>, rows: &[Row]) -> Value {
    let work = |(analyzer, work): (&String, &Work)| {
        json!({
            "analyzer": analyzer,
            "decisions": work.decisions,
            "faces": work.faces,
            "persons_founded": work.founded,
            "faces_known_by": work.templates,
        })
    };
    let way = |Row { way, bill, ratio, is_set }: &Row| {
        let calls: serde_json::Map<String, Value> =
            bill.calls.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
        json!({
            "way": way.code(),
            "set": is_set,
            "calls_per_1000_photos": calls,
            "cpu_seconds_per_1000_photos": bill.cpu_seconds,
            "usd_per_1000_photos": bill.usd,
            "usd_a_month_for_keeping_them": bill.usd_a_month,
            "ratio": ratio,
        })
    };
    let a_photo = |averages: &Averages| json!({ "faces": averages.faces, "persons_founded": averages.founded, "faces_known_by": averages.templates });
    json!({
        "photos": tally.photos,
        "work": tally.work.iter().map(work).collect::<Vec<_>>(),
        "a_photo": averages.map(a_photo),
        "ways": rows.iter().map(way).collect::<Vec<_>>(),
    })
}

fn tell(tally: &Tally, averages: Option<&Averages>, rows: &[Row], output: &mut Output) -> anyhow::Result<()> {
    let Some(averages) = averages else {
        return Ok(output.line("nobody has looked for faces in any photo yet: there is nothing to count")?);
    };
    output.line(format!(
        "{} photos, each with {:.2} faces and {:.3} new persons\n",
        tally.photos, averages.faces, averages.founded
    ))?;
    let work = tally.work.iter().map(|(analyzer, work)| {
        vec![analyzer.clone(), work.decisions.to_string(), work.faces.to_string(), work.founded.to_string()]
    });
    output.table(&["analyzer", "photos decided", "faces", "persons founded"], work.collect::<Vec<_>>())?;
    output.line("")?;
    let header = ["way", "calls per 1,000 photos", "CPU", "USD per 1,000", "USD a month", "ratio"];
    output.table(&header, rows.iter().map(cells).collect::<Vec<_>>())?;
    output.line(
        "\nUSD a month: for keeping the faces of 1,000 photos. Prices and seconds are settings (prices.*): look yours up.\n\
         Calls of S3, DynamoDB, SQS and SNS are the same in every way, and left out; so is what a plan costs at least (Pinecone's).",
    )?;
    Ok(())
}

fn cells(Row { way, bill, ratio, is_set }: &Row) -> Vec<String> {
    let calls: Vec<String> = bill.calls.iter().map(|(name, count)| format!("{count:.0} {name}")).collect();
    let set = if *is_set { " (set now)" } else { "" };
    vec![
        way.name().into(),
        if calls.is_empty() { "none".into() } else { calls.join(", ") },
        format!("{:.0} s", bill.cpu_seconds),
        format!("{:.4}", bill.usd),
        format!("{:.6}", bill.usd_a_month),
        ratio.map_or_else(|| format!("-{set}"), |ratio| format!("{ratio:.3}{set}")),
    ]
}
