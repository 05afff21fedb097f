//! Persons whom somebody else founded.

use std::{collections::HashMap, sync::Arc};

use sparks_domain::{
    Attributes, Event, FaceId, FoundPerson, Item, Key, Likeness, Merges, NumbersReserved, PersonId, PersonPictured,
    Projection, Signature, Strange, Version,
};

use super::{Adopted, Adoption, lookalikes::Lookalikes, standing::Standing};
use crate::{
    AnalyzeError, Commit, CommitError, DarkroomError, Failure, ObjectsError, Pipeline, StoredFace,
    stages::{conflict_pauses, pause},
};

/// A picture of somebody, looked at.
struct Looked {
    likeness: Likeness,
    signature: Option<Signature>,
}

impl Adoption {
    /// Says that numbers up to this one are taken, where the log does not know.
    pub(super) async fn reserve(
        &self,
        highest: u32,
        standing: &mut Standing,
        adopted: &mut Adopted,
    ) -> Result<(), Failure> {
        let draft = |standing: &Standing| {
            let (up_to, identity_seq) = (highest.max(standing.identity.counter), standing.seq());
            let event = Event::NumbersReserved(NumbersReserved { v: Version, up_to, identity_seq });
            (up_to > standing.people.highest()).then_some((event, Vec::new()))
        };
        if let Some(Event::NumbersReserved(event)) = self.decide(standing, None, draft).await? {
            adopted.reserved = Some(event.up_to);
        }
        Ok(())
    }

    /// Takes over those of these persons whom the log does not name.
    pub(super) async fn adopt_persons(
        &self,
        persons: &[PersonId],
        standing: &mut Standing,
        lookalikes: &mut Lookalikes<'_>,
        adopted: &mut Adopted,
    ) -> Result<(), Failure> {
        let mut wanted = Vec::new();
        for person in persons {
            let (people, is_absorbed) = (&standing.people, standing.people.merges().is_absorbed(*person));
            match people.has_met(*person) {
                true if people.is_forgotten(*person) || is_absorbed => adopted.leave([Strange::Gone(*person)]),
                true if self.is_to_be_pictured(*person, standing).await? => wanted.push(*person),
                true => adopted.known += 1,
                false => wanted.push(*person),
            }
        }
        let keys: Vec<Key> = wanted.iter().map(|person| Key::person(*person)).collect();
        let rows = self.store.batch_get(&keys).await?;
        let mut rows: HashMap<Key, Item> = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
        for (person, looked) in self.look_at(wanted).await? {
            let Some(row) = rows.remove(&Key::person(person)) else { continue };
            self.adopt_person(person, &row, looked, standing, lookalikes, adopted).await?;
        }
        Ok(())
    }

    /// Whether nobody would recognise them, and nothing has changed that since.
    async fn is_to_be_pictured(&self, person: PersonId, standing: &Standing) -> Result<bool, Failure> {
        Ok(standing.unrecognisable.contains(&person) && self.store.faces_of(&[person]).await?.is_empty())
    }

    async fn adopt_person(
        &self,
        person: PersonId,
        row: &Item,
        looked: Looked,
        standing: &mut Standing,
        lookalikes: &mut Lookalikes<'_>,
        adopted: &mut Adopted,
    ) -> Result<(), Failure> {
        let now = self.pipeline.ports.clock.now();
        let Ok(found) = FoundPerson::read(row, now) else { return Ok(()) };
        let analyzer = self.pipeline.ports.analyzer.name();
        let Looked { likeness, signature } = looked;
        let face = FaceId::of_crop(person);
        let kept = match &likeness {
            Likeness::Known(seen) => signature.clone().map(|signature| (seen.model.clone(), signature)),
            _ => None,
        };
        let kept = kept.map(|(model, signature)| StoredFace {
            face: face.clone(),
            model,
            signature,
            person: Some(person),
            template: true,
        });
        let draft = |standing: &Standing| match standing.people.has_met(person) {
            false => {
                let event = found.clone().adopted(analyzer, likeness.clone(), standing.seq());
                Some((Event::PersonAdopted(event), vec![&row.attributes]))
            }
            // They were taken over without a likeness, and have one now.
            true if kept.is_some() && standing.unrecognisable.contains(&person) => {
                let (face, identity_seq) = (face.clone(), standing.seq());
                let event = Event::PersonPictured(PersonPictured { v: Version, person, face, identity_seq });
                Some((event, Vec::new()))
            }
            // Somebody else was faster, or there is nothing new to say.
            true => None,
        };
        match self.decide(standing, kept.clone(), draft).await? {
            Some(Event::PersonPictured(_)) => adopted.pictured.push(person),
            Some(_) => adopted.persons += 1,
            None => adopted.known += 1,
        }
        if let Some(kept) = kept {
            lookalikes.meet(person, &kept.model, &kept.signature);
        }
        adopted.unrecognisable.extend(likeness.lack().map(|lack| (person, lack)));
        Ok(())
    }

