//! Identification of photos one at a time, by the rules of the pipeline and in memory.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{
    Command, DetectedFace, Event, Gallery, IdentificationInput, IdentityHead, ImageId, MergeReason, PersonId,
    PersonRegistry, PersonsMerged, PhotoProcessed, Policy, ReviewInput, Reviewer, Scale, Seq, SourceObject, Timestamp,
    Variant, Variants, Version, consolidate, decide, review,
};

use crate::{ClusteringCounts, ClusteringScore};

/// The faces that the engine detected in a photo.
#[derive(Debug, Clone)]
pub struct EvaluatedPhoto {
    /// All detected faces.
    pub faces: Vec<DetectedFace>,
    /// The index of the labelled face: large and near the centre.
    pub subject: Option<usize>,
}

impl EvaluatedPhoto {
    /// Selects the subject among the faces.
    pub fn of(faces: Vec<DetectedFace>) -> Self {
        let weight = |face: &DetectedFace| {
            let b = face.bounds;
            let off_centre = (b.x + b.width / 2.0 - 0.5).hypot(b.y + b.height / 2.0 - 0.5);
            b.width * b.height * (1.5 - off_centre)
        };
        let subject = (0..faces.len()).max_by(|a, b| weight(&faces[*a]).total_cmp(&weight(&faces[*b])));
        Self { faces, subject }
    }
}

/// Runs a trial in each of `orders` shuffled orders and scores it against the labels.
pub fn run_trials(
    photos: &[EvaluatedPhoto],
    labels: &[usize],
    orders: u64,
    policy: &Policy,
    scale: fn(&str) -> Option<Scale>,
) -> anyhow::Result<Vec<ClusteringScore>> {
    let run = |seed: u64| {
        let mut order: Vec<usize> = (0..photos.len()).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let assigned = Trial::new(policy, scale).run(photos, &order)?;
        Ok(ClusteringCounts::compare(&assigned, labels).score(photos.len()))
    };
    (0..orders).map(run).collect()
}

/// An in-memory run of the rules that identify and consolidate, over the photos in one order.
pub struct Trial<'a> {
    policy: &'a Policy,
    scale: fn(&str) -> Option<Scale>,
    people: PersonRegistry,
    gallery: Gallery,
    seq: Seq,
    photos: BTreeMap<ImageId, PhotoProcessed>,
    co_occurrences: BTreeSet<(PersonId, PersonId)>,
}

impl<'a> Trial<'a> {
    /// Creates a trial with an empty gallery.
    pub fn new(policy: &'a Policy, scale: fn(&str) -> Option<Scale>) -> Self {
        Self {
            policy,
            scale,
            people: PersonRegistry::default(),
            gallery: Gallery::default(),
            seq: Seq(0),
            photos: BTreeMap::new(),
            co_occurrences: BTreeSet::new(),
        }
    }

    /// Processes the photos in this order, consolidates and reviews. Returns the person assigned to each photo's
    /// subject.
    pub fn run(mut self, photos: &[EvaluatedPhoto], order: &[usize]) -> anyhow::Result<Vec<Option<PersonId>>> {
        for photo in order {
            self.process(image_id(*photo)?, &photos[*photo])?;
        }
        self.consolidate();
        let reviewed = self.review(photos)?;
        let person = |photo: usize| -> anyhow::Result<Option<PersonId>> {
            let (image, subject) = (image_id(photo)?, photos[photo].subject);
            let decided = subject.and_then(|n| self.photos.get(&image)?.faces.get(n)?.verdict.person());
            let person = decided.or_else(|| reviewed.get(&(image, subject?)).copied());
            Ok(person.map(|person| self.people.merges().current(person)))
        };
        (0..photos.len()).map(person).collect()
    }

