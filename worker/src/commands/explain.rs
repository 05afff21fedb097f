//! `sparks explain`

mod adopted_photo;
mod untagged_photo;

use std::process::ExitCode;

use serde_json::{Value, json};
use sparks_domain::{
    Candidate, Event, EventId, Evidence, Face, ImageId, MergeReason, Merges, PersonId, PersonsMerged, PhotoProcessed,
    RecordedEvent, ReviewedFace, Seq, Verdict,
};

use self::{adopted_photo::AdoptedPhoto, untagged_photo::UntaggedPhoto};
use super::persons;
use crate::{
    backend::Backend,
    cli::{ExplainArgs, Global},
    output::Output,
    wiring::{self, UsageError},
};

/// Prints why each tag of a photo is there.
pub async fn run(global: &Global, args: ExplainArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let settings = wiring::settings(global, &[])?.settings;
    let backend = wiring::open(&settings).await?;
    let image: ImageId = args.image.parse().map_err(|error| UsageError(format!("{error}")))?;
    let person = args.person.as_deref().map(str::parse::<PersonId>).transpose();
    let person = person.map_err(|error| UsageError(error.to_string()))?;
    let is_found = match Explanation::read(&backend, &image).await? {
        None => anyhow::bail!("photo {image} does not exist in {}: see `sparks query photos`", backend.location),
        Some(Explanation::Decided(decision)) => {
            let is_wanted = |face: &FaceDecision<'_>| person.is_none_or(|person| face.current_person == Some(person));
            let faces: Vec<FaceDecision<'_>> = decision.faces().filter(is_wanted).collect();
            if output.is_json() {
                output.json(&decision.to_json(&faces))?
            } else {
                decision.print(&faces, output)?
            }
            let is_adopted = decision.adopted().any(|(now, _)| person.is_none_or(|person| now == person));
            !faces.is_empty() || is_adopted
        }
        Some(Explanation::Adopted(photo)) => {
            if output.is_json() {
                output.json(&photo.to_json(person))?
            } else {
                photo.print(person, output)?
            }
            photo.persons().iter().any(|(now, _)| person.is_none_or(|person| *now == person))
        }
        Some(Explanation::Untagged(event)) => {
            let untagged_photo = UntaggedPhoto { image: &image, event: &event };
            if output.is_json() {
                output.json(&untagged_photo.to_json())?
            } else {
                untagged_photo.print(output)?
            }
            false
        }
    };
    if let (Some(person), false) = (person, is_found) {
        anyhow::bail!("{person} is not in photo {image}");
    }
    Ok(ExitCode::SUCCESS)
}

/// What the event log says about the tags of a photo.
enum Explanation {
    /// The tags were decided by this program.
    Decided(Box<PhotoDecision>),
    /// The tags were adopted from another worker.
    Adopted(Box<AdoptedPhoto>),
    /// The photo has no tags; the event says why.
    Untagged(Box<RecordedEvent>),
}

/// The events that decided the tags of a photo.
struct PhotoDecision {
    decided: RecordedEvent,
    photo: PhotoProcessed,
    reviews: Vec<(RecordedEvent, Vec<ReviewedFace>)>,
    adopted: Vec<PersonId>,
    merged: Vec<(EventId, PersonsMerged)>,
    merges: Merges,
}

/// The latest decision about one face.
struct FaceDecision<'a> {
    n: u16,
    face: &'a Face,
    event: &'a RecordedEvent,
    candidates: &'a [Candidate],
    threshold: f32,
    evidence: Option<Evidence>,
    verdict: Verdict,
    /// The person after all merges.
    current_person: Option<PersonId>,
}

impl Explanation {
    async fn read(backend: &Backend, image: &ImageId) -> anyhow::Result<Option<Self>> {
        let Some(state) = backend.store.photo(image).await? else { return Ok(None) };
        let Some(decided) = backend.store.event(image, state.projected_seq.unwrap_or(state.seq)).await? else {
            return Ok(None);
        };
        Ok(Some(match (state.projected_seq, decided.event.clone()) {
            (Some(_), Event::PhotoProcessed(photo)) => {
                Self::Decided(Box::new(PhotoDecision::read(backend, decided, photo, state.seq).await?))
            }
            (Some(_), Event::PhotoAdopted(event)) => {
                let (merges, _) = merges(backend).await?;
                Self::Adopted(Box::new(AdoptedPhoto { recorded: decided, event, state, merges }))
            }
            _ => Self::Untagged(Box::new(decided)),
        }))
    }
}

