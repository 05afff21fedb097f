//! Search of one face in a gallery, and loading the gallery.

use std::{hint::black_box, sync::Arc, time::Instant};

use rusqlite::Connection;
use sparks_domain::{Gallery, PersonId, Signature};
use sparks_embedded::Embedded;
use sparks_engine::GalleryIndex;
use sparks_tests::worker::FOLDER_CONFIG;

const DIMENSIONS: usize = 640;
const TEMPLATES_PER_PERSON: usize = 5;

/// Measures the search of one face among many templates.
pub fn search(rounds: usize) {
    let templates = 100_000;
    let mut rng = fastrand::Rng::with_seed(1);
    let mut gallery = Gallery::default();
    for n in 0..templates {
        gallery.enroll(person(n), "m", &signature(&mut rng));
    }
    let probe = signature(&mut rng);
    let mut times = Vec::new();
    for _ in 0..=rounds {
        let started = Instant::now();
        black_box(gallery.nearest("m", &probe, 5));
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let per_thousand = times[times.len() / 2].as_secs_f64() * 1e3 / (templates / 1000) as f64;
    println!("search, per 1,000 templates  {per_thousand:>6.3} ms  (at most 0.15)");
}

/// Measures loading the gallery of a store with many templates, including opening the store.
pub fn load(templates: usize) {
    let folder = tempfile::tempdir().unwrap();
    drop(Embedded::open_or_create(folder.path(), FOLDER_CONFIG).unwrap());
    fill(&folder.path().join("sparks.db"), templates);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let started = Instant::now();
    let backend = Embedded::open(folder.path(), FOLDER_CONFIG).unwrap();
    let index = runtime.block_on(GalleryIndex::load(Arc::clone(&backend.store) as Arc<_>, 5)).unwrap();
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(index.state().gallery.len(), templates);
    println!("{templates} templates loaded in  {seconds:>6.2} s  (at most 3 for 100,000)");
}

fn fill(database: &std::path::Path, templates: usize) {
    let mut connection = Connection::open(database).unwrap();
    let transaction = connection.transaction().unwrap();
    let mut rng = fastrand::Rng::with_seed(2);
    let sql = "INSERT INTO faces (image_id, n, model, signature, person, template, seq) VALUES (?, 0, 'm', ?, ?, 1, ?)";
    for n in 0..templates {
        let image = format!("00000000-0000-4000-8000-{:012}", rng.u64(..) % 1_000_000_000_000);
        let values = (image, signature(&mut rng).to_bytes(), person(n).number(), i64::try_from(n + 1).unwrap());
        transaction.prepare_cached(sql).unwrap().execute(values).unwrap();
    }
    transaction.commit().unwrap();
}

fn person(n: usize) -> PersonId {
    PersonId::new(u32::try_from(n / TEMPLATES_PER_PERSON + 1).unwrap()).unwrap()
}

fn signature(rng: &mut fastrand::Rng) -> Signature {
    Signature::quantise(&std::array::from_fn::<f32, DIMENSIONS, _>(|_| rng.f32() - 0.5)).unwrap()
}
