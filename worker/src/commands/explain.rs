//! `sparks explain`

mod absent;
mod adopted;

use std::process::ExitCode;

use serde_json::{Value, json};
use sparks_domain::{
    Candidate, Event, EventId, Evidence, Face, Grounds, ImageId, Merges, PersonId, PersonsMerged, PhotoProcessed,
    Recorded, ReviewedFace, Seq, Verdict,
};

use self::{absent::Absent, adopted::AdoptedPhoto};
use super::persons;
use crate::{
    backend::Backend,
    cli::{ExplainArgs, Global},
    output::Output,
    wiring::{self, WrongUse},
};

/// Says why each tag of a photo is there.
pub async fn run(global: &Global, args: ExplainArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let image: ImageId = args.image.parse().map_err(|error| WrongUse(format!("{error}")))?;
    let person = args.person.as_deref().map(str::parse::<PersonId>).transpose();
    let person = person.map_err(|error| WrongUse(error.to_string()))?;
    let is_there = match Known::read(&backend, &image).await? {
        None => anyhow::bail!("there is no photo {image} in {}: see `sparks query photos`", backend.place),
        Some(Known::Shown(story)) => {
            let told: Vec<Told<'_>> = story.faces().filter(|told| person.is_none_or(|p| told.now == Some(p))).collect();
            if output.is_json() {
                output.json(&story.to_json(&told))?
            } else {
                story.tell(&told, output)?
            }
            let is_adopted = story.adopted().any(|(now, _)| person.is_none_or(|person| now == person));
            !told.is_empty() || is_adopted
        }
        Some(Known::Adopted(photo)) => {
            if output.is_json() {
                output.json(&photo.to_json(person))?
            } else {
                photo.tell(person, output)?
            }
            photo.persons().iter().any(|(now, _)| person.is_none_or(|person| *now == person))
        }
        Some(Known::Absent(event)) => {
            let absent = Absent { image: &image, event: &event };
            if output.is_json() {
                output.json(&absent.to_json())?
            } else {
                absent.tell(output)?
            }
            false
        }
    };
    if let (Some(person), false) = (person, is_there) {
        anyhow::bail!("{person} is not in this photo");
    }
    Ok(ExitCode::SUCCESS)
}

/// What there is to explain.
enum Known {
    /// The tags of a photo.
    Shown(Box<Story>),
    /// The tags of a photo that were decided before us.
    Adopted(Box<AdoptedPhoto>),
    /// Why there are none: the event that says so.
    Absent(Box<Recorded>),
}

/// What the log says of one photo.
struct Story {
    decided: Recorded,
    photo: PhotoProcessed,
    reviews: Vec<(Recorded, Vec<ReviewedFace>)>,
    adopted: Vec<PersonId>,
    merged: Vec<(EventId, PersonsMerged)>,
    merges: Merges,
}

/// One face, as it was decided last.
struct Told<'a> {
    n: u16,
    face: &'a Face,
    event: &'a Recorded,
    candidates: &'a [Candidate],
    threshold: f32,
    evidence: Option<Evidence>,
    verdict: Verdict,
    now: Option<PersonId>,
}

impl Known {
    async fn read(backend: &Backend, image: &ImageId) -> anyhow::Result<Option<Self>> {
        let Some(state) = backend.store.photo(image).await? else { return Ok(None) };
        let Some(decided) = backend.store.event(image, state.shows.unwrap_or(state.seq)).await? else {
            return Ok(None);
        };
        Ok(Some(match (state.shows, decided.event.clone()) {
            (Some(_), Event::PhotoProcessed(photo)) => {
                Self::Shown(Box::new(Story::read(backend, decided, photo, state.seq).await?))
            }
            (Some(_), Event::PhotoAdopted(event)) => {
                let (merges, _) = merges(backend).await?;
                Self::Adopted(Box::new(AdoptedPhoto { recorded: decided, event, state, merges }))
            }
            _ => Self::Absent(Box::new(decided)),
        }))
    }
}

