//! Commands that the worker itself does not need: load test, cost estimate, synthetic albums, face evaluation and the
//! Rekognition server. Built with the feature `tools`, which is on by default. The work is done in crates of their own
//! where possible: `sparks-load`, `sparks-evaluation`, `sparks-rekognition`.

mod canvas;
mod cli;
mod cost;
mod cost_model;
mod evaluate_faces;
mod labelled_photos;
mod load;
mod load_output;
mod rekognition_server;
mod show_faces;
mod synth;

use std::process::ExitCode;

pub use cli::ToolCommand;
use cli::{FacesAction, FacesArgs};

use crate::{cli::Global, output::Output};

/// Runs the tool.
pub async fn run(global: &Global, tool: ToolCommand, output: &mut Output) -> anyhow::Result<ExitCode> {
    match tool {
        ToolCommand::Synth(args) => synth::run(args, output),
        ToolCommand::Load(args) => load::run(global, args, output).await,
        ToolCommand::Cost => cost::run(global, output).await,
        ToolCommand::Faces(FacesArgs { action: FacesAction::Eval(args) }) => {
            evaluate_faces::run(global, args, output).await
        }
        ToolCommand::Faces(FacesArgs { action: FacesAction::Show(args) }) => {
            show_faces::run(global, args, output).await
        }
        ToolCommand::RekognitionServer(args) => rekognition_server::run(global, args, output).await,
    }
}
