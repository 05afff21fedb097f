//! Fills a store in bulk with the events, states and rows of many photos.

use std::{collections::HashMap, path::Path};

use rusqlite::{Connection, Transaction, params};
use serde_json::json;
use sparks_domain::{
    Allocation, Candidate, Event, EventId, Face, FaceId, Key, Merges, Mutation, PersonId, PersonsAllocated,
    PhotoProcessed, PhotoState, Projection, ProjectionContext, Seq, SourceObject, Timestamp, Variant, Variants,
    Verdict, Version,
};
use sparks_embedded::Embedded;
use sparks_tests::worker::FOLDER_CONFIG;

use crate::photo::{PERSONS, face, image, signature};

/// Creates a data folder with this many photos, of one face each, of a thousand persons.
pub fn fill(folder: &Path, photos: usize) {
    drop(Embedded::open_or_create(folder, FOLDER_CONFIG).unwrap());
    let mut database = Connection::open(folder.join("sparks.db")).unwrap();
    database.pragma_update(None, "synchronous", "off").unwrap();
    database.pragma_update(None, "cache_size", -512 * 1024).unwrap();
    let tx = database.transaction().unwrap();
    let mut filler = Filler { tx, photos, seq: 0, rows: HashMap::new() };
    filler.persons();
    for n in 0..photos {
        filler.photo(n);
    }
    filler.finish();
    database.pragma_update(None, "wal_checkpoint", "truncate").unwrap();
    // Measurements must not wait for the disk to write the filled data.
    std::process::Command::new("sync").arg("--file-system").arg(folder).status().unwrap();
}

struct Filler<'a> {
    tx: Transaction<'a>,
    photos: usize,
    seq: i64,
    rows: HashMap<Key, serde_json::Map<String, serde_json::Value>>,
}

impl Filler<'_> {
    /// Records a photo in which all persons are new. It has no row, as if it had been deleted since.
    fn persons(&mut self) {
        let first_photo = image(0, 1);
        let face = |person: u32| FaceId { image: first_photo.clone(), n: u16::try_from(person).unwrap() };
        let allocation = |number: u32| Allocation {
            person: PersonId::new(number).unwrap(),
            face: face(number),
            templates: vec![face(number)],
        };
        let allocated = Event::PersonsAllocated(PersonsAllocated {
            v: Version,
            image_id: first_photo.clone(),
            photo_event: EventId::about("bench", "first_photo"),
            counter: 0,
            persons: (1..=PERSONS).map(allocation).collect(),
        });
        self.record(&allocated);
        for number in 1..=PERSONS {
            let sql = "INSERT INTO faces (image_id, n, model, signature, person, template, seq)
                       VALUES (?1, ?2, 'bench-1', ?3, ?2, 1, ?4)";
            let bytes = signature(number).to_bytes();
            let values = params![first_photo.as_str(), number, bytes, self.seq];
            self.tx.prepare_cached(sql).unwrap().execute(values).unwrap();
        }
        self.tx.execute("UPDATE heads SET seq = ? WHERE lane = 'IDENTITY'", [self.seq]).unwrap();
    }

    fn photo(&mut self, n: usize) {
        let event = Event::PhotoProcessed(processed(n, self.photos));
        let Event::PhotoProcessed(photo) = &event else { unreachable!() };
        let row = json!({
            "entityType": "IMAGE", "assetType": "IMAGE", "imageId": photo.image_id, "uploadedBy": photo.uploader,
            "uploaded_datetime": when(), "lastModified": when(), "s3Key": photo.source.key, "tags": [],
        });
        self.rows.insert(Key::image(&photo.image_id, &photo.uploader), row.as_object().unwrap().clone());
        self.record(&event);
        let state = serde_json::to_string(&PhotoState::evolve(None, Seq(self.seq.cast_unsigned()), &event)).unwrap();
        let subject = format!("IMG#{}", photo.image_id);
        let sql = "INSERT INTO states (subject, state) VALUES (?, ?)";
        self.tx.prepare_cached(sql).unwrap().execute(params![subject, state]).unwrap();
    }

    fn record(&mut self, event: &Event) {
        self.seq += 1;
        let sql = "INSERT INTO log VALUES (?, ?, 'bench', ?, ?, ?, ?)";
        let values = params![
            self.seq,
            event.id().to_string(),
            when().to_string(),
            event.event_type(),
            event.to_data(),
            event.is_identity()
        ];
        self.tx.prepare_cached(sql).unwrap().execute(values).unwrap();
        for mutation in Projection::default().project(event, &ProjectionContext::new(when(), &Merges::default())) {
            self.apply(&mutation);
        }
    }

    fn apply(&mut self, mutation: &Mutation) {
        let key = mutation.key();
        let row = mutation.apply(self.rows.remove(key)).unwrap();
        let sql = "INSERT INTO items (PK, SK, item) VALUES (?, ?, ?)";
        let text = serde_json::to_string(&row).unwrap();
        self.tx.prepare_cached(sql).unwrap().execute(params![key.pk, key.sk, text]).unwrap();
    }

    fn finish(self) {
        self.tx.execute("UPDATE heads SET seq = ? WHERE lane = 'EVENTS'", [self.seq]).unwrap();
        self.tx.commit().unwrap();
    }
}

fn when() -> Timestamp {
    Timestamp::from_millis(1_754_040_268_957)
}

fn processed(n: usize, all: usize) -> PhotoProcessed {
    let image_id = image(n + 1, all);
    let number = u32::try_from(n).unwrap() % PERSONS + 1;
    let person = PersonId::new(number).unwrap();
    let detected = face(number);
    let candidate =
        |more: u32| Candidate { person: PersonId::new((number + more) % PERSONS + 1).unwrap(), similarity: 0.2137 };
    let variant = |name: &str, side| Variant {
        key: format!("processed/{image_id}_{name}.webp"),
        width: side,
        height: side,
        bytes: 345_678,
        sha256: None,
    };
    PhotoProcessed {
        v: Version,
        uploader: format!("user{}@example.com", n % 100).parse().unwrap(),
        source: SourceObject {
            key: format!("originals/{image_id}.jpg"),
            version: format!("{n:032x}"),
            sequencer: None,
            bytes: 3_456_789,
            mime_type: Some("image/jpeg".into()),
            file_name: Some(format!("IMG_{n:06}.jpg")),
        },
        width: 4000,
        height: 3000,
        taken_at: None,
        variants: Variants { large: variant("large", 1920), medium: variant("medium", 400) },
        analyzer: "bench".into(),
        identity_seq: Seq(1),
        first_face: 0,
        adopted: Vec::new(),
        follows: None,
        faces: vec![Face {
            bounds: detected.bounds,
            landmarks: detected.landmarks,
            quality: detected.quality,
            confidence: detected.confidence,
            attributes: detected.attributes,
            model: detected.model,
            candidates: [Candidate { person, similarity: 0.8642 }].into_iter().chain((1..5).map(candidate)).collect(),
            threshold: 0.6,
            verdict: Verdict::Matched(person),
            template: false,
        }],
        image_id,
    }
}
