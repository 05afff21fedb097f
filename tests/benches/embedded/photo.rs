//! A pipeline whose stages cost nothing, except those that use the store.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use sparks_domain::{
    DetectedFace, FaceBox, ImageId, Point, Policy, Projection, Quality, Rejection, Signature, Threshold, Timestamp,
};
use sparks_engine::Upload;
use sparks_engine::{
    AnalyzeError, Content, CpuPool, EncodedVariant, FaceAnalyzer, GalleryIndex, ImageError, ImageInfo, ImageProcessor,
    NoMeter, NoPublisher, Object, ObjectEntry, ObjectInfo, Objects, ObjectsError, Pipeline, PipelineConfig, Pixels,
    Ports, PublishConfig, PutMode, RenderedImage, Store, SystemClock,
};
use sparks_tests::worker::BUCKET;

/// The number of persons in each store.
pub const PERSONS: u32 = 1_000;

/// Returns the signature of a person.
pub fn signature(person: u32) -> Signature {
    let mut random = fastrand::Rng::with_seed(u64::from(person));
    let vector: Vec<f32> = (0..128).map(|_| random.f32() - 0.5).collect();
    Signature::quantise(&vector).unwrap()
}

/// Returns a face as an analyzer detects it.
pub fn face(person: u32) -> DetectedFace {
    DetectedFace {
        bounds: FaceBox { x: 0.31, y: 0.22, width: 0.18, height: 0.24 },
        landmarks: vec![Point { x: 0.35, y: 0.31 }; 5],
        quality: Quality { size: 312.5, sharpness: 0.83, turn: Some(0.12) },
        confidence: 0.9987,
        attributes: BTreeMap::new(),
        model: "bench-1".into(),
        signature: Some(signature(person)),
    }
}

/// The order of the image IDs of arriving photos.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// After all existing ones: KSUIDs of a platform, or of a folder sorted by name.
    Chronological,
    /// Anywhere among the existing ones: UUIDs.
    Random,
}

impl Arrival {
    /// Returns the description for the report.
    pub fn description(self) -> &'static str {
        match self {
            Self::Chronological => "in the order they were taken (KSUIDs)",
            Self::Random => "in random order (UUIDs)",
        }
    }
}

/// Returns the n-th upload.
pub fn upload(n: usize, arrival: Arrival) -> Upload {
    let image = match arrival {
        Arrival::Chronological => image(1_000_000 + n, 1_000_000),
        Arrival::Random => {
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

/// Returns the ID of the n-th of `all` photos, taken at equal intervals within ten years.
pub fn image(n: usize, all: usize) -> ImageId {
    let mut content = [0; 16];
    fastrand::Rng::with_seed(n as u64).fill(&mut content);
    let taken = 1_450_000_000 + 310_000_000 * n as u64 / all as u64;
    ImageId::of_content(i64::try_from(taken).ok(), content)
}

/// Creates a pipeline over this store, with ports that do nothing otherwise.
pub async fn pipeline(store: Arc<dyn Store>) -> Pipeline {
    let index = GalleryIndex::load(Arc::clone(&store), 5).await.unwrap();
    assert_eq!(index.state().gallery.len(), PERSONS as usize, "all persons are in the gallery");
    let ports = Ports {
        objects: Arc::new(NoOp),
        store,
        image_processor: Arc::new(NoOp),
        analyzer: Arc::new(NoOp),
        index: Arc::new(index),
        publisher: Arc::new(NoPublisher),
        meter: Arc::new(NoMeter),
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
    let config = PipelineConfig {
        policy,
        projection: Projection::default(),
        max_bytes: 1 << 20,
        actor: "bench".into(),
        bucket: BUCKET.into(),
        publish: PublishConfig { thumbnails: false, events: false },
    };
    Pipeline::new(ports, CpuPool::new(2), config)
}

struct NoOp;

#[async_trait]
impl Objects for NoOp {
    async fn get(&self, _: &str, _: u64) -> Result<Object, ObjectsError> {
        Ok(Object { bytes: vec![0; 8], version: "0123456789abcdef0123456789abcdef".into() })
    }

    async fn put(&self, _: &str, _: Vec<u8>, _: Content, _: PutMode) -> Result<bool, ObjectsError> {
        Ok(true)
    }

    async fn delete(&self, _: &str) -> Result<(), ObjectsError> {
        Ok(())
    }

    async fn delete_version(&self, _: &str, _: &str) -> Result<(), ObjectsError> {
        Ok(())
    }

    async fn head(&self, _: &str) -> Result<Option<ObjectInfo>, ObjectsError> {
        Ok(None)
    }

    async fn list(&self, _: &str, _: Option<&str>, _: usize) -> Result<Vec<ObjectEntry>, ObjectsError> {
        Ok(Vec::new())
    }

    async fn check(&self) -> Result<(), ObjectsError> {
        Ok(())
    }
}

impl ImageProcessor for NoOp {
    fn inspect(&self, _: &[u8]) -> ImageInfo {
        ImageInfo { mime_type: Some("image/jpeg"), extension: Some("jpg"), taken_at: None }
    }

    fn dimensions(&self, _: &[u8]) -> Option<(u32, u32)> {
        Some((4000, 3000))
    }

    fn render(&self, _: &[u8]) -> Result<RenderedImage, ImageError> {
        let variant = |width, height| EncodedVariant { width, height, webp: vec![0; 8] };
        Ok(RenderedImage {
            mime_type: "image/jpeg",
            width: 4000,
            height: 3000,
            taken_at: None,
            large: variant(1920, 1440),
            medium: variant(400, 400),
            pixels: self.decode(&[])?,
        })
    }

    fn decode(&self, _: &[u8]) -> Result<Pixels, ImageError> {
        Ok(Pixels { width: 1, height: 1, rgb: vec![0; 3] })
    }

    fn crop(&self, _: &Pixels, _: FaceBox) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }

    fn encode_jpeg(&self, _: &Pixels, _: usize) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl FaceAnalyzer for NoOp {
    fn name(&self) -> &str {
        "bench"
    }

    async fn analyze(&self, _: Arc<Pixels>) -> Result<Vec<DetectedFace>, AnalyzeError> {
        Ok(vec![face(fastrand::u32(1..=PERSONS))])
    }
}
