//! The report as one JSON document.

use serde_json::{Map, Value, json};
use sparks_domain::{MergeProposal, PersonId};
use sparks_engine::{FaceChange, FaceDifference, PersonFaceCounts};

use super::ReportView;

impl ReportView<'_> {
    pub(super) fn to_json(&self) -> Value {
        let report = self.report;
        let outcomes = [
            FaceChange::Same,
            FaceChange::Kept,
            FaceChange::OtherPerson,
            FaceChange::Identified,
            FaceChange::NewPerson,
            FaceChange::Lost,
            FaceChange::Unidentified,
        ];
        let outcomes: Map<String, Value> = outcomes
            .map(|what| (what.name().to_owned(), json!(report.changes.get(&what).unwrap_or(&0))))
            .into_iter()
            .collect();
        let unreadable = report.unreadable.iter().map(|(image, why)| json!({ "image_id": image, "why": why }));
        let agreement = report.agreement();
        json!({
            "dry_run": !self.args.apply,
            "analyzer": self.analyzer,
            "photos": report.photos,
            "photos_changed": report.changed,
            "photos_moved": report.changed_meanwhile,
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
            "in_no_photo": self.without_faces().collect::<Vec<_>>(),
            "left_over": report.without_photos,
            "differences": report.differences.iter().map(difference).collect::<Vec<_>>(),
        })
    }

    fn person_json(&self, person: PersonId, faces: &PersonFaceCounts) -> Value {
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
        let alike = |strength: &'static str| move |join: &MergeProposal| json!({ "into": join.into, "from": join.from, "evidence": strength, "grounds": join.evidence });
        let absorbed = self
            .absorbed()
            .map(|(into, from, faces)| json!({ "into": into, "from": from, "evidence": "decided", "faces": faces }));
        let merges = &self.report.merges;
        let joins = merges.merges.iter().map(alike("strong"));
        absorbed.chain(joins).chain(merges.suggestions.iter().map(alike("weaker"))).collect()
    }
}

fn difference(difference: &FaceDifference) -> Value {
    json!({
        "image_id": difference.image,
        "face_before": difference.face_before,
        "face": difference.face_now,
        "what": difference.change.name(),
        "was": difference.person_before,
        "is": difference.person_now,
        "similarity": difference.similarity,
        "threshold": difference.threshold,
    })
}
