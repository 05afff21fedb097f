//! What finding and knowing faces costs.

use sparks_config::{Analyzer, Companion, Faces, Index, Prices};
use sparks_engine::Tally;

/// A way of finding faces and of knowing whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Rekognition finds them, and its collection knows them.
    Rekognition,
    /// The local engine finds them, and a collection of Rekognition knows them.
    Collection,
    /// The local engine finds them, and Pinecone knows them.
    Pinecone,
    /// The local engine finds them, and the worker itself knows them.
    Gallery,
}

/// What a photo is made of, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Averages {
    /// Faces.
    pub faces: f64,
    /// Persons whom nobody knew before.
    pub founded: f64,
    /// Faces that persons are known by since.
    pub templates: f64,
}

/// What a thousand photos need and cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Bill {
    /// Calls of each operation.
    pub calls: Vec<(&'static str, f64)>,
    /// Seconds of one core.
    pub cpu_seconds: f64,
    /// All of it once.
    pub usd: f64,
    /// What is kept of them, each month.
    pub usd_a_month: f64,
}

const PHOTOS: f64 = 1000.0;

/// What Pinecone keeps of a face, in GB: 640 numbers of four bytes, and what belongs to them.
const PINECONE_FACE_GB: f64 = 3e-6;

impl Way {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Rekognition, Self::Collection, Self::Pinecone, Self::Gallery];

    /// The one that is set.
    pub fn of(faces: &Faces) -> Self {
        match (faces.analyzer, faces.index) {
            (Analyzer::Rekognition, _) => Self::Rekognition,
            (_, Index::Rekognition) => Self::Collection,
            (_, Index::Pinecone) => Self::Pinecone,
            (_, Index::Auto | Index::Gallery) => Self::Gallery,
        }
    }

    /// Its name, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Rekognition => "rekognition",
            Self::Collection => "local_and_rekognition",
            Self::Pinecone => "local_and_pinecone",
            Self::Gallery => "local",
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rekognition => "Rekognition, its collection",
            Self::Collection => "local engine, Rekognition's collection",
            Self::Pinecone => "local engine, Pinecone",
            Self::Gallery => "local engine, own gallery",
        }
    }

    /// What a thousand photos cost this way.
    pub fn bill(self, averages: &Averages, companion: Companion, prices: &Prices) -> Bill {
        let [faces, founded, templates] = [averages.faces, averages.founded, averages.templates].map(|n| n * PHOTOS);
        let call = prices.rekognition_call;
        let (search, learn) = (("SearchFacesByImage", faces), ("IndexFaces", founded));
        let (calls, usd, usd_a_month) = match self {
            Self::Rekognition => (
                vec![("DetectFaces", PHOTOS), search, learn],
                (PHOTOS + faces + founded) * call,
                founded * prices.rekognition_face_month,
            ),
            Self::Collection => {
                (vec![search, learn], (faces + founded) * call, founded * prices.rekognition_face_month)
            }
            Self::Pinecone => (
                vec![("query", faces), ("upsert", templates)],
                (faces * prices.pinecone_reads_per_query * prices.pinecone_million_reads
                    + templates * prices.pinecone_writes_per_upsert * prices.pinecone_million_writes)
                    / 1e6,
                templates * PINECONE_FACE_GB * prices.pinecone_gb_month,
            ),
            Self::Gallery => (Vec::new(), 0.0, 0.0),
        };
        // Beside the service it says what faces look like, unless it is left out.
        let local = self != Self::Rekognition || companion == Companion::Local;
        let cpu_seconds = PHOTOS * prices.cpu_seconds_per_photo + faces * prices.cpu_seconds_per_face;
        let cpu_seconds = if local { cpu_seconds } else { 0.0 };
        Bill { calls, cpu_seconds, usd: usd + cpu_seconds / 3600.0 * prices.cpu_hour, usd_a_month }
    }
}

impl Averages {
    /// Of all photos that somebody looked for faces in; none where there is none.
    pub fn of(tally: &Tally) -> Option<Self> {
        let all = tally.all();
        let a_photo = |count: u64, photos: u64| count as f64 / photos as f64;
        // A photo that is decided anew shows its faces again, but founds nobody again.
        (tally.photos > 0).then(|| Self {
            faces: a_photo(all.faces, all.decisions),
            founded: a_photo(all.founded, tally.photos),
            templates: a_photo(all.templates, all.decisions),
        })
    }
}

#[cfg(test)]
mod tests {
    use sparks_config::Settings;

    use super::*;

    #[test]
    fn every_way_needs_what_it_needs() {
        let settings = Settings::default();
        let averages = Averages { faces: 2.0, founded: 0.1, templates: 0.5 };
        let bill = |way: Way, companion| way.bill(&averages, companion, &settings.prices);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;

        let service = bill(Way::Rekognition, Companion::Off);
        assert_eq!(service.calls, [("DetectFaces", 1000.0), ("SearchFacesByImage", 2000.0), ("IndexFaces", 100.0)]);
        assert!(
            near(service.usd, 3.1) && service.cpu_seconds == 0.0 && near(service.usd_a_month, 0.001),
            "{service:?}"
        );
        let gallery = bill(Way::Gallery, Companion::Off);
        let seconds = 1000.0 * settings.prices.cpu_seconds_per_photo + 2000.0 * settings.prices.cpu_seconds_per_face;
        assert!(gallery.calls.is_empty() && near(gallery.cpu_seconds, seconds) && gallery.usd_a_month == 0.0);
        assert!(near(gallery.usd, seconds / 3600.0 * 0.04), "{gallery:?}");
        let accompanied = bill(Way::Rekognition, Companion::Local);
        assert!(near(accompanied.usd, service.usd + gallery.usd), "the companion computes, too");
        assert!(near(bill(Way::Collection, Companion::Off).usd, 2.1 + gallery.usd));
        let pinecone = bill(Way::Pinecone, Companion::Off);
        assert_eq!(pinecone.calls, [("query", 2000.0), ("upsert", 500.0)]);
        assert!(near(pinecone.usd, 2000.0 * 0.25 * 16e-6 + 500.0 * 5.0 * 4e-6 + gallery.usd), "{pinecone:?}");
    }

    #[test]
    fn the_way_that_is_set_is_known() {
        let faces = Settings::default().faces;
        let way = |analyzer, index| Way::of(&Faces { analyzer, index, ..faces.clone() });
        assert_eq!(way(Analyzer::Local, Index::Auto), Way::Gallery);
        assert_eq!(way(Analyzer::Rekognition, Index::Auto), Way::Rekognition);
        assert_eq!(way(Analyzer::Local, Index::Rekognition), Way::Collection);
        assert_eq!(way(Analyzer::Local, Index::Pinecone), Way::Pinecone);
        assert_eq!(Averages::of(&Tally::default()), None);
    }
}
