//! Making what is missing in an account, and nothing else. What is there stays as it is.

pub(crate) mod bucket;
pub(crate) mod collection;
pub(crate) mod queues;
pub(crate) mod tables;

use std::fmt;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_sqs::types::QueueAttributeName;

pub(crate) use self::bucket::notifications;
use self::{queues::Wish, tables::Shape};
use crate::{
    Connection, Tables,
    names::{bucket_arn, is_fifo},
    sns::find_topic,
    trouble::Trouble,
};

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
    /// Nothing: it is for you to make.
    Yours,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Found => "there",
            Self::Made => "made",
            Self::Wanted => "missing",
            Self::Yours => "yours",
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
    /// The topic through which the bucket tells of its objects; without, it tells the queue itself. Left alone
    /// where the queue is FIFO.
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
        let is_there = self.bucket(&estate.bucket).await?;
        if is_fifo(&estate.work) {
            // It hears no standard topic, and S3 tells no FIFO topic either.
            let (bucket, queue) = (&estate.bucket, &estate.work);
            let what = format!("news of bucket {bucket}: let it tell EventBridge, and a rule there queue {queue}");
            self.note(&format!("{what} (S3 cannot tell a FIFO queue)"), Done::Yours);
            return Ok(());
        }
        let listener = match &estate.uploads {
            Some(topic) => self.topic(topic).await?.map(Listener::Topic),
            None => work.as_ref().map(|(_, arn)| Listener::Queue(arn.clone())),
        };
        let source = bucket_arn(self.connection.region().as_deref(), &estate.bucket);
        match (&listener, &work) {
            (Some(Listener::Topic(topic)), Some((url, queue))) => {
                self.publication(topic, &source).await?;
                self.permission(url, queue, "sns.amazonaws.com", topic).await?;
                self.subscription(topic, queue).await?;
            }
            (Some(Listener::Queue(queue)), Some((url, _))) => {
                self.permission(url, queue, "s3.amazonaws.com", &source).await?;
            }
            _ => {}
        }
        self.notifications(estate, listener.filter(|_| is_there).as_ref()).await
    }

    /// The three tables.
    pub async fn tables(&mut self, tables: &Tables) -> Result<(), SetupError> {
        let client = self.connection.dynamodb();
        for (name, shape) in tables::shapes(tables) {
            let what = format!("table {name}");
            let found = tables::describe(&client, name).await.map_err(failed(&what))?;
            self.ensure(&what, found.is_some(), async || tables::create(&client, name, &shape).await).await?;
            let indexes = found.as_ref().map(tables::index_names);
            self.indexes(&client, name, &shape, indexes.as_deref()).await?;
            if shape.expires {
                let (what, is_so) = (format!("expiry of rows in {what}"), tables::expires(&client, name).await);
                self.ensure(&what, is_so, async || tables::let_expire(&client, name).await).await?;
            }
            if shape.backed_up {
                let (what, is_so) = (format!("recovery of {what}"), tables::is_backed_up(&client, name).await);
                self.ensure(&what, is_so, async || tables::back_up(&client, name).await).await?;
            }
        }
        Ok(())
    }

    /// Indexes that the platform's table lacks, one by one: a table takes one new index at a time.
    async fn indexes(
        &mut self,
        client: &aws_sdk_dynamodb::Client,
        name: &str,
        shape: &Shape,
        found: Option<&[String]>,
    ) -> Result<(), SetupError> {
        let Some(found) = found else { return Ok(()) };
        let is_there = |index: &str| found.iter().any(|known| known == index);
        if let Some(index) = shape.local.iter().find(|index| !is_there(index)) {
            let why = "a local index cannot be added to a table that is there: make the table anew";
            return Err(SetupError::new(format!("index {index} of table {name}"), why));
        }
        for index in &shape.global {
            let what = format!("index {} of table {name}", index.name);
            let add = async || tables::add_index(client, name, index).await;
            self.ensure(&what, is_there(index.name), add).await?;
        }
        Ok(())
    }

    /// The queues, dead letters first. Says where work comes from, by URL and ARN.
    pub async fn queues(&mut self, estate: &Estate) -> Result<Option<(String, String)>, SetupError> {
        let dead = self.queue(Wish::new(&estate.dead).kept_long()).await?;
        if let Some(waiting) = &estate.waiting {
            self.queue(Wish::new(waiting).with_visibility(estate.visibility).kept_long()).await?;
        }
        let work = Wish::new(&estate.work).with_visibility(estate.visibility).kept_long().knowing_repeats();
        self.queue(match &dead {
            // A queue and its dead letters are of one kind.
            Some((_, arn)) if is_fifo(arn) == is_fifo(&work.name) => work.with_redrive(arn, estate.max_deaths),
            _ => work,
        })
        .await
    }

    async fn queue(&mut self, wish: Wish) -> Result<Option<(String, String)>, SetupError> {
        let (client, what) = (self.connection.sqs(), format!("queue {}", wish.name));
        let found = queues::find(&client, &wish.name).await.map_err(failed(&what))?;
        let made = self.ensure(&what, found.is_some(), async || queues::create(&client, &wish).await).await?;
        let now = found.or(made);
        // What a queue of others lacks of these, it gets.
        for (about, name) in [
            ("dead letters", QueueAttributeName::RedrivePolicy),
            ("content-based deduplication", QueueAttributeName::ContentBasedDeduplication),
        ] {
            let (Some((url, _)), Some(value)) = (&now, wish.attributes.get(&name)) else { continue };
            let what = format!("{about} of {what}");
            let known = queues::attribute(&client, url, name.clone()).await.map_err(failed(&what))?;
            let set = async || queues::set_attribute(&client, url, name, value).await;
            self.ensure(&what, known.is_some_and(|known| known != "false"), set).await?;
        }
        Ok(now)
    }

    /// The topic. Says its ARN.
    async fn topic(&mut self, name: &str) -> Result<Option<String>, SetupError> {
        let name = name.rsplit(':').next().unwrap_or(name);
        let (client, what) = (self.connection.sns(), format!("topic {name}"));
        let found = find_topic(&client, name).await.map_err(failed(&what))?;
        let made = self.ensure(&what, found.is_some(), async || queues::create_topic(&client, name).await).await?;
        Ok(found.or(made))
    }

    async fn subscription(&mut self, topic: &str, queue: &str) -> Result<(), SetupError> {
        let (client, what) = (self.connection.sns(), format!("subscription of {queue} to {topic}"));
        let is_so = queues::is_subscribed(&client, topic, queue).await.map_err(failed(&what))?;
        self.ensure(&what, is_so, async || queues::subscribe(&client, topic, queue).await).await.map(drop)
    }

    /// That the bucket may publish to the topic.
    async fn publication(&mut self, topic: &str, source: &str) -> Result<(), SetupError> {
        let (client, what) = (self.connection.sns(), format!("permission of {source} to publish to {topic}"));
        let policy = queues::topic_policy(&client, topic).await.map_err(failed(&what))?;
        let wanted = queues::allowing(policy.as_deref(), "sns:Publish", topic, "s3.amazonaws.com", source);
        let allow = async || queues::set_topic_policy(&client, topic, wanted.as_deref().unwrap_or_default()).await;
        self.ensure(&what, wanted.is_none(), allow).await.map(drop)
    }

    /// That this source may send to the queue.
    async fn permission(&mut self, url: &str, queue: &str, service: &str, source: &str) -> Result<(), SetupError> {
        let (client, what) = (self.connection.sqs(), format!("permission of {source} to send to {queue}"));
        let policy = queues::attribute(&client, url, QueueAttributeName::Policy).await.map_err(failed(&what))?;
        let wanted = queues::allowing(policy.as_deref(), "sqs:SendMessage", queue, service, source);
        let policy = wanted.as_deref().unwrap_or_default();
        let allow = async || queues::set_attribute(&client, url, QueueAttributeName::Policy, policy).await;
        self.ensure(&what, wanted.is_none(), allow).await.map(drop)
    }

    /// The bucket. Says whether it is there by now.
    pub async fn bucket(&mut self, name: &str) -> Result<bool, SetupError> {
        let (client, what) = (self.connection.s3(), format!("bucket {name}"));
        let is_there = bucket::exists(&client, name).await.map_err(failed(&what))?;
        self.ensure(&what, is_there, async || bucket::create(&client, name).await).await?;
        Ok(is_there || !self.dry_run)
    }

    /// That the bucket tells of its objects.
    async fn notifications(&mut self, estate: &Estate, listener: Option<&Listener>) -> Result<(), SetupError> {
        let (client, about) = (self.connection.s3(), format!("notifications of bucket {}", estate.bucket));
        let mut known = match listener {
            Some(_) => bucket::notifications(&client, &estate.bucket).await.map_err(failed(&about))?,
            None => bucket::nothing(),
        };
        for prefix in &estate.prefixes {
            let what = format!("notification of {prefix} in bucket {}", estate.bucket);
            let Some(listener) = listener else {
                self.note(&what, Done::Wanted);
                continue;
            };
            let is_so = bucket::tells(&known, listener, prefix);
            let tell = async || {
                known = bucket::tell(&client, &estate.bucket, &known, listener, prefix).await?;
                Ok(())
            };
            self.ensure(&what, is_so, tell).await?;
        }
        Ok(())
    }

    /// Makes it, unless it is there or nothing is to be made. Says what was made: who looks for it right away may not see it.
    async fn ensure<T>(
        &mut self,
        what: &str,
        is_there: bool,
        make: impl AsyncFnOnce() -> Result<T, Trouble>,
    ) -> Result<Option<T>, SetupError> {
        let (made, done) = match (is_there, self.dry_run) {
            (true, _) => (None, Done::Found),
            (false, true) => (None, Done::Wanted),
            (false, false) => (Some(make().await.map_err(failed(what))?), Done::Made),
        };
        self.note(what, done);
        Ok(made)
    }

    fn note(&mut self, what: &str, done: Done) {
        self.steps.push(Step { what: what.to_owned(), done });
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
