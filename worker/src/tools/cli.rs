//! The subcommands of the tools.

mod face_args;
mod human_duration;
mod load_args;
mod percentage;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use face_args::*;
pub use load_args::*;

#[derive(Debug, Subcommand)]
pub enum ToolCommand {
    /// Generate an album of synthetic photos with the ground truth of who is in them
    #[command(after_help = "\
Examples:
  sparks synth /tmp/album --photos 200 --identities 25
  sparks ingest /tmp/album --faces synthetic")]
    Synth(SynthArgs),
    /// Run a load test with synthetic photos and check the result against the ground truth
    #[command(after_help = "\
Uploads photos as the platform does, lets workers process them, and compares the final state with
the known identities: no photo lost or processed twice, one person per identity and one identity
per person, correct tags, rows, variants and crops, no dead letters, an empty queue, and a table
that matches the event log. The exit code is 0 only if all checks pass.

With --workers 0, workers that run elsewhere process the photos; they need faces.analyzer =
\"synthetic\".

Runs in a temporary data folder that is removed at the end, unless --data is given or the settings
select AWS. All photos belong to an uploader that is unique to the run, and data of others is not
changed; but photos and persons remain, so a backend that has persons requires --yes.

Examples:
  sparks load --photos 500 --identities 40
  sparks load --photos 2000 --identities 150 --duplicates 20% --corrupt 2% --shuffle --workers 4 --report load.html
  sparks load --config aws.toml --photos 1000 --identities 80 --rate 50/s --json | jq .figures.latency_seconds
  sparks load --config aws.toml --photos 1000 --identities 80 --workers 0")]
    Load(LoadArgs),
    /// Estimate the cost of face detection and search, for each supported combination of services
    #[command(after_help = "\
Counts photos, faces and persons in the event log. Prices come from the settings (prices.*); check
them against your own. Requests to S3, DynamoDB, SQS and SNS are the same for all combinations and
not included. `sparks redecide` shows what another combination would decide.

Examples:
  sparks cost
  sparks cost --json | jq '.ways[] | {way, usd_per_1000_photos}'
  SPARKS_PRICES_REKOGNITION_CALL=0.0008 sparks cost")]
    Cost,
    /// Evaluate the local face engine, or draw the faces that it detects
    Faces(FacesArgs),
    /// Serve the Amazon Rekognition API with the local face engine
    #[command(after_help = "\
Operations: DetectFaces, CompareFaces, IndexFaces, SearchFaces, SearchFacesByImage, ListFaces,
DeleteFaces, CreateCollection, DescribeCollection, ListCollections, DeleteCollection. Photos are
sent as bytes, JPEG or PNG; S3 objects are not supported. A similarity of 80 is the threshold at
which the engine matches two faces. Age, gender and emotion are returned if faces.attributes is
on. Fields that the engine cannot compute are omitted.

There is no TLS, and without --signed no authentication: any client that reaches the port can
search, list and delete faces, and photos travel unencrypted. Listen on a non-loopback address
only in a trusted network.

SIGTERM or SIGINT: requests in flight are finished, then the server exits. SPARKS_LOG=debug logs
each request.

Examples:
  sparks rekognition-server --dir ~/faces
  export AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x AWS_DEFAULT_REGION=eu-central-1
  alias rek='aws rekognition --endpoint-url http://127.0.0.1:8085'
  rek create-collection --collection-id family
  rek index-faces --collection-id family --external-image-id ann --image-bytes fileb://ann.jpg
  rek search-faces-by-image --collection-id family --image-bytes fileb://party.jpg
  rek compare-faces --source-image-bytes fileb://a.jpg --target-image-bytes fileb://b.jpg")]
    RekognitionServer(RekognitionServerArgs),
}

impl ToolCommand {
    /// Whether the command runs until it is stopped and logs as a service does.
    pub fn is_service(&self) -> bool {
        matches!(self, Self::RekognitionServer(_))
    }
}

#[derive(Debug, Args)]
pub struct SynthArgs {
    /// The folder to write to; created if missing
    pub dir: PathBuf,
    /// Number of photos
    #[arg(long, value_name = "N")]
    pub photos: usize,
    /// Number of distinct identities
    #[arg(long, value_name = "K")]
    pub identities: usize,
    /// Maximum number of faces in a photo
    #[arg(long, value_name = "F", default_value_t = 3)]
    pub faces_per_photo: usize,
    /// Random seed; the same seed gives the same album
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Variation of a face between photos; from about 1 on, some faces are not identified at once
    #[arg(long, value_name = "X", default_value_t = sparks_faces::DEFAULT_NOISE)]
    pub noise: f32,
}
