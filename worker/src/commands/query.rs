//! `sparks query`

use std::{process::ExitCode, str::FromStr, sync::Arc};

use serde_json::Value;
use sparks_domain::InvalidId;
use sparks_engine::{Paging, QueryModel};

use crate::{
    cli::{Global, PageArgs, QueryArgs, QueryCommand},
    output::Output,
    wiring::{self, UsageError},
};

/// Prints the answer that the platform's API would give.
pub async fn run(global: &Global, args: QueryArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let model = QueryModel::new(Arc::clone(&backend.store) as Arc<_>);
    let (answer, what) = match &args.query {
        QueryCommand::Persons(page) => (Some(model.persons(&paging(page)?).await?), "persons".into()),
        QueryCommand::Photos { by, page } => {
            let by = by.as_deref().map(parse).transpose()?;
            (Some(model.photos(by.as_ref(), &paging(page)?).await?), "photos".into())
        }
        QueryCommand::PhotosOf { person, page } => {
            (Some(model.photos_of(parse(person)?, &paging(page)?).await?), "photos".into())
        }
        QueryCommand::Users(page) => (Some(model.users(&paging(page)?).await?), "users".into()),
        QueryCommand::Person { id } => (model.person(parse(id)?).await?, format!("person {id}")),
        QueryCommand::Photo { id } => (model.photo(&parse(id)?).await?, format!("photo {id}")),
        QueryCommand::User { email } => (model.user(&parse(email)?).await?, format!("user {email}")),
        QueryCommand::Limit { email } => (model.limit(&parse(email)?).await?, format!("limit of {email}")),
    };
    let Some(answer) = answer else { anyhow::bail!("{what} does not exist in {}", backend.location) };
    print(&answer, output)?;
    Ok(ExitCode::SUCCESS)
}

fn parse<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, UsageError> {
    text.parse().map_err(|error: InvalidId| UsageError(error.to_string()))
}

fn paging(page: &PageArgs) -> Result<Paging, UsageError> {
    Paging::new(page.limit as usize, page.after.as_deref()).map_err(|error| UsageError(error.to_string()))
}

fn print(answer: &Value, output: &mut Output) -> anyhow::Result<()> {
    let list = answer.as_object().and_then(|object| {
        object.values().find_map(Value::as_array).filter(|_| object.contains_key("lastEvaluatedKey"))
    });
    match list {
        _ if output.is_json() || !output.is_terminal() => output.json(answer)?,
        None => output.pretty(answer)?,
        Some(rows) => {
            output.table(&["id", "name or uploader", "persons", "key"], rows.iter().map(row))?;
            if let Some(token) = answer["lastEvaluatedKey"].as_str() {
                output.line(format!("\nmore results: --after '{token}'"))?;
            }
        }
    }
    Ok(())
}

fn row(row: &Value) -> Vec<String> {
    let first = |names: &[&str]| names.iter().find_map(|name| row[*name].as_str()).unwrap_or_default().to_owned();
    let persons = row["persons"].as_array().map(Vec::as_slice).unwrap_or_default();
    let persons: Vec<&str> = persons.iter().filter_map(Value::as_str).collect();
    vec![
        first(&["personId", "imageId", "email"]),
        first(&["displayName", "username", "uploadedBy"]),
        persons.join(" "),
        first(&["s3Key", "profilePicture"]),
    ]
}
