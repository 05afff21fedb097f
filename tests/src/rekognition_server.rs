//! A local Rekognition server that recognises the synthetic marker faces of `sparks synth`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_sdk_rekognition::{primitives::Blob, types::Image};
use sparks_aws::{AwsConfig, Connection};
use sparks_domain::PersonId;
use sparks_faces::SyntheticEngine;
use sparks_media::LocalImageProcessor;
use sparks_rekognition::{Model, Options, Server, Service};
use tokio::runtime::Runtime;

/// A running server with a runtime of its own. It stops when it is dropped.
pub struct RekognitionServer {
    server: Server,
    last_calls: Mutex<BTreeMap<String, u64>>,
    /// The runtime that serves requests.
    pub runtime: Runtime,
}

/// The lowest similarity of two markers of one identity.
const THRESHOLD: f32 = 0.6;

impl RekognitionServer {
    /// The name of the collection.
    pub const COLLECTION: &str = "platform";

    /// Starts a server without collections.
    ///
    /// # Panics
    ///
    /// Panics if there is no free port.
    pub fn start() -> Self {
        let runtime = Runtime::new().expect("runtime starts");
        let model = Model::new("0.1", THRESHOLD).expect("valid model");
        let service = Service::new(
            Arc::new(SyntheticEngine),
            Arc::new(LocalImageProcessor::default()),
            model,
            Options::default(),
        );
        let server = runtime.block_on(Server::bind("127.0.0.1:0", Arc::new(service))).expect("free port");
        Self { server, last_calls: Mutex::default(), runtime }
    }

    /// Changes the server's options.
    pub fn configure(&self, change: impl FnOnce(&mut Options)) {
        let mut options = self.server.service().options();
        change(&mut options);
        self.server.service().set_options(options);
    }

    /// Sets the time after which an enrolled face is searchable.
    pub fn set_delay(&self, delay: Duration) {
        self.configure(|options| options.visibility_delay = delay);
    }

    /// Returns the number of calls per operation since the last call.
    pub fn take_calls(&self) -> BTreeMap<String, u64> {
        let mut last_calls = self.last_calls.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *last_calls, self.server.service().calls());
        let since = last_calls
            .iter()
            .map(|(operation, calls)| (operation.clone(), calls - before.get(operation).unwrap_or(&0)));
        since.filter(|(_, calls)| *calls > 0).collect()
    }

    /// Opens an SDK client for the server.
    pub async fn client(&self) -> aws_sdk_rekognition::Client {
        let keys = Some(("AKIAIOSFODNN7EXAMPLE".to_owned(), "secret".to_owned()));
        let (region, endpoint) = (Some("eu-central-1".to_owned()), Some(self.endpoint()));
        Connection::open(&AwsConfig { region, endpoint, keys, ..AwsConfig::default() }).await.rekognition()
    }

    /// Creates the collection.
    ///
    /// # Panics
    ///
    /// Panics if it exists.
    pub fn create_collection(&self) {
        self.runtime.block_on(async {
            let create = self.client().await.create_collection().collection_id(Self::COLLECTION);
            create.send().await.expect("collection is created")
        });
    }

    /// Enrolls the face in this photo for a person, as the platform does.
    ///
    /// # Panics
    ///
    /// Panics if there is no face.
    pub fn enroll(&self, person: &str, jpeg: &[u8]) {
        let indexed = self.runtime.block_on(async {
            let index = self.client().await.index_faces().collection_id(Self::COLLECTION).external_image_id(person);
            index.image(image_of_bytes(jpeg)).max_faces(1).send().await.expect("server answers")
        });
        assert_eq!(indexed.face_records().len(), 1, "number of faces enrolled for {person}");
    }

    /// Returns the person that the largest face in this photo matches, as the platform searches.
    ///
    /// # Panics
    ///
    /// Panics if there is no face.
    pub fn search(&self, jpeg: &[u8]) -> Option<String> {
        let found = self.runtime.block_on(async {
            let search = self.client().await.search_faces_by_image().collection_id(Self::COLLECTION);
            search.image(image_of_bytes(jpeg)).send().await.expect("server answers")
        });
        found.face_matches().first()?.face()?.external_image_id().map(str::to_owned)
    }

    /// Returns the number of enrolled faces per person, sorted by person number.
    ///
    /// # Panics
    ///
    /// Panics if there is no collection, or if a face has no person.
    pub fn enrolled_faces(&self) -> Vec<(String, usize)> {
        let listed = self.runtime.block_on(async {
            let list = self.client().await.list_faces().collection_id(Self::COLLECTION);
            list.send().await.expect("server answers")
        });
        let mut faces: BTreeMap<PersonId, usize> = BTreeMap::new();
        for face in listed.faces() {
            let person = face.external_image_id().expect("face has a person").parse().expect("person ID");
            *faces.entry(person).or_default() += 1;
        }
        faces.into_iter().map(|(person, faces)| (person.to_string(), faces)).collect()
    }

    /// Returns the settings of a worker that uses this server.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("SPARKS_FACES_ANALYZER", "rekognition".into()),
            ("SPARKS_FACES_SECONDARY_ANALYZER", "synthetic".into()),
            ("SPARKS_REKOGNITION_COLLECTION", Self::COLLECTION.into()),
            ("SPARKS_REKOGNITION_CALLS_PER_SECOND", "10000".into()),
            ("SPARKS_AWS_ENDPOINTS_REKOGNITION", self.endpoint()),
            ("SPARKS_AWS_REGION", "eu-central-1".into()),
            ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE".into()),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into()),
        ]
    }

    /// Returns the endpoint URL.
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }
}

fn image_of_bytes(jpeg: &[u8]) -> Image {
    Image::builder().bytes(Blob::new(jpeg)).build()
}
