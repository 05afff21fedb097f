//! Making what is missing in an account, and nothing else. What is there stays as it is.

mod bucket;
mod queues;
mod tables;

use std::fmt;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_sqs::types::QueueAttributeName;

use self::queues::Wish;
use crate::{Connection, Tables, names::is_fifo, sns::find_topic, trouble::Trouble};

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

/// Everything that a worker needs, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estate {
    /// The tables.
    pub tables: Tables,
    /// The bucket.
    pub bucket: String,
    /// What the objects are called that the bucket tells of.
    pub prefixes: Vec<String>,
    /// Where work comes from.
    pub work: String,
    /// Where copies wait, beside a FIFO queue.
    pub waiting: Option<String>,
    /// Where dead letters go.
    pub dead: String,
    /// The topic through which the bucket tells of its objects; without, it tells the queue itself.
    pub uploads: Option<String>,
    /// The topics to which notices go.
    pub notices: Vec<String>,
    /// Seconds that a lease lasts.
    pub visibility: u64,
    /// After so many receives without a settlement a message is a dead letter.
    pub max_deaths: u32,
}

/// Whom a bucket tells, by ARN.
pub(crate) enum Listener {
    Queue(String),
    Topic(String),
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

    /// Everything.
    pub async fn all(&mut self, estate: &Estate) -> Result<(), SetupError> {
        self.tables(&estate.tables).await?;
        let work = self.queues(estate).await?;
        for topic in &estate.notices {
            self.topic(topic).await?;
        }
        let listener = match &estate.uploads {
            Some(topic) => self.topic(topic).await?.map(Listener::Topic),
            None if is_fifo(&estate.work) => None,
            None => work.as_ref().map(|(_, arn)| Listener::Queue(arn.clone())),
        };
        let source = format!("arn:aws:s3:::{}", estate.bucket);
        match (&listener, &work) {
            (Some(Listener::Topic(topic)), Some((url, queue))) => {
                self.publication(topic, &source).await?;
                self.subscription(topic, url, queue).await?;
            }
            (Some(Listener::Queue(_)), Some((url, queue))) => {
                self.permission(url, queue, "s3.amazonaws.com", &source).await?;
            }
            _ => {}
        }
        let is_there = self.bucket(&estate.bucket).await?;
        self.notifications(estate, listener.as_ref(), is_there).await
    }

    /// The queues, dead letters first. Says where work comes from, by URL and ARN.
    pub async fn queues(&mut self, estate: &Estate) -> Result<Option<(String, String)>, SetupError> {
        let dead = self.queue(Wish::new(&estate.dead).kept_long()).await?;
        let redriven = |wish: Wish| match &dead {
            // A queue and its dead letters are of one kind.
            Some((_, arn)) if is_fifo(arn) == is_fifo(&wish.name) => wish.with_redrive(arn, estate.max_deaths),
            _ => wish,
        };
        if let Some(waiting) = &estate.waiting {
            self.queue(Wish::new(waiting).with_visibility(estate.visibility).kept_long()).await?;
        }
        self.queue(redriven(Wish::new(&estate.work).with_visibility(estate.visibility).kept_long())).await
    }

    async fn queue(&mut self, wish: Wish) -> Result<Option<(String, String)>, SetupError> {
        let (client, what) = (self.connection.sqs(), format!("queue {}", wish.name));
        match queues::find(&client, &wish.name).await.map_err(failed(&what))? {
            Some((url, arn)) => {
                self.found(&what);
                self.redrive(&client, &url, &wish).await?;
                Ok(Some((url, arn)))
            }
            None if self.dry_run => {
                self.wanted(&what);
                Ok(None)
            }
            None => {
                let made = queues::create(&client, &wish).await.map_err(failed(&what))?;
                self.made(&what);
                Ok(Some(made))
            }
        }
    }

    /// Where a queue of others has no dead letters, it gets ours.
    async fn redrive(&mut self, client: &aws_sdk_sqs::Client, url: &str, wish: &Wish) -> Result<(), SetupError> {
        let (what, name) = (format!("dead letters of queue {}", wish.name), QueueAttributeName::RedrivePolicy);
        let Some(policy) = wish.attributes.get(&name) else { return Ok(()) };
        let found = queues::attribute(client, url, name.clone()).await.map_err(failed(&what))?;
        match (found, self.dry_run) {
            (Some(_), _) => self.found(&what),
            (None, true) => self.wanted(&what),
            (None, false) => {
                queues::set_attribute(client, url, name, policy).await.map_err(failed(&what))?;
                self.made(&what);
            }
        }
        Ok(())
    }

