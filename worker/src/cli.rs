//! What can be typed.

mod faces;
mod load;
mod operations;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use faces::*;
pub use load::*;
pub use operations::*;

/// From a folder of photos to WebP variants, persons and tags, each photo decided exactly once.
#[derive(Debug, Parser)]
#[command(
    name = "sparks",
    version,
    after_help = "\
Examples:
  sparks ingest ~/Pictures                 take a folder in
  sparks query persons                     who is there
  sparks query photos-of person1           where
  sparks explain IMAGE                     why
  sparks synth /tmp/album --photos 200 --identities 25
  sparks ingest /tmp/album --faces synthetic
  sparks verify                            is the table what the log says?
  sparks doctor                            would a worker work here?
  sparks load --photos 500 --identities 40 does all of it hold under load?
  sparks dlq ls --by reason                what could not be done?
  sparks tail -f                           what others are told

Settings come from built-in defaults, --config FILE, SPARKS_... variables and flags, in this order; see `sparks config show`.
Exit codes: 0 done, 1 some work failed, 2 wrong use or configuration."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Global {
    /// The data folder [default: ./sparks-data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A file of settings; config/default.toml documents every key
    #[arg(long, global = true, value_name = "FILE", env = "SPARKS_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take photos in: files, or folders with all that is in them
    #[command(after_help = "\
Examples:
  sparks ingest tests/photos
  sparks ingest a.jpg b.png --uploader ann@example.com
  sparks ingest ~/Pictures --jobs 4 --json | jq .rejected

A file that was taken in before is a duplicate and costs nothing. Files that cannot be taken are listed with the reason and
leave the exit code 0; work that failed makes it 1, and the same command tries it again.")]
    Ingest(IngestArgs),
    /// Work off the queue until told to stop, and watch the inbox
    #[command(after_help = "\
Examples:
  sparks run --data /var/lib/sparks
  sparks run --config sparks.toml --listen 127.0.0.1:9464
  sparks run --drain                       stop when nothing is left to do
  cp *.jpg sparks-data/inbox/              taken once complete; then in inbox/done or inbox/rejected

SIGTERM or SIGINT: no more messages are taken, work in hand is finished within run.grace_seconds,
the rest is given back; a second one stops at once, with 128 and the signal's number.
Logs go to standard error, as JSON unless that is a terminal (SPARKS_LOG, SPARKS_LOG_FORMAT).
Health and metrics: GET /healthz, /readyz, /metrics on run.listen.")]
    Run(RunArgs),
    /// Put messages on the queue as they are, for the worker to judge
    #[command(after_help = "\
Examples:
  sparks send message.json
  sparks send --lines messages.jsonl
  echo '{\"bucketName\":\"local\",\"objectKey\":\"originals/2Ab4dEbnXzvkyZF4Bvn3sYdWCkq.jpg\"}' |
    sparks send -

Prints the IDs of the messages. If any is empty, not UTF-8 or longer than 1 MiB, nothing is sent.")]
    Send(SendArgs),
    /// Look after messages that could not be worked off
    #[command(after_help = "\
Examples:
  sparks dlq ls --by reason                what there is
  sparks dlq show 000000000042             one letter
  sparks dlq replay --reason no-image-row  try them again
  sparks dlq drop 000000000042             give one up")]
    Dlq(DlqArgs),
    /// Send messages for originals that the log does not know
    #[command(after_help = "\
Examples:
  sparks backfill --dry-run                how many are there?
  sparks backfill --since 2d               those of the last two days

Safe to interrupt and to repeat: a message that still stands is not sent twice.")]
    Backfill(BackfillArgs),
    /// Take over persons and tags that another worker made before this one
    #[command(after_help = "\
Examples:
  sparks adopt --config aws.toml --dry-run  what there is, and who could not be recognised
  sparks adopt --config aws.toml            takes it over
  sparks adopt --json | jq .unrecognisable

Every person keeps their number and name, and is recognised by persons/{personId}.jpg from then on; every tag
stays as it is, and is ours: `sparks verify`, `rebuild`, `explain` and deletions know of it. Numbers that were
given out are never given out again. Foreign attributes are left alone.
Safe to interrupt and to repeat, and beside workers that run; but strangers they meet before it is done may
get new numbers, so do it before `sparks run`.")]
    Adopt(AdoptArgs),
    /// Print what others are told
    #[command(after_help = "\
Examples:
  sparks tail                              the last ten notices
  sparks tail -f --type PersonAllocated    new persons, as they come
  sparks tail -n 0 -f --json | jq .message")]
    Tail(TailArgs),
    /// Delete photos
    Photo(PhotoArgs),
    /// Ask the table what the platform's API would answer
    #[command(after_help = "\
Examples:
  sparks query persons
  sparks query photos --by ann@example.com --limit 20
  sparks query photos --limit 20 --after \"$TOKEN\"      (lastEvaluatedKey of the answer before)
  sparks query photos-of person1 --json

