//! Arguments of the commands that read the table.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "\
Prints a table on a terminal, and the JSON of the platform's API otherwise.

Examples:
  sparks query persons
  sparks query photos --by ann@example.com --limit 20
  sparks query photos --limit 20 --after \"$TOKEN\"    $TOKEN: lastEvaluatedKey of the page before
  sparks query photos-of person1 --json")]
pub struct QueryArgs {
    #[command(subcommand)]
    pub query: QueryCommand,
}

#[derive(Debug, Args)]
pub struct PageArgs {
    /// Maximum number of results
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Start after this lastEvaluatedKey of the page before
    #[arg(long, value_name = "TOKEN")]
    pub after: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum QueryCommand {
    /// List all persons
    Persons(PageArgs),
    /// Show one person
    Person {
        /// Person ID: person1, person2, ...
        id: String,
    },
    /// List all photos, newest first
    Photos {
        /// List only the photos of this uploader
        #[arg(long, value_name = "EMAIL")]
        by: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one photo
    Photo {
        /// Image ID
        id: String,
    },
    /// List the photos of one person, newest first
    PhotosOf {
        /// Person ID: person1, person2, ...
        person: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// List all users
    Users(PageArgs),
    /// Show one user
    User {
        /// E-mail address of the user
        email: String,
    },
    /// Show how many more photos a user may upload
    Limit {
        /// E-mail address of the user
        email: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
In a data folder the rows are sorted by PK and SK.

Examples:
  sparks items
  sparks items --pk PERSON#person1")]
pub struct ItemsArgs {
    /// Print only the rows of this partition
    #[arg(long, value_name = "PK")]
    pub pk: Option<String>,
}
