//! What is said to scripts: one document with everything.

use serde_json::{Map, Value, json};
use sparks_domain::{Join, PersonId};
use sparks_engine::{Difference, Faces, What};

use super::Told;

impl Told<'_> {
    pub(super) fn to_json(&self) -> Value {
        let report = self.report;
        let outcomes = [What::Same, What::Kept, What::Other, What::Recognised, What::New, What::Lost, What::Nobody];
        let outcomes: Map<String, Value> = outcomes
            .map(|what| (what.name().to_owned(), json!(report.outcomes.get(&what).unwrap_or(&0))))
            .into_iter()
            .collect();
        let unreadable = report.unreadable.iter().map(|(image, why)| json!({ "image_id": image, "why": why }));
        let agreement = report.agreement();
        json!({
            "dry_run": !self.args.apply,
            "analyzer": self.analyzer,
            "photos": report.photos,
            "photos_changed": report.changed,
            "photos_moved": report.moved,
            "photos_unreadable": unreadable.collect::<Vec<_>>(),
            "faces_both": report.both,
            "faces_only_before": report.only_before,
            "faces_only_now": report.only_now,
            "outcomes": outcomes,
            "agreement": agreement.map(|(alone, _)| alone),
            "agreement_with_kept": agreement.map(|(_, kept)| kept),
            "persons": report.persons.iter().map(|(person, faces)| self.person_json(*person, faces)).collect::<Vec<_>>(),
            "merges": self.merges_json(),
            "splits": self.splits().map(|(person, faces)| self.person_json(person, faces)).collect::<Vec<_>>(),
            "in_no_photo": self.gone().collect::<Vec<_>>(),
            "left_over": report.left_over,
            "differences": report.differences.iter().map(difference).collect::<Vec<_>>(),
        })
    }

    fn person_json(&self, person: PersonId, faces: &Faces) -> Value {
        let other = faces.other.iter().map(|(whose, faces)| json!({ "person": whose, "faces": faces }));
        json!({
            "person": person,
            "name": self.names.get(&person),
            "faces": faces.before,
            "same": faces.same,
            "kept": faces.kept,
            "other": other.collect::<Vec<_>>(),
            "lost": faces.lost,
            "gained": faces.gained,
        })
    }

    fn merges_json(&self) -> Vec<Value> {
        let alike = |strength: &'static str| move |join: &Join| json!({ "into": join.into, "from": join.from, "evidence": strength, "grounds": join.evidence });
        let absorbed = self
            .absorbed()
            .map(|(into, from, faces)| json!({ "into": into, "from": from, "evidence": "decided", "faces": faces }));
        let merges = &self.report.merges;
        let joins = merges.joins.iter().map(alike("strong"));
        absorbed.chain(joins).chain(merges.suggestions.iter().map(alike("weaker"))).collect()
    }
}

fn difference(difference: &Difference) -> Value {
    json!({
        "image_id": difference.image,
        "face_before": difference.before,
        "face": difference.now,
        "what": difference.what.name(),
        "was": difference.was,
        "is": difference.is,
        "similarity": difference.similarity,
        "threshold": difference.threshold,
    })
}
