//! Making what is missing in an account, and nothing else. What is there stays as it is.

mod tables;

use std::fmt;

use aws_sdk_dynamodb::error::BuildError;

use crate::{Connection, Tables, trouble::Trouble};

/// Something that a worker needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What.
    pub what: String,
    /// What was done about it.
    pub done: Done,
}

/// What was done about something that a worker needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Nothing: it is there.
    Found,
    /// It was made.
    Made,
    /// Nothing: it would be made.
    Wanted,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Found => "there",
            Self::Made => "made",
            Self::Wanted => "missing",
        })
    }
}

/// Something that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct SetupError {
    what: String,
    why: String,
}

impl SetupError {
    fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { what: what.into(), why: why.to_string() }
    }
}

/// Makes what is missing, or with `dry_run` only says what that is.
pub struct Setup {
    connection: Connection,
    dry_run: bool,
    steps: Vec<Step>,
}

impl Setup {
    /// Works over this connection.
    pub fn new(connection: &Connection, dry_run: bool) -> Self {
        Self { connection: connection.clone(), dry_run, steps: Vec::new() }
    }

    /// What was found and what was made.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// The three tables.
    pub async fn tables(&mut self, tables: &Tables) -> Result<(), SetupError> {
        let client = self.connection.dynamodb();
        for (name, shape) in tables::shapes(tables) {
            let what = format!("table {name}");
            match tables::describe(&client, name).await.map_err(failed(&what))? {
                Some(found) => {
                    self.found(&what);
                    self.indexes(&client, name, &shape, &found).await?;
                }
                None if self.dry_run => self.wanted(&what),
                None => {
                    tables::create(&client, name, &shape).await.map_err(failed(&what))?;
                    self.made(&what);
                }
            }
            self.upkeep(&client, name, &shape).await?;
        }
        Ok(())
    }

    /// Indexes that the platform's table lacks. One by one: a table takes one new index at a time.
    async fn indexes(
        &mut self,
        client: &aws_sdk_dynamodb::Client,
        name: &str,
        shape: &tables::Shape,
        found: &[String],
    ) -> Result<(), SetupError> {
        for index in shape.local.iter().filter(|index| !found.contains(&(*index).to_string())) {
            let why = "a local index cannot be added to a table: make the table anew, or do without paging by limit";
            return Err(SetupError::new(format!("index {index} of table {name}"), why));
        }
        for index in &shape.global {
            let what = format!("index {} of table {name}", index.name);
            match (found.iter().any(|known| known == index.name), self.dry_run) {
                (true, _) => self.found(&what),
                (false, true) => self.wanted(&what),
                (false, false) => {
                    tables::add_index(client, name, index).await.map_err(failed(&what))?;
                    self.made(&what);
                }
            }
        }
        Ok(())
    }

    /// What a table does by itself: expiry, and backups to any point in time.
    async fn upkeep(
        &mut self,
        client: &aws_sdk_dynamodb::Client,
        name: &str,
        shape: &tables::Shape,
    ) -> Result<(), SetupError> {
        if shape.expires {
            let what = format!("expiry of rows in table {name}");
            match (tables::expires(client, name).await, self.dry_run) {
                (true, _) => self.found(&what),
                (false, true) => self.wanted(&what),
                (false, false) => {
                    tables::let_expire(client, name).await.map_err(failed(&what))?;
                    self.made(&what);
                }
            }
        }
        if shape.backed_up {
            let what = format!("point-in-time recovery of table {name}");
            match (tables::is_backed_up(client, name).await, self.dry_run) {
                (true, _) => self.found(&what),
                (false, true) => self.wanted(&what),
                (false, false) => {
                    tables::back_up(client, name).await.map_err(failed(&what))?;
                    self.made(&what);
                }
            }
        }
        Ok(())
    }

    fn found(&mut self, what: &str) {
        self.steps.push(Step { what: what.to_owned(), done: Done::Found });
    }

    fn made(&mut self, what: &str) {
        self.steps.push(Step { what: what.to_owned(), done: Done::Made });
    }

    fn wanted(&mut self, what: &str) {
        self.steps.push(Step { what: what.to_owned(), done: Done::Wanted });
    }
}

fn failed(what: &str) -> impl Fn(Trouble) -> SetupError {
    let what = what.to_owned();
    move |trouble| SetupError::new(what.clone(), trouble)
}

impl From<BuildError> for Trouble {
    fn from(error: BuildError) -> Self {
        Self { code: None, status: None, words: error.to_string() }
    }
}