/// Reads the merges in effect, and all merge events, also those that were undone.
async fn merges(backend: &Backend) -> anyhow::Result<(Merges, Vec<(EventId, PersonsMerged)>)> {
    let (mut merges, mut merged) = (Merges::default(), Vec::new());
    for RecordedEvent { id, event, .. } in backend.store.identity(Seq(0)).await?.events {
        merges.evolve(&event);
        if let Event::PersonsMerged(merge) = event {
            merged.push((id, merge));
        }
    }
    Ok((merges, merged))
}

impl PhotoDecision {
    /// Reads the events of the photo backwards, from the last one to the one that its rows are projected from.
    async fn read(backend: &Backend, decided: RecordedEvent, photo: PhotoProcessed, last: Seq) -> anyhow::Result<Self> {
        let (mut reviews, mut adopted, mut seq) = (Vec::new(), photo.adopted.clone(), last);
        while seq > decided.seq {
            let Some(recorded) = backend.store.event(&photo.image_id, seq).await? else { break };
            seq = match recorded.event.clone() {
                Event::FacesReviewed(review) => {
                    reviews.push((recorded, review.faces));
                    review.follows
                }
                // A later version that was rejected changed no tag.
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

    /// Returns the persons tagged by another worker: who they are after merges, and who they were adopted as.
    fn adopted(&self) -> impl Iterator<Item = (PersonId, PersonId)> {
        self.adopted.iter().map(|person| (self.merges.current(*person), *person))
    }

    fn faces(&self) -> impl Iterator<Item = FaceDecision<'_>> {
        (self.photo.first_face..).zip(&self.photo.faces).map(|(n, face)| {
            let reviews = self.reviews.iter().flat_map(|(event, faces)| faces.iter().map(move |face| (event, face)));
            let review = reviews.into_iter().find(|(_, reviewed)| reviewed.n == n);
            let (event, candidates, threshold, evidence, verdict) = match review {
                Some((event, face)) => (event, &face.candidates, face.threshold, face.evidence, face.verdict),
                None => (&self.decided, &face.candidates, face.threshold, None, face.verdict),
            };
            let current_person = verdict.person().map(|person| self.merges.current(person));
            FaceDecision { n, face, event, candidates, threshold, evidence, verdict, current_person }
        })
    }

    /// Returns the merges in effect since the person was decided, first to last.
    fn merges_since(&self, mut person: PersonId) -> Vec<(&EventId, &PersonsMerged)> {
        let mut since = Vec::new();
        while let Some((id, merge)) =
            self.merged.iter().find(|(id, merge)| merge.from == person && self.merges.get(*id).is_some())
        {
            since.push((id, merge));
            person = merge.into;
        }
        since
    }

    fn to_json(&self, decisions: &[FaceDecision<'_>]) -> Value {
        let face = |decision: &FaceDecision<'_>| {
            let since = decision.verdict.person().map(|person| self.merges_since(person)).unwrap_or_default();
            let since: Vec<Value> =
                since.iter().map(|(id, m)| json!({ "event": id, "into": m.into, "grounds": m.grounds })).collect();
            json!({
                "face": decision.n,
                "box": decision.face.bounds,
                "quality": decision.face.quality,
                "confidence": decision.face.confidence,
                "model": decision.face.model,
                "candidates": decision.candidates,
                "threshold": decision.threshold,
                "evidence": decision.evidence,
                "verdict": decision.verdict,
                "person": decision.current_person,
                "event": decision.event.id,
                "event_seq": decision.event.seq,
                "event_type": decision.event.event.event_type(),
                "merges": since,
                "words": self.describe(decision),
            })
        };
        json!({
            "image": self.photo.image_id,
            "event": self.decided.id,
            "event_seq": self.decided.seq,
            "when": self.decided.when,
            "actor": self.decided.actor,
            "analyzer": self.photo.analyzer,
            "faces": decisions.iter().map(face).collect::<Vec<_>>(),
            "adopted": self.adopted().map(|(now, then)| json!({ "person": now, "adopted_as": then })).collect::<Vec<_>>(),
        })
    }

    fn print(&self, decisions: &[FaceDecision<'_>], output: &mut Output) -> std::io::Result<()> {
        let name = self.photo.source.file_name.as_deref().unwrap_or(&self.photo.source.key);
        let analysis = match self.photo.analyzer.as_str() {
            "off" => "faces were not analysed".to_owned(),
            analyzer => match self.photo.faces.len() {
                1 => format!("the {analyzer} analyzer found 1 face"),
                faces => format!("the {analyzer} analyzer found {faces} faces"),
            },
        };
        output.line(format!("{} ({name}): {analysis}", self.photo.image_id))?;
        output.line(format!("decided by event {} ({}), {}", self.decided.seq, self.decided.id, self.decided.when))?;
        for decision in decisions {
            let face = decision.face;
            let percent = |fraction: f32| format!("{:.0}%", fraction * 100.0);
            output.line(format!("\nface {}", decision.n))?;
            let b = face.bounds;
            let position = format!("{} from the left, {} from the top", percent(b.x), percent(b.y));
            let turn = face.quality.turn.map(|turn| format!(", turned {}", percent(turn))).unwrap_or_default();
            let candidates = decision.candidates.iter().map(|c| format!("{} {:.4}", c.person, c.similarity));
            let candidates: Vec<String> = candidates.collect();
            output.columns([
                vec!["  position".into(), format!("{position}, {:.0} px", face.quality.size)],
                vec!["  quality".into(), format!("sharpness {}{turn}", percent(face.quality.sharpness))],
                vec!["  confidence".into(), percent(face.confidence)],
                vec!["  model".into(), face.model.clone()],
                vec![
                    "  best matches".into(),
                    if candidates.is_empty() { "none".into() } else { candidates.join(", ") },
                ],
                vec!["  threshold".into(), format!("{:.4}", decision.threshold)],
                vec![
                    "  event".into(),
                    format!("{} {} ({})", decision.event.event.event_type(), decision.event.seq, decision.event.id),
                ],
            ])?;
            for line in self.describe(decision) {
                output.line(format!("  {line}"))?;
            }
        }
        for (now, then) in self.adopted() {
            output.line(format!("\n{}", adopted_photo::describe(now, then)))?;
        }
        Ok(())
    }

    /// Describes the decision and the merges since, one line each.
    fn describe(&self, decision: &FaceDecision<'_>) -> Vec<String> {
        let best = decision.candidates.first();
        let next =
            decision.candidates.get(1).map(|next| format!("; second best: {} at {:.4}", next.person, next.similarity));
        let next = next.unwrap_or_default();
        let evidence = decision.evidence.map(|evidence| persons::describe_reason(&MergeReason::SimilarFaces(evidence)));
        let text = match (decision.verdict, best) {
            (Verdict::Matched(person), _) if evidence.is_some() => {
                format!("matched {person} in a later review: {}", evidence.unwrap_or_default())
            }
            (Verdict::Matched(person), Some(best)) if best.similarity >= decision.threshold => {
                format!(
                    "matched {person}: similarity {:.4}, threshold {:.4}{next}",
                    best.similarity, decision.threshold
                )
            }
            (Verdict::Matched(person), _) => format!("matched {person}, created from a better face in this photo"),
            (Verdict::NewPerson(person), Some(best)) => format!(
                "new person {person}: the best match was {} at {:.4}, below the threshold {:.4}",
                best.person, best.similarity, decision.threshold
            ),
            (Verdict::NewPerson(person), None) => {
                format!("new person {person}: no persons were known yet")
            }
            (Verdict::Ambiguous, _) => "unidentified: several persons match almost equally well".to_owned(),
            (Verdict::TooPoor, _) => {
                "unidentified: no person matches, and the face is too poor to create a new person".to_owned()
            }
        };
        let since = decision.verdict.person().map(|person| self.merges_since(person)).unwrap_or_default();
        let since = since.into_iter().map(|(id, merge)| {
            format!(
                "since then {} was merged into {} by event {id}: {}",
                merge.from,
                merge.into,
                persons::describe_reason(&merge.grounds)
            )
        });
        [text].into_iter().chain(since).collect()
    }
}