A table on a terminal, the API's JSON otherwise.")]
    Query(QueryArgs),
    /// Print the table's items, one JSON object a line, sorted by PK and SK in a data folder
    Items(ItemsArgs),
    /// Print the event log
    Events(EventsArgs),
    /// Make what is missing in the cloud: tables, queues, topics, bucket, and who tells whom
    #[command(after_help = "\
Examples:
  sparks setup --config aws.toml --dry-run
  sparks setup --config aws.toml

What is there stays as it is, so it is safe to repeat. A data folder needs no setup.")]
    Setup(SetupArgs),
    /// Look whether a worker would work here: machine, models, and everything it depends on
    #[command(after_help = "\
Examples:
  sparks doctor --config aws.toml          tables, queues, topics, bucket, who tells whom, permissions
  sparks doctor --data /var/lib/sparks     a data folder
  sparks doctor --offline                  whether this binary works on this machine
  sparks doctor --json | jq 'select(.state != \"ok\")'

Nothing is changed and no message is received. Exit code 1 if a worker would not work, with what helps.")]
    Doctor(DoctorArgs),
    /// Make everything that is ours anew from the log
    Rebuild,
    /// Compare the table with the log
    #[command(after_help = "Exit code 1 and a list where they differ. With --repair what differs is made right.")]
    Verify(VerifyArgs),
    /// Show or check the settings
    Config(ConfigArgs),
    /// Make an album of synthetic photos, and the truth about who is in them
    #[command(after_help = "\
Example:
  sparks synth /tmp/album --photos 200 --identities 25
  sparks ingest /tmp/album --faces synthetic")]
    Synth(SynthArgs),
    /// Upload synthetic photos as the platform does, let workers take them, and check what came of it
    #[command(after_help = "\
Examples:
  sparks load --photos 500 --identities 40
  sparks load --photos 2000 --identities 150 --duplicates 20% --corrupt 2% --shuffle --workers 4 --report load.html
  sparks load --config aws.toml --photos 1000 --identities 80 --rate 50/s --json | jq .figures.latency_seconds
  sparks load --config aws.toml --photos 1000 --identities 80 --workers 0

With --workers 0 the workers are those that run elsewhere, with faces.analyzer = \"synthetic\".

Who is in which photo is known, so the end is checked: no photo lost or done twice, nobody two persons and no two one,
every tag, row and picture as it must be, no dead letter, an empty queue, a table that is what the log says.
Exit code 0 only if all of it holds.
In a data folder of its own, removed at the end, unless --data or the settings of a cloud name another place. Photos belong to
an uploader that nobody else is, and nothing of others is touched; but photos and persons stay, so where there are persons
already it wants --yes.")]
    Load(LoadArgs),
    /// Decide anew who is in the photos: by another analyzer, or by another measure
    #[command(after_help = "\
Examples:
  sparks redecide --faces local            what would the local engine say instead?
  sparks redecide --threshold 0.9 --all    what would a stricter measure change?
  sparks redecide --faces local --json | jq '.differences[] | select(.what == \"other\")'
  sparks redecide --faces local --apply    makes it so; afterwards, run workers with the same settings

Without --apply nothing is written, and no service is taught anything. Photos are looked at in the order in which they were
decided first, and the engine learns everybody from nothing. Nobody loses their name: a face that is like nobody, or like
several, stays who it was at the same place of the same photo (`kept`, where the engine knew the person and could not tell).
Merges stay.
With --apply every photo that changes, or whose faces the engine did not know, gets an event that follows the one before: safe to
interrupt, to repeat, and beside workers that run. Whoever is in no photo any more is forgotten, unless somebody gave them a name.
Persons who are taken for one are listed; they are joined only where faces.consolidation is \"join\". Workers that ran meanwhile
unlearn what was replaced when they start anew. Profile pictures stay as they are.")]
    Redecide(RedecideArgs),
    /// Compare what finding and knowing faces costs, in each way it can be done
    #[command(after_help = "\
Examples:
  sparks cost
  sparks cost --json | jq '.ways[] | {way, usd_per_1000_photos}'
  SPARKS_PRICES_REKOGNITION_CALL=0.0008 sparks cost

Photos, faces and persons are counted in the log; prices are those of the settings (prices.*), so look yours up. Calls of
S3, DynamoDB, SQS and SNS are the same in every way, and left out. `sparks redecide` says what another way would decide.")]
    Cost,
    /// Say why each tag of a photo is there
    #[command(after_help = "\
Examples:
  sparks explain 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq
  sparks explain 2Ab4dEbnXzvkyZF4Bvn3sYdWCkq person1 --json")]
    Explain(ExplainArgs),
    /// Say who is who: suggestions, merges, and taking them back
    #[command(after_help = "\
Examples:
  sparks persons suggest                   who may be one
  sparks persons merge person3 person7     they are one; the lower number stays
  sparks persons merges                    all merges, with the events to take back
  sparks persons unmerge 6f0c...           they are not, and everything is as it was")]
    Persons(PersonsArgs),
    /// Try the face engine on photos
    Faces(FacesArgs),
    /// Answer Rekognition's clients with the face engine of this machine
    #[command(after_help = "\