/// Who is whom by now, and all merges that ever said so.
async fn merges(backend: &Backend) -> anyhow::Result<(Merges, Vec<(EventId, PersonsMerged)>)> {
    let (mut merges, mut merged) = (Merges::default(), Vec::new());
    for Recorded { id, event, .. } in backend.store.identity(Seq(0)).await?.events {
        merges.evolve(&event);
        if let Event::PersonsMerged(merge) = event {
            merged.push((id, merge));
        }
    }
    Ok((merges, merged))
}

impl Story {
    /// Reads back from the last event about the photo to the one that it shows.
    async fn read(backend: &Backend, decided: Recorded, photo: PhotoProcessed, last: Seq) -> anyhow::Result<Self> {
        let (mut reviews, mut adopted, mut seq) = (Vec::new(), photo.adopted.clone(), last);
        while seq > decided.seq {
            let Some(recorded) = backend.store.event(&photo.image_id, seq).await? else { break };
            seq = match recorded.event.clone() {
                Event::FacesReviewed(review) => {
                    reviews.push((recorded, review.faces));
                    review.follows
                }
                // A later version that could not be taken changed no tag.
                Event::PhotoRejected(rejected) => rejected.follows.unwrap_or_default(),
                Event::PhotoAdopted(event) => {
                    adopted.extend(event.persons());
                    event.follows.unwrap_or_default()
                }
                _ => break,
            };
        }
        let (merges, merged) = merges(backend).await?;
        Ok(Self { decided, photo, reviews, adopted, merged, merges })
    }

    /// Persons whom somebody else had seen in the photo before us: who they are now, and whom they were adopted as.
    fn adopted(&self) -> impl Iterator<Item = (PersonId, PersonId)> {
        self.adopted.iter().map(|person| (self.merges.now(*person), *person))
    }