    /// Records an identity event on what is known by then, and says which, if there was anything to say. A draft comes with
    /// the row it was made of: what that says already is not written again.
    async fn decide<'r>(
        &self,
        standing: &mut Standing,
        kept: Option<StoredFace>,
        draft: impl Fn(&Standing) -> Option<(Event, Vec<&'r Attributes>)>,
    ) -> Result<Option<Event>, Failure> {
        let (ports, rules) = (&self.pipeline.ports, &self.pipeline.rules);
        let mut pauses = conflict_pauses();
        loop {
            let Some((event, rows)) = draft(standing) else { return Ok(None) };
            let when = ports.clock.now();
            if standing.rehearses {
                standing.pass(&event, when, &[]);
                return Ok(Some(event));
            }
            let mutations = rules.projection.project(None, &event, when, &Merges::default());
            let commit = Commit {
                identity: Some(standing.identity.clone()),
                actor: rules.actor.clone(),
                mutations: mutations.into_iter().filter_map(|m| m.beyond(rows.first().copied())).collect(),
                events: vec![event.clone()],
                signatures: kept.clone().into_iter().collect(),
                ..Commit::without_events(when, None)
            };
            match self.store.commit(&commit).await {
                Ok(recorded) => {
                    standing.pass(&event, when, &recorded);
                    self.pipeline.tell(&recorded).await;
                    return Ok(Some(event));
                }
                Err(CommitError::IdentityMoved) => standing.catch_up(self.store.as_ref()).await?,
                // The platform removed them meanwhile.
                Err(CommitError::RowMissing(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            pause(&mut pauses, "who is known").await?;
        }
    }

    /// Looks at the pictures of these persons, as many at once as there are cores.
    async fn look_at(&self, persons: Vec<PersonId>) -> Result<Vec<(PersonId, Looked)>, Failure> {
        let look = |person: PersonId| {
            let pipeline = Arc::clone(&self.pipeline);
            (person, tokio::spawn(async move { pipeline.look_at_crop(person).await }))
        };
        let looking: Vec<_> = persons.into_iter().map(look).collect();
        let mut looked = Vec::with_capacity(looking.len());
        for (person, look) in looking {
            let seen = look.await.map_err(|error| Failure::new(crate::Cause::Fault, error.to_string()))?;
            looked.push((person, seen?));
        }
        Ok(looked)
    }
}

impl Pipeline {
    /// What a person's picture tells of them.
    async fn look_at_crop(&self, person: PersonId) -> Result<Looked, Failure> {
        let without = |likeness| Ok(Looked { likeness, signature: None });
        let object = match self.ports.objects.get(&Projection::crop_key(person), self.rules.max_bytes).await {
            Ok(object) => object,
            Err(ObjectsError::NotFound(_)) => return without(Likeness::NoCrop),
            Err(error @ ObjectsError::TooLarge { .. }) => return without(Likeness::Unreadable(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let (bytes, version) = (object.bytes, object.version);
        let pixels = match self.decode(move |darkroom| darkroom.open(&bytes)).await {
            Ok(pixels) => Arc::new(pixels),
            Err(DarkroomError::Rejected(reason)) => return without(Likeness::Unreadable(reason.message)),
            Err(unavailable) => return Err(unavailable.into()),
        };
        match self.ports.analyzer.analyze(pixels).await {
            Ok(faces) => {
                let (likeness, signature) = Likeness::of(version, faces, &self.rules.policy);
                Ok(Looked { likeness, signature })
            }
            Err(AnalyzeError::Crashed(crashed)) => without(Likeness::Unreadable(crashed.to_string())),
            Err(error) => Err(error.into()),
        }
    }
}