Examples:
  sparks rekognition-server --dir ~/faces
  export AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x AWS_DEFAULT_REGION=eu-central-1
  alias rek='aws rekognition --endpoint-url http://127.0.0.1:8085'
  rek create-collection --collection-id family
  rek index-faces --collection-id family --external-image-id ann --image-bytes fileb://ann.jpg
  rek search-faces-by-image --collection-id family --image-bytes fileb://party.jpg
  rek compare-faces --source-image-bytes fileb://a.jpg --target-image-bytes fileb://b.jpg

Operations: DetectFaces, CompareFaces, IndexFaces, SearchFaces, SearchFacesByImage, ListFaces,
DeleteFaces, CreateCollection, DescribeCollection, ListCollections, DeleteCollection.
Photos come as bytes, JPEG or PNG; there is no S3 here. 80 is the similarity from which the engine
takes two faces for one person. Age, gender and emotion are told where faces.attributes is on.
What the engine does not tell is left out of answers.

There is no TLS, and without --signed no check of who asks: whoever reaches the port can search,
list and delete faces, and whoever is on the way can see the photos. Listen on another address than
this machine's own only where that is right.

SIGTERM or SIGINT: requests in hand are answered, then it ends. SPARKS_LOG=debug logs each request.")]
    RekognitionServer(RekognitionServerArgs),
    /// List the face models inside this binary
    Models,
    /// Print completions for a shell
    #[command(after_help = "Example:\n  sparks completions bash > /etc/bash_completion.d/sparks")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub struct IngestArgs {
    /// Photos, or folders of photos
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Who looks for faces [default: local]
    #[arg(long, value_enum)]
    pub faces: Option<Faces>,
    /// Whose photos these are [default: me@localhost]
    #[arg(long, value_name = "EMAIL")]
    pub uploader: Option<String>,
    /// Photos worked on at once [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Who looks for faces [default: local]
    #[arg(long, value_enum)]
    pub faces: Option<Faces>,
    /// Photos worked on at once [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Address of the health checks [default: 127.0.0.1:9464]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Stop when nothing is left to do; the inbox is not watched
    #[arg(long)]
    pub drain: bool,
    /// Stop when whoever started it ends
    #[arg(long, hide = true)]
    pub end_with_parent: bool,
}

impl Faces {
    /// As the settings call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Synthetic => "synthetic",
            Self::Rekognition => "rekognition",
            Self::Off => "off",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Faces {
    /// The engine inside the binary
    Local,
    /// Markers of `sparks synth`
    Synthetic,
    /// Amazon Rekognition
    Rekognition,
    /// Nobody
    Off,
}

#[derive(Debug, Args)]
pub struct QueryArgs {
    #[command(subcommand)]
    pub question: Question,
}

#[derive(Debug, Args)]
pub struct PageArgs {
    /// How many at most
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// The lastEvaluatedKey of the answer before
    #[arg(long, value_name = "TOKEN")]
    pub after: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Question {
    /// All persons
    Persons(PageArgs),
    /// One person
    Person {
        /// person1, person2, ...
        id: String,
    },
    /// All photos, newest first
    Photos {
        /// Only those of this uploader
        #[arg(long, value_name = "EMAIL")]
        by: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// One photo
    Photo {
        /// Its image ID
        id: String,
    },
    /// The photos a person is in, newest first
    PhotosOf {
        /// person1, person2, ...
        person: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// All users
    Users(PageArgs),
    /// One user
    User {
        /// The user's address
        email: String,
    },
    /// How many more photos a user may upload
    Limit {
        /// The user's address
        email: String,
    },
}

#[derive(Debug, Args)]
pub struct ItemsArgs {
    /// Only this partition
    #[arg(long, value_name = "PK")]
    pub pk: Option<String>,
}

#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Only events after this sequence
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub after: u64,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Make right what differs
    #[arg(long)]
    pub repair: bool,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub action: ConfigAction,
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigAction {
    /// Print every setting, its value and where it comes from
    Show,
    /// Say whether the settings are right
    Check,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The photo's image ID
    pub image: String,
    /// Only this person's faces
    pub person: Option<String>,
}

#[derive(Debug, Args)]
pub struct PersonsArgs {
    #[command(subcommand)]
    pub action: PersonsAction,
}

#[derive(Debug, Subcommand)]
pub enum PersonsAction {
    /// List persons that may be one, the likeliest first
    Suggest,
    /// Join two persons; the lower number stays
    Merge {
        /// person1, person2, ...
        a: String,
        /// person1, person2, ...
        b: String,
        /// Even if both are seen in one photo
        #[arg(long)]
        force: bool,
    },
    /// Take a merge back, exactly
    Unmerge {
        /// The merge's event ID
        event: String,
    },
    /// List all merges
    Merges,
}