    fn faces(&self) -> impl Iterator<Item = Told<'_>> {
        (self.photo.first_face..).zip(&self.photo.faces).map(|(n, face)| {
            let reviews = self.reviews.iter().flat_map(|(event, faces)| faces.iter().map(move |face| (event, face)));
            let again = reviews.into_iter().find(|(_, reviewed)| reviewed.n == n);
            let (event, candidates, threshold, evidence, verdict) = match again {
                Some((event, again)) => (event, &again.candidates, again.threshold, again.evidence, again.verdict),
                None => (&self.decided, &face.candidates, face.threshold, None, face.verdict),
            };
            let now = verdict.person().map(|person| self.merges.now(person));
            Told { n, face, event, candidates, threshold, evidence, verdict, now }
        })
    }

    /// The merges that made a person who they are now, first to last.
    fn since(&self, mut person: PersonId) -> Vec<(&EventId, &PersonsMerged)> {
        let mut since = Vec::new();
        while let Some((id, merge)) =
            self.merged.iter().find(|(id, merge)| merge.from == person && self.merges.get(*id).is_some())
        {
            since.push((id, merge));
            person = merge.into;
        }
        since
    }

    fn to_json(&self, told: &[Told<'_>]) -> Value {
        let face = |told: &Told<'_>| {
            let since = told.verdict.person().map(|person| self.since(person)).unwrap_or_default();
            let since: Vec<Value> =
                since.iter().map(|(id, m)| json!({ "event": id, "into": m.into, "grounds": m.grounds })).collect();
            json!({
                "face": told.n,
                "box": told.face.bounds,
                "quality": told.face.quality,
                "confidence": told.face.confidence,
                "model": told.face.model,
                "candidates": told.candidates,
                "threshold": told.threshold,
                "evidence": told.evidence,
                "verdict": told.verdict,
                "person": told.now,
                "event": told.event.id,
                "event_seq": told.event.seq,
                "event_type": told.event.event.event_type(),
                "merges": since,
                "words": self.words(told),
            })
        };
        json!({
            "image": self.photo.image_id,
            "event": self.decided.id,
            "event_seq": self.decided.seq,
            "when": self.decided.when,
            "actor": self.decided.actor,
            "analyzer": self.photo.analyzer,
            "faces": told.iter().map(face).collect::<Vec<_>>(),
            "adopted": self.adopted().map(|(now, then)| json!({ "person": now, "adopted_as": then })).collect::<Vec<_>>(),
        })
    }

    fn tell(&self, told: &[Told<'_>], output: &mut Output) -> std::io::Result<()> {
        let name = self.photo.source.file_name.as_deref().unwrap_or(&self.photo.source.key);
        let looked = match self.photo.analyzer.as_str() {
            "off" => "nobody looked for faces".to_owned(),
            analyzer => match self.photo.faces.len() {
                1 => format!("the {analyzer} analyzer found 1 face"),
                faces => format!("the {analyzer} analyzer found {faces} faces"),
            },
        };
        output.line(format!("{} ({name}): {looked}", self.photo.image_id))?;
        output.line(format!("decided by event {} ({}), {}", self.decided.seq, self.decided.id, self.decided.when))?;
        for told in told {
            let face = told.face;
            let percent = |share: f32| format!("{:.0}%", share * 100.0);
            output.line(format!("\nface {}", told.n))?;
            let b = face.bounds;
            let place = format!("{} from the left, {} from the top", percent(b.x), percent(b.y));
            let turn = face.quality.turn.map(|turn| format!(", turned {}", percent(turn))).unwrap_or_default();
            let candidates = told.candidates.iter().map(|c| format!("{} {:.4}", c.person, c.similarity));
            let candidates: Vec<String> = candidates.collect();
            output.columns([
                vec!["  where".into(), format!("{place}, {:.0} px", face.quality.size)],
                vec!["  how well".into(), format!("sharpness {}{turn}", percent(face.quality.sharpness))],
                vec!["  a face?".into(), format!("{} sure", percent(face.confidence))],
                vec!["  model".into(), face.model.clone()],
                vec!["  nearest".into(), if candidates.is_empty() { "nobody".into() } else { candidates.join(", ") }],
                vec!["  threshold".into(), format!("{:.4}", told.threshold)],
                vec![
                    "  event".into(),
                    format!("{} {} ({})", told.event.event.event_type(), told.event.seq, told.event.id),
                ],
            ])?;
            for line in self.words(told) {
                output.line(format!("  {line}"))?;
            }
        }
        for (now, then) in self.adopted() {
            output.line(format!("\n{}", adopted::words(now, then)))?;
        }
        Ok(())
    }

    /// The decision in words.
    fn words(&self, told: &Told<'_>) -> Vec<String> {
        let best = told.candidates.first();
        let next = told.candidates.get(1).map(|next| format!("; next comes {} at {:.4}", next.person, next.similarity));
        let next = next.unwrap_or_default();
        let witnessed = told.evidence.map(|evidence| persons::words(&Grounds::Alike(evidence)));
        let decision = match (told.verdict, best) {
            (Verdict::Matched(person), _) if witnessed.is_some() => {
                format!("this is {person}, looked at again: {}", witnessed.unwrap_or_default())
            }
            (Verdict::Matched(person), Some(best)) if best.similarity >= told.threshold => {
                format!("this is {person}: {:.4} alike, and {:.4} is enough{next}", best.similarity, told.threshold)
            }
            (Verdict::Matched(person), _) => format!("this is {person}, founded by a better face in this photo"),
            (Verdict::Founded(person), Some(best)) => format!(
                "this was a stranger, who became {person}: the nearest was {} at {:.4}, and {:.4} is needed",
                best.person, best.similarity, told.threshold
            ),
            (Verdict::Founded(person), None) => {
                format!("this was a stranger, who became {person}: nobody was known yet")
            }
            (Verdict::Ambiguous, _) => "nobody: several persons are nearly as near".to_owned(),
            (Verdict::TooPoor, _) => {
                "nobody: near to nobody known, and seen too poorly to make it a person of its own".to_owned()
            }
        };
        let since = told.verdict.person().map(|person| self.since(person)).unwrap_or_default();
        let since = since.into_iter().map(|(id, merge)| {
            format!("since then {} is {}, by event {id}: {}", merge.from, merge.into, persons::words(&merge.grounds))
        });
        [decision].into_iter().chain(since).collect()
    }
}
