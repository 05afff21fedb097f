//! `sparks rekognition-server`

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use serde_json::json;
use sparks_rekognition::{Keys, Options, Server, Service};

use crate::{
    cli::{Engine, Global, RekognitionServerArgs},
    output::Output,
    run::Shutdown,
    wiring::{self, WrongUse},
};

/// Answers Rekognition's clients until told to stop.
pub async fn run(global: &Global, args: RekognitionServerArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let faces = args.faces.map(|faces| ("faces.analyzer", "--faces", Engine::name(faces).into()));
    let settings = wiring::settings(global, &Vec::from_iter(faces))?.settings;
    let options = Options { keys: args.signed.then(keys).transpose()?, ..Options::default() };
    let shutdown = Shutdown::listen().context("cannot listen for signals")?;
    let (engine, model) = wiring::recogniser(&settings)?;
    let darkroom = wiring::darkroom(&settings);
    let service = match &args.dir {
        Some(dir) => Service::open(engine, darkroom, model, options, dir).context("cannot open the collections")?,
        None => Service::new(engine, darkroom, model, options),
    };
    let server = Server::bind(args.listen.as_str(), Arc::new(service)).await;
    let server = server.map_err(|error| WrongUse(format!("--listen: cannot listen on {}: {error}", args.listen)))?;
    if !server.address().ip().is_loopback() {
        tracing::warn!(address = %server.address(), "whoever reaches this address can see faces: there is no TLS");
    }
    tell(&server, &args, output)?;
    let mut stop = shutdown.watch();
    drop(stop.wait_for(|stop| *stop).await);
    server.stop(Duration::from_secs(settings.run.grace_seconds)).await;
    Ok(ExitCode::SUCCESS)
}

/// The keys that clients of this machine have as well.
fn keys() -> anyhow::Result<Keys> {
    let variable = |name: &str| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        value.ok_or_else(|| WrongUse(format!("--signed needs {name} in the environment")))
    };
    Ok(Keys { access_key: variable("AWS_ACCESS_KEY_ID")?, secret_key: variable("AWS_SECRET_ACCESS_KEY")? })
}

/// Said when it can be asked, so that scripts may wait for it.
fn tell(server: &Server, args: &RekognitionServerArgs, output: &mut Output) -> std::io::Result<()> {
    let endpoint = server.endpoint();
    if output.is_json() {
        output.json(&json!({ "endpoint": endpoint, "port": server.port() }))?;
    } else {
        let place = args.dir.as_ref().map_or("in memory".to_owned(), |dir| format!("in {}", dir.display()));
        output.line(format!("listening on {endpoint}, collections {place}"))?;
    }
    output.flush()
}
