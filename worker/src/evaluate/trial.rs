//! The real thing: photos one at a time through the rules that decide and consolidate, in memory.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{
    Command, Event, Gallery, Grounds, Identity, ImageId, People, PersonId, PersonsMerged, PhotoProcessed, Policy,
    Recognition, Review, Scale, SecondLook, SeenFace, Seq, Source, Timestamp, Variant, Variants, Version, consolidate,
    decide, review,
};

/// A photo as the engine saw it.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// Everybody in it.
    pub faces: Vec<SeenFace>,
    /// Whose photo it is: the largest face, and the nearest to the middle.
    pub subject: Option<usize>,
}

impl Sighting {
    /// The photo with these faces.
    pub fn of(faces: Vec<SeenFace>) -> Self {
        let worth = |face: &SeenFace| {
            let b = face.bounds;
            let off_centre = (b.x + b.width / 2.0 - 0.5).hypot(b.y + b.height / 2.0 - 0.5);
            b.width * b.height * (1.5 - off_centre)
        };
        let subject = (0..faces.len()).max_by(|a, b| worth(&faces[*a]).total_cmp(&worth(&faces[*b])));
        Self { faces, subject }
    }
}

/// Everybody who has been met in one order of the photos.
pub struct Trial<'a> {
    policy: &'a Policy,
    scale: fn(&str) -> Option<Scale>,
    people: People,
    gallery: Gallery,
    seq: Seq,
    photos: BTreeMap<ImageId, PhotoProcessed>,
    company: BTreeSet<(PersonId, PersonId)>,
}

impl<'a> Trial<'a> {
    /// Nobody yet.
    pub fn new(policy: &'a Policy, scale: fn(&str) -> Option<Scale>) -> Self {
        Self {
            policy,
            scale,
            people: People::default(),
            gallery: Gallery::default(),
            seq: Seq(0),
            photos: BTreeMap::new(),
            company: BTreeSet::new(),
        }
    }

    /// Meets the photos in this order. Says, photo by photo, who its subject is, if anybody.
    pub fn run(mut self, photos: &[Sighting], order: &[usize]) -> anyhow::Result<Vec<Option<PersonId>>> {
        for photo in order {
            self.meet(image(*photo)?, &photos[*photo])?;
        }
        self.consolidate();
        let reviewed = self.review(photos)?;
        let person = |photo: usize| -> anyhow::Result<Option<PersonId>> {
            let (image, subject) = (image(photo)?, photos[photo].subject);
            let decided = subject.and_then(|n| self.photos.get(&image)?.faces.get(n)?.verdict.person());
            let person = decided.or_else(|| reviewed.get(&(image, subject?)).copied());
            Ok(person.map(|person| self.people.merges().now(person)))
        };
        (0..photos.len()).map(person).collect()
    }

    fn meet(&mut self, image: ImageId, photo: &Sighting) -> anyhow::Result<()> {
        let search = self.gallery.search(&photo.faces, self.policy.candidates, self.people.len());
        let identity = Identity { seq: self.seq, counter: self.people.highest(), ..Identity::default() };
        let recognition = Recognition { analyzer: "trial".into(), faces: photo.faces.clone(), search, identity };
        for event in decide(None, command(image, recognition)?, self.policy)? {
            self.happen(&event);
            if let Event::PhotoProcessed(decided) = event {
                self.learn(&decided, photo);
                self.photos.insert(decided.image_id.clone(), decided);
            }
        }
        Ok(())
    }

    fn learn(&mut self, decided: &PhotoProcessed, photo: &Sighting) {
        for (face, seen) in decided.faces.iter().zip(&photo.faces).filter(|(face, _)| face.template) {
            if let (Some(person), Some(signature)) = (face.verdict.person(), &seen.signature) {
                self.gallery.learn(person, &seen.model, signature);
            }
        }
        let persons = decided.persons();
        for (n, a) in persons.iter().enumerate() {
            self.company.extend(persons[n + 1..].iter().map(|b| (*a, *b)));
        }
    }

    fn consolidate(&mut self) {
        let models: Vec<String> = self.gallery.models().map(str::to_owned).collect();
        for model in models {
            let Some(scale) = (self.scale)(&model) else { continue };
            for join in consolidate(&self.gallery, &model, scale, &self.company, None).joins {
                self.happen(&Event::PersonsMerged(PersonsMerged {
                    v: Version,
                    into: join.into,
                    from: join.from,
                    identity_seq: self.seq,
                    grounds: Grounds::Alike(join.evidence),
                    row: Default::default(),
                    users: Vec::new(),
                }));
            }
        }
        self.gallery.follow(self.people.merges());
    }

    /// Who the faces are that nobody knew at first.
    fn review(&self, photos: &[Sighting]) -> anyhow::Result<BTreeMap<(ImageId, usize), PersonId>> {
        let second_look = SecondLook::new(&self.gallery, self.scale, self.policy);
        let mut found = BTreeMap::new();
        for (n, sighting) in photos.iter().enumerate() {
            let image = image(n)?;
            let Some(decided) = self.photos.get(&image) else { continue };
            let present = self.people.merges().all_now(&decided.persons());
            let unknown = decided.faces.iter().zip(&sighting.faces).enumerate();
            let unknown = unknown.filter(|(_, (face, _))| face.verdict.person().is_none());
            let faces = unknown.filter_map(|(n, (_, seen))| {
                Some(second_look.face(u16::try_from(n).ok()?, &seen.model, seen.signature.as_ref()?, &present))
            });
            let (follows, identity_seq) = (self.seq, self.seq);
            let faces = faces.collect();
            let photo = Review { image_id: image.clone(), follows, identity_seq, faces, persons: self.people.len() };
            if let Some(Event::FacesReviewed(event)) = review(photo, self.policy) {
                let faces = event.faces.iter();
                found.extend(faces.filter_map(|f| Some(((image.clone(), usize::from(f.n)), f.verdict.person()?))));
            }
        }
        Ok(found)
    }

    fn happen(&mut self, event: &Event) {
        self.seq = Seq(self.seq.0 + 1);
        self.people.evolve(event, Timestamp::from_millis(0));
    }
}

fn image(photo: usize) -> anyhow::Result<ImageId> {
    Ok(format!("00000000-0000-4000-8000-{photo:012}").parse()?)
}

fn command(image_id: ImageId, recognition: Recognition) -> anyhow::Result<Command> {
    let variant = Variant { key: String::new(), width: 1, height: 1, bytes: 0 };
    let version = String::new();
    Ok(Command::Process {
        image_id,
        uploader: "trial@localhost".parse()?,
        source: Source { key: String::new(), version, sequencer: None, bytes: 0, mime_type: None, file_name: None },
        dimensions: (1, 1),
        taken_at: None,
        variants: Variants { large: variant.clone(), medium: variant },
        recognition,
    })
}
