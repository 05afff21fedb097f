//! Photos without pixels: the stages around the store are there, and cost nothing.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use sparks_domain::{
    FaceBox, ImageId, Point, Policy, Projection, Quality, Rejection, SeenFace, Signature, Threshold, Timestamp,
};
use sparks_engine::Upload;
use sparks_engine::{
    AnalyzeError, Announcements, Content, Cpu, Darkroom, DarkroomError, Description, Developed, FaceAnalyzer,
    GalleryIndex, Listed, Object, Objects, ObjectsError, Pipeline, Pixels, Ports, PutMode, Rendered, Rules, Silent,
    Store, SystemClock, Unmeasured,
};
use sparks_tests::worker::BUCKET;

/// How many persons the stores know.
pub const PERSONS: u32 = 1_000;

/// The signature a person is known by.
pub fn signature(person: u32) -> Signature {
    let mut random = fastrand::Rng::with_seed(u64::from(person));
    let vector: Vec<f32> = (0..128).map(|_| random.f32() - 0.5).collect();
    Signature::quantise(&vector).unwrap()
}

/// A face as an analyzer sees it.
pub fn face(person: u32) -> SeenFace {
    SeenFace {
        bounds: FaceBox { x: 0.31, y: 0.22, width: 0.18, height: 0.24 },
        landmarks: vec![Point { x: 0.35, y: 0.31 }; 5],
        quality: Quality { size: 312.5, sharpness: 0.83, turn: Some(0.12) },
        confidence: 0.9987,
        attributes: BTreeMap::new(),
        model: "bench-1".into(),
        signature: Some(signature(person)),
    }
}

/// In which order photos come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Newer than all that are there: KSUIDs of a platform, or of a folder sorted by name.
    AsTaken,
    /// Anywhere among those that are there: UUIDs.
    Scattered,
}

impl Arrival {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::AsTaken => "in the order they were taken (KSUIDs)",
            Self::Scattered => "in no order (UUIDs)",
        }
    }
}

/// The n-th photo sent through the pipeline.
pub fn upload(n: usize, arrival: Arrival) -> Upload {
    let image = match arrival {
        Arrival::AsTaken => image(1_000_000 + n, 1_000_000),
        Arrival::Scattered => {
            let mut random = fastrand::Rng::with_seed(n as u64);
            let mut content = [0; 16];
            random.fill(&mut content);
            ImageId::of_content(Some(random.i64(1_450_000_000..1_760_000_000)), content)
        }
    };
    Upload {
        bucket: BUCKET.into(),
        key: format!("originals/{image}.jpg"),
        image,
        uploader: "bench@example.com".parse().unwrap(),
        version: "0123456789abcdef0123456789abcdef".into(),
        bytes: 3_000_000,
        file_name: format!("IMG_{n:06}.jpg"),
        when: Timestamp::from_millis(1_754_040_268_957),
    }
}

/// The ID of the n-th photo of `all`, taken one after the other in ten years.
pub fn image(n: usize, all: usize) -> ImageId {
    let mut content = [0; 16];
    fastrand::Rng::with_seed(n as u64).fill(&mut content);
    let taken = 1_450_000_000 + 310_000_000 * n as u64 / all as u64;
    ImageId::of_content(i64::try_from(taken).ok(), content)
}

/// The pipeline over this store, with nothing to do in the other stages.
pub async fn pipeline(store: Arc<dyn Store>) -> Pipeline {
    let index = GalleryIndex::load(Arc::clone(&store), 5).await.unwrap();
    assert_eq!(index.known().gallery.len(), PERSONS as usize, "everybody is known");
    let ports = Ports {
        objects: Arc::new(Nothing),
        store,
        darkroom: Arc::new(Nothing),
        analyzer: Arc::new(Nothing),
        index: Arc::new(index),
        publisher: Arc::new(Silent),
        meter: Arc::new(Unmeasured),
        clock: Arc::new(SystemClock),
    };
    let policy = Policy {
        threshold: Threshold::Fixed(0.6),
        margin: 0.0,
        candidates: 5,
        min_size: 40.0,
        min_sharpness: 0.1,
        min_confidence: 0.6,
        max_turn: 1.0,
    };
    let rules = Rules {
        policy,
        projection: Projection::default(),
        max_bytes: 1 << 20,
        actor: "bench".into(),
        bucket: BUCKET.into(),
        announcements: Announcements { thumbnails: false, events: false },
    };
    Pipeline::new(ports, Cpu::new(2), rules)
}

struct Nothing;

#[async_trait]
impl Objects for Nothing {
    async fn get(&self, _: &str, _: u64) -> Result<Object, ObjectsError> {
        Ok(Object { bytes: vec![0; 8], version: "0123456789abcdef0123456789abcdef".into() })
    }

    async fn put(&self, _: &str, _: Vec<u8>, _: Content, _: PutMode) -> Result<bool, ObjectsError> {
        Ok(true)
    }

    async fn delete(&self, _: &str) -> Result<(), ObjectsError> {
        Ok(())
    }

    async fn head(&self, _: &str) -> Result<Option<u64>, ObjectsError> {
        Ok(Some(8))
    }

    async fn list(&self, _: &str, _: Option<&str>, _: usize) -> Result<Vec<Listed>, ObjectsError> {
        Ok(Vec::new())
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        Ok(())
    }
}

impl Darkroom for Nothing {
    fn describe(&self, _: &[u8]) -> Description {
        Description { mime_type: Some("image/jpeg"), extension: Some("jpg"), taken_at: None }
    }

    fn measure(&self, _: &[u8]) -> Option<(u32, u32)> {
        Some((4000, 3000))
    }

    fn develop(&self, _: &[u8]) -> Result<Developed, DarkroomError> {
        let picture = |width, height| Rendered { width, height, webp: vec![0; 8] };
        Ok(Developed {
            mime_type: "image/jpeg",
            width: 4000,
            height: 3000,
            taken_at: None,
            large: picture(1920, 1440),
            medium: picture(400, 400),
            pixels: self.open(&[])?,
        })
    }

    fn open(&self, _: &[u8]) -> Result<Pixels, DarkroomError> {
        Ok(Pixels { width: 1, height: 1, rgb: vec![0; 3] })
    }

    fn crop(&self, _: &Pixels, _: FaceBox) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }

    fn jpeg(&self, _: &Pixels, _: usize) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl FaceAnalyzer for Nothing {
    fn name(&self) -> &str {
        "bench"
    }

    async fn analyze(&self, _: Arc<Pixels>) -> Result<Vec<SeenFace>, AnalyzeError> {
        Ok(vec![face(fastrand::u32(1..=PERSONS))])
    }
}
