//! `sparks persons`

use std::{process::ExitCode, str::FromStr, sync::Arc};

use serde_json::{Value, json};
use sparks_domain::{Event, Evidence, InvalidId, MergeProposal, MergeReason, RecordedEvent, Seq};
use sparks_engine::{Consolidator, CpuPool, FaceSearch, GalleryIndex, MergeError, PhotoUpdateReport};

use crate::{
    backend::Backend,
    cli::{Global, PersonsAction, PersonsArgs},
    output::{Output, progress_bar},
    telemetry::metrics::Metrics,
    wiring::{self, FaceBackends, UsageError},
};

/// Suggests, merges, unmerges or lists persons.
pub async fn run(global: &Global, args: PersonsArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let mut settings = wiring::settings(global, &[])?.settings;
    let (cpu, metrics) = (CpuPool::new(1), Metrics::new());
    let face_backends = FaceBackends::from_settings(&settings, &cpu, &metrics).await?;
    let backend = wiring::open(&settings).await?;
    let index = wiring::gallery_index(&settings, &backend).await?;
    let face_backends = face_backends.for_enrolled_persons(&mut settings, &index, &cpu, &metrics).await?;
    let pipeline = wiring::pipeline(&settings, &backend, cpu, &face_backends, Arc::clone(&index), &metrics)?;
    let consolidator = wiring::consolidator(&settings, &backend, Arc::clone(&index), Arc::new(pipeline))?;
    let result = match &args.action {
        PersonsAction::Suggest => suggest(&consolidator, output).await,
        PersonsAction::Merge { a, b, force } => {
            let merged = consolidator.merge(parse(a)?, parse(b)?, *force).await;
            let updated = apply_merges(&consolidator).await?; // also finishes an interrupted call
            let merged = merged.map_err(to_usage_error)?;
            let json_result =
                json!({ "event": merged.event, "into": merged.into, "from": merged.from, "photos": updated.photos });
            let text = format!(
                "{} merged into {}, photos updated: {}; undo it with `sparks persons unmerge {}`",
                merged.from, merged.into, updated.photos, merged.event
            );
            print_result(output, &json_result, &text)
        }
        PersonsAction::Unmerge { event } => {
            let person = consolidator.unmerge(parse(event)?).await.map_err(to_usage_error)?;
            let updated = apply_merges(&consolidator).await?;
            let json_result = json!({ "person": person, "photos": updated.photos });
            print_result(output, &json_result, &format!("{person} is a separate person again"))
        }
        PersonsAction::Merges => list(&backend, &index, output).await,
    };
    result.map(|()| ExitCode::SUCCESS)
}

async fn suggest(consolidator: &Consolidator, output: &mut Output) -> anyhow::Result<()> {
    let proposals = consolidator.propose(None).await?;
    let strong = proposals.merges.iter().map(|merge| ("strong", merge));
    let weaker = proposals.suggestions.iter().map(|merge| ("weaker", merge));
    let all: Vec<(&str, &MergeProposal)> = strong.chain(weaker).collect();
    if output.is_json() {
        for (strength, merge) in all {
            output.json(
                &json!({ "into": merge.into, "from": merge.from, "evidence": strength, "grounds": merge.evidence }),
            )?;
        }
        return Ok(());
    }
    if all.is_empty() {
        return Ok(output.line("no persons seem to be the same")?);
    }
    let header = ["persons", "", "evidence", "similarity", "deviations", "lead over second best", "to merge them"];
    let rows = all.iter().map(|(strength, MergeProposal { into, from, evidence })| {
        vec![
            into.to_string(),
            from.to_string(),
            (*strength).into(),
            format!("{:.3}", evidence.similarity),
            format!("{:.1}", evidence.distinction),
            format!("{:.1}", evidence.lead),
            format!("sparks persons merge {into} {from}"),
        ]
    });
    Ok(output.table(&header, rows.collect::<Vec<_>>())?)
}

/// Prints all merges, also those that were undone.
async fn list(backend: &Backend, index: &GalleryIndex, output: &mut Output) -> anyhow::Result<()> {
    let merges = index.merges();
    let mut rows = Vec::new();
    for RecordedEvent { id, when, event, .. } in backend.store.identity(Seq(0)).await?.events {
        let Event::PersonsMerged(merge) = event else { continue };
        let holds = merges.get(id).is_some();
        if output.is_json() {
            let grounds = serde_json::to_value(&merge.grounds)?;
            output.json(&json!({
                "event": id, "when": when, "into": merge.into, "from": merge.from, "holds": holds, "grounds": grounds,
            }))?;
        } else {
            let state = if holds { "in effect" } else { "undone" };
            let persons = format!("{} into {}", merge.from, merge.into);
            rows.push(vec![id.to_string(), when.to_string(), persons, state.into(), describe_reason(&merge.grounds)]);
        }
    }
    if output.is_json() { Ok(()) } else { Ok(output.table(&["event", "when", "merge", "state", "reason"], rows)?) }
}

/// Describes why two persons were merged.
pub fn describe_reason(grounds: &MergeReason) -> String {
    match grounds {
        MergeReason::Requested => "requested by a user".into(),
        MergeReason::SimilarFaces(Evidence { similarity, distinction, pairs, .. }) => {
            format!(
                "{pairs} pairs of faces have similarity {similarity:.3}, {distinction:.1} standard deviations above that of different persons"
            )
        }
    }
}

/// Updates the photos of merged persons, with a progress bar.
async fn apply_merges(consolidator: &Consolidator) -> Result<PhotoUpdateReport, MergeError> {
    let bar = progress_bar(0, "photos");
    let updated = consolidator.apply_merges(|photos| bar.set_position(photos as u64)).await;
    bar.finish_and_clear();
    updated
}

fn print_result(output: &mut Output, json: &Value, text: &str) -> anyhow::Result<()> {
    if output.is_json() {
        output.json(json)?
    } else {
        output.line(text)?
    }
    Ok(())
}

fn parse<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, UsageError> {
    text.parse().map_err(|error: InvalidId| UsageError(error.to_string()))
}

/// Reports impossible requests as wrong usage, and everything else as a failure.
fn to_usage_error(error: MergeError) -> anyhow::Error {
    match error {
        MergeError::Unknown(_)
        | MergeError::AlreadyMerged(..)
        | MergeError::SeenTogether(..)
        | MergeError::NotAMerge(_) => UsageError(error.to_string()).into(),
        failure => failure.into(),
    }
}