    fn process(&mut self, image: ImageId, photo: &EvaluatedPhoto) -> anyhow::Result<()> {
        let search = self.gallery.search(&photo.faces, self.policy.candidates, self.people.len());
        let identity = IdentityHead { seq: self.seq, counter: self.people.highest_number(), ..IdentityHead::default() };
        let identification =
            IdentificationInput { analyzer: "trial".into(), faces: photo.faces.clone(), search, identity };
        for event in decide(None, command(image, identification)?, self.policy)? {
            self.apply(&event);
            if let Event::PhotoProcessed(decided) = event {
                self.enroll(&decided, photo);
                self.photos.insert(decided.image_id.clone(), decided);
            }
        }
        Ok(())
    }

    fn enroll(&mut self, decided: &PhotoProcessed, photo: &EvaluatedPhoto) {
        for (face, detected) in decided.faces.iter().zip(&photo.faces).filter(|(face, _)| face.template) {
            if let (Some(person), Some(signature)) = (face.verdict.person(), &detected.signature) {
                self.gallery.enroll(person, &detected.model, signature);
            }
        }
        let persons = decided.persons();
        for (n, a) in persons.iter().enumerate() {
            self.co_occurrences.extend(persons[n + 1..].iter().map(|b| (*a, *b)));
        }
    }

    fn consolidate(&mut self) {
        let models: Vec<String> = self.gallery.models().map(str::to_owned).collect();
        for model in models {
            let Some(scale) = (self.scale)(&model) else { continue };
            for join in consolidate(&self.gallery, &model, scale, &self.co_occurrences, None).merges {
                self.apply(&Event::PersonsMerged(PersonsMerged {
                    v: Version,
                    into: join.into,
                    from: join.from,
                    identity_seq: self.seq,
                    grounds: MergeReason::SimilarFaces(join.evidence),
                    row: Default::default(),
                    users: Vec::new(),
                }));
            }
        }
        self.gallery.apply_merges(self.people.merges());
    }

    /// Compares faces left unidentified with the final gallery. Returns the persons found.
    fn review(&self, photos: &[EvaluatedPhoto]) -> anyhow::Result<BTreeMap<(ImageId, usize), PersonId>> {
        let reviewer = Reviewer::new(&self.gallery, self.scale, self.policy);
        let mut found = BTreeMap::new();
        for (n, photo) in photos.iter().enumerate() {
            let image = image_id(n)?;
            let Some(decided) = self.photos.get(&image) else { continue };
            let present = self.people.merges().all_current(&decided.persons());
            let unidentified = decided.faces.iter().zip(&photo.faces).enumerate();
            let unidentified = unidentified.filter(|(_, (face, _))| face.verdict.person().is_none());
            let faces = unidentified.filter_map(|(n, (_, detected))| {
                Some(reviewer.search(u16::try_from(n).ok()?, &detected.model, detected.signature.as_ref()?, &present))
            });
            let (follows, identity_seq) = (self.seq, self.seq);
            let faces = faces.collect();
            let input =
                ReviewInput { image_id: image.clone(), follows, identity_seq, faces, persons: self.people.len() };
            if let Some(Event::FacesReviewed(event)) = review(input, self.policy) {
                let faces = event.faces.iter();
                found.extend(faces.filter_map(|f| Some(((image.clone(), usize::from(f.n)), f.verdict.person()?))));
            }
        }
        Ok(found)
    }

    fn apply(&mut self, event: &Event) {
        self.seq = Seq(self.seq.0 + 1);
        self.people.evolve(event, Timestamp::from_millis(0));
    }
}

fn image_id(photo: usize) -> anyhow::Result<ImageId> {
    Ok(format!("00000000-0000-4000-8000-{photo:012}").parse()?)
}

fn command(image_id: ImageId, identification: IdentificationInput) -> anyhow::Result<Command> {
    let variant = Variant { key: String::new(), width: 1, height: 1, bytes: 0, sha256: None };
    let version = String::new();
    Ok(Command::Process {
        image_id,
        uploader: "trial@localhost".parse()?,
        source: SourceObject {
            key: String::new(),
            version,
            sequencer: None,
            bytes: 0,
            mime_type: None,
            file_name: None,
        },
        dimensions: (1, 1),
        taken_at: None,
        variants: Variants { large: variant.clone(), medium: variant },
        identification,
    })
}
