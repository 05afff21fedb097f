//! Rekognition on this machine, which sees the markers of `sparks synth`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_sdk_rekognition::{primitives::Blob, types::Image};
use sparks_aws::{Access, Connection};
use sparks_domain::PersonId;
use sparks_faces::Synthetic;
use sparks_media::Lab;
use sparks_rekognition::{Model, Options, Server, Service};
use tokio::runtime::Runtime;

/// A server with threads of its own. Stops when it is dropped.
pub struct RekognitionServer {
    server: Server,
    counted: Mutex<BTreeMap<String, u64>>,
    /// Its threads.
    pub runtime: Runtime,
}

/// How alike two markers of one identity are at least.
const THRESHOLD: f32 = 0.6;

impl RekognitionServer {
    /// What its collection is called.
    pub const COLLECTION: &str = "platform";

    /// A server without collections.
    ///
    /// # Panics
    ///
    /// Where there is no free port.
    pub fn start() -> Self {
        let runtime = Runtime::new().expect("threads");
        let model = Model::new("0.1", THRESHOLD).expect("a model");
        let service = Service::new(Arc::new(Synthetic), Arc::new(Lab::default()), model, Options::default());
        let server = runtime.block_on(Server::bind("127.0.0.1:0", Arc::new(service))).expect("a free port");
        Self { server, counted: Mutex::default(), runtime }
    }

    /// Changes how it behaves.
    pub fn behave(&self, change: impl FnOnce(&mut Options)) {
        let mut options = self.server.service().options();
        change(&mut options);
        self.server.service().set(options);
    }

    /// Whoever is taught is found after so long.
    pub fn set_delay(&self, delay: Duration) {
        self.behave(|options| options.visibility_delay = delay);
    }

    /// How often each operation was called since the last time.
    pub fn take_calls(&self) -> BTreeMap<String, u64> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *counted, self.server.service().calls());
        let since =
            counted.iter().map(|(operation, calls)| (operation.clone(), calls - before.get(operation).unwrap_or(&0)));
        since.filter(|(_, calls)| *calls > 0).collect()
    }

    /// Whoever else uses it.
    pub async fn client(&self) -> aws_sdk_rekognition::Client {
        let keys = Some(("AKIAIOSFODNN7EXAMPLE".to_owned(), "secret".to_owned()));
        let (region, endpoint) = (Some("eu-central-1".to_owned()), Some(self.endpoint()));
        Connection::open(&Access { region, endpoint, keys, ..Access::default() }).await.rekognition()
    }

    /// Makes the collection.
    ///
    /// # Panics
    ///
    /// Where it is there.
    pub fn create(&self) {
        self.runtime.block_on(async {
            let create = self.client().await.create_collection().collection_id(Self::COLLECTION);
            create.send().await.expect("a collection")
        });
    }

    /// From now on a person is known by the face in this picture, as the platform does it.
    ///
    /// # Panics
    ///
    /// Where there is no face.
    pub fn teach(&self, person: &str, jpeg: &[u8]) {
        let indexed = self.runtime.block_on(async {
            let index = self.client().await.index_faces().collection_id(Self::COLLECTION).external_image_id(person);
            index.image(picture(jpeg)).max_faces(1).send().await.expect("an answer")
        });
        assert_eq!(indexed.face_records().len(), 1, "no face of {person}");
    }

    /// Who the largest face in this picture is, as the platform finds out.
    ///
    /// # Panics
    ///
    /// Where there is no face.
    pub fn ask(&self, jpeg: &[u8]) -> Option<String> {
        let found = self.runtime.block_on(async {
            let search = self.client().await.search_faces_by_image().collection_id(Self::COLLECTION);
            search.image(picture(jpeg)).send().await.expect("an answer")
        });
        found.face_matches().first()?.face()?.external_image_id().map(str::to_owned)
    }

    /// By how many faces each person is known, by number.
    ///
    /// # Panics
    ///
    /// Where there is no collection, or not only persons in it.
    pub fn faces(&self) -> Vec<(String, usize)> {
        let listed = self.runtime.block_on(async {
            let list = self.client().await.list_faces().collection_id(Self::COLLECTION);
            list.send().await.expect("an answer")
        });
        let mut faces: BTreeMap<PersonId, usize> = BTreeMap::new();
        for face in listed.faces() {
            let person = face.external_image_id().expect("a person").parse().expect("a person");
            *faces.entry(person).or_default() += 1;
        }
        faces.into_iter().map(|(person, faces)| (person.to_string(), faces)).collect()
    }

    /// Settings of a worker that finds and knows faces here.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("SPARKS_FACES_ANALYZER", "rekognition".into()),
            ("SPARKS_FACES_COMPANION", "synthetic".into()),
            ("SPARKS_REKOGNITION_COLLECTION", Self::COLLECTION.into()),
            ("SPARKS_REKOGNITION_CALLS_PER_SECOND", "10000".into()),
            ("SPARKS_AWS_ENDPOINTS_REKOGNITION", self.endpoint()),
            ("SPARKS_AWS_REGION", "eu-central-1".into()),
            ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE".into()),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into()),
        ]
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }
}

fn picture(jpeg: &[u8]) -> Image {
    Image::builder().bytes(Blob::new(jpeg)).build()
}
