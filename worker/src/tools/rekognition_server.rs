//! `sparks rekognition-server`

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use serde_json::json;
use sparks_config::{Analyzer, Settings};
use sparks_engine::FaceEngine;
use sparks_faces::{Embedders, SyntheticEngine};
use sparks_rekognition::{Model, Options, Server, Service, SigningKeys};

use super::cli::{Engine, RekognitionServerArgs};
use crate::{
    cli::Global,
    output::Output,
    run::Shutdown,
    wiring::{self, UsageError},
};

/// The gallery size for which similarities are scaled. They must mean the same in every collection, so that the actual
/// size cannot be used.
const ASSUMED_PERSONS: usize = 1000;

/// Serves requests until a signal stops the server.
pub async fn run(global: &Global, args: RekognitionServerArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let faces = args.faces.map(|faces| ("faces.analyzer", "--faces", Engine::name(faces).into()));
    let settings = wiring::settings(global, &Vec::from_iter(faces))?.settings;
    let options = Options { keys: args.signed.then(keys).transpose()?, ..Options::default() };
    let shutdown = Shutdown::listen().context("failed to listen for signals")?;
    let (engine, model) = engine(&settings)?;
    let image_processor = wiring::image_processor(&settings);
    let service = match &args.dir {
        Some(dir) => {
            Service::open(engine, image_processor, model, options, dir).context("failed to open the collections")?
        }
        None => Service::new(engine, image_processor, model, options),
    };
    let server = Server::bind(args.listen.as_str(), Arc::new(service)).await;
    let server =
        server.map_err(|error| UsageError(format!("--listen: failed to listen on {}: {error}", args.listen)))?;
    if !server.address().ip().is_loopback() {
        tracing::warn!(address = %server.address(), "listening on a non-loopback address: there is no TLS");
    }
    print_endpoint(&server, &args, output)?;
    let mut stop = shutdown.watch();
    drop(stop.wait_for(|stop| *stop).await);
    server.stop(Duration::from_secs(settings.run.grace_seconds)).await;
    Ok(ExitCode::SUCCESS)
}

/// Returns the configured face engine, with the model that the server reports to clients.
fn engine(settings: &Settings) -> anyhow::Result<(Arc<dyn FaceEngine>, Model)> {
    // Clients expect a version of digits and dots: the number of embedding models and their edition.
    let (engine, version): (Arc<dyn FaceEngine>, _) = match settings.faces.analyzer {
        Analyzer::Off => return Err(UsageError("faces.analyzer is off; pass --faces local".into()).into()),
        Analyzer::Rekognition => {
            let reason = "faces.analyzer is \"rekognition\", which this server replaces; pass --faces local";
            return Err(UsageError(reason.into()).into());
        }
        Analyzer::Synthetic => (Arc::new(SyntheticEngine), "0.1"),
        Analyzer::Local => {
            let version = match wiring::embedders(&settings.faces.models)? {
                Embedders::Dlib => "1.1",
                Embedders::DlibMobilefacenet => "2.1",
                Embedders::SfaceMobilefacenet => "2.2",
            };
            (Arc::new(wiring::local_engine(settings)?), version)
        }
    };
    let threshold = wiring::gallery_policy(settings)?.threshold.among(ASSUMED_PERSONS);
    let model = Model::new(version, threshold).map_err(|error| UsageError(format!("faces.threshold: {error}")))?;
    Ok((engine, model))
}

/// Returns the keys with which clients must sign.
fn keys() -> anyhow::Result<SigningKeys> {
    let variable = |name: &str| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        value.ok_or_else(|| UsageError(format!("--signed requires {name} in the environment")))
    };
    Ok(SigningKeys { access_key: variable("AWS_ACCESS_KEY_ID")?, secret_key: variable("AWS_SECRET_ACCESS_KEY")? })
}

/// Prints the endpoint once the server accepts requests, so that scripts can wait for the line.
fn print_endpoint(server: &Server, args: &RekognitionServerArgs, output: &mut Output) -> std::io::Result<()> {
    let endpoint = server.endpoint();
    if output.is_json() {
        output.json(&json!({ "endpoint": endpoint, "port": server.port() }))?;
    } else {
        let location = args.dir.as_ref().map_or("in memory".to_owned(), |dir| format!("in {}", dir.display()));
        output.line(format!("listening on {endpoint}, collections {location}"))?;
    }
    output.flush()
}