    /// The topic. Says its ARN.
    async fn topic(&mut self, name: &str) -> Result<Option<String>, SetupError> {
        let (client, what) = (self.connection.sns(), format!("topic {name}"));
        let name = name.rsplit(':').next().unwrap_or(name);
        match find_topic(&client, name).await.map_err(failed(&what))? {
            Some(arn) => {
                self.found(&what);
                Ok(Some(arn))
            }
            None if self.dry_run => {
                self.wanted(&what);
                Ok(None)
            }
            None => {
                let arn = queues::create_topic(&client, name).await.map_err(failed(&what))?;
                self.made(&what);
                Ok(Some(arn))
            }
        }
    }

    async fn subscription(&mut self, topic: &str, url: &str, queue: &str) -> Result<(), SetupError> {
        self.permission(url, queue, "sns.amazonaws.com", topic).await?;
        let (client, what) = (self.connection.sns(), format!("subscription of {queue} to {topic}"));
        match (queues::is_subscribed(&client, topic, queue).await.map_err(failed(&what))?, self.dry_run) {
            (true, _) => self.found(&what),
            (false, true) => self.wanted(&what),
            (false, false) => {
                queues::subscribe(&client, topic, queue).await.map_err(failed(&what))?;
                self.made(&what);
            }
        }
        Ok(())
    }

    /// That the bucket may publish to the topic.
    async fn publication(&mut self, topic: &str, source: &str) -> Result<(), SetupError> {
        let (client, what) = (self.connection.sns(), format!("permission of {source} to publish to {topic}"));
        let policy = queues::topic_policy(&client, topic).await.map_err(failed(&what))?;
        let allowed = queues::allowing(policy.as_deref(), "sns:Publish", topic, "s3.amazonaws.com", source);
        match (allowed, self.dry_run) {
            (None, _) => self.found(&what),
            (Some(_), true) => self.wanted(&what),
            (Some(policy), false) => {
                queues::set_topic_policy(&client, topic, &policy).await.map_err(failed(&what))?;
                self.made(&what);
            }
        }
        Ok(())
    }

    /// That this source may send to the queue.
    async fn permission(&mut self, url: &str, queue: &str, service: &str, source: &str) -> Result<(), SetupError> {
        let (client, what) = (self.connection.sqs(), format!("permission of {source} to send to {queue}"));
        let policy = queues::attribute(&client, url, QueueAttributeName::Policy).await.map_err(failed(&what))?;
        let allowed = queues::allowing(policy.as_deref(), "sqs:SendMessage", queue, service, source);
        match (allowed, self.dry_run) {
            (None, _) => self.found(&what),
            (Some(_), true) => self.wanted(&what),
            (Some(policy), false) => {
                let set = queues::set_attribute(&client, url, QueueAttributeName::Policy, &policy);
                set.await.map_err(failed(&what))?;
                self.made(&what);
            }
        }
        Ok(())
    }

    /// The bucket. Says whether it is there by now.
    pub async fn bucket(&mut self, name: &str) -> Result<bool, SetupError> {
        let (client, what) = (self.connection.s3(), format!("bucket {name}"));
        let is_there = bucket::exists(&client, name).await.map_err(failed(&what))?;
        match (is_there, self.dry_run) {
            (true, _) => self.found(&what),
            (false, true) => self.wanted(&what),
            (false, false) => {
                bucket::create(&client, name).await.map_err(failed(&what))?;
                self.made(&what);
            }
        }
        Ok(is_there || !self.dry_run)
    }

    /// That the bucket tells of its objects.
    async fn notifications(
        &mut self,
        estate: &Estate,
        listener: Option<&Listener>,
        is_there: bool,
    ) -> Result<(), SetupError> {
        if is_fifo(&estate.work) && estate.uploads.is_none() {
            tracing::warn!(
                "S3 cannot tell a FIFO queue of new objects: let it tell EventBridge, and EventBridge the queue"
            );
            return Ok(());
        }
        let client = &self.connection.s3();
        let what = |prefix: &str| format!("notification of {prefix} in bucket {}", estate.bucket);
        let Some(listener) = listener.filter(|_| is_there) else {
            estate.prefixes.iter().for_each(|prefix| self.wanted(&what(prefix)));
            return Ok(());
        };
        let about = format!("notifications of bucket {}", estate.bucket);
        let mut known = bucket::notifications(client, &estate.bucket).await.map_err(failed(&about))?;
        for prefix in &estate.prefixes {
            match (bucket::tells(&known, listener, prefix), self.dry_run) {
                (true, _) => self.found(&what(prefix)),
                (false, true) => self.wanted(&what(prefix)),
                (false, false) => {
                    let told = bucket::tell(client, &estate.bucket, known, listener, prefix).await;
                    known = told.map_err(failed(&what(prefix)))?;
                    self.made(&what(prefix));
                }
            }
        }
        Ok(())
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
