//! The report as tables.

use sparks_domain::PersonId;
use sparks_engine::{FaceChange, FaceDifference, PersonFaceCounts};

use super::ReportView;
use crate::output::{Output, one_line, sanitize};

/// Maximum number of rows per table without --all.
const MAX_ROWS: usize = 20;

impl ReportView<'_> {
    /// Returns the persons whose faces the analyzer alone would assign to several persons.
    pub(super) fn splits(&self) -> impl Iterator<Item = (PersonId, &PersonFaceCounts)> {
        self.report.persons.iter().filter(|(_, faces)| faces.split_count() > 1).map(|(person, faces)| (*person, faces))
    }

    /// Returns the persons who had faces and have none now.
    pub(super) fn without_faces(&self) -> impl Iterator<Item = PersonId> {
        self.report.persons.iter().filter(|(_, faces)| faces.has_lost_all()).map(|(person, _)| *person)
    }

    /// Returns the persons whose faces were all assigned to one other person: the other, the person, number of faces.
    pub(super) fn absorbed(&self) -> impl Iterator<Item = (PersonId, PersonId, u64)> {
        self.report
            .persons
            .iter()
            .filter(|(_, faces)| faces.has_lost_all() && faces.other.len() == 1)
            .flat_map(|(from, faces)| faces.other.iter().map(|(into, count)| (*into, *from, *count)))
    }

    pub(super) fn print(&self, output: &mut Output) -> anyhow::Result<()> {
        self.summary(output)?;
        self.persons(output)?;
        self.merges(output)?;
        self.splits_table(output)?;
        self.differences(output)?;
        for (image, why) in &self.report.unreadable {
            output.line(format!("failed to analyse {image}: {}", sanitize(why)))?;
        }
        for person in &self.report.without_photos {
            let into = self.absorbed().find(|(_, from, _)| from == person);
            let into = into.map_or_else(|| "PERSON".to_owned(), |(into, ..)| into.to_string());
            let name = self.named(*person);
            output.line(format!(
                "{name} is in no photo any more, but kept because of the name: `sparks persons merge {into} {person}` \
                 moves the name"
            ))?;
        }
        let report = self.report;
        output.line(match (self.args.apply, report.changed) {
            (_, 0) => "no changes".to_owned(),
            (true, changed) => format!("{changed} photos decided again"),
            (false, changed) => {
                format!("{changed} photos would be decided again; nothing was written, use --apply")
            }
        })?;
        Ok(())
    }

    fn summary(&self, output: &mut Output) -> std::io::Result<()> {
        let report = self.report;
        let count = |what| report.changes.get(&what).copied().unwrap_or_default();
        let row = |name: &str, value: u64, words: &str| vec![name.to_owned(), value.to_string(), words.to_owned()];
        let agreement = report.agreement().map_or_else(String::new, |(alone, kept)| {
            format!("{:.1}% of identified faces unchanged; {:.1}% including kept ones", alone * 100.0, kept * 100.0)
        });
        let mut rows = vec![
            row("photos", report.photos, ""),
            row("unreadable", report.unreadable.len() as u64, ""),
            row("changed meanwhile", report.changed_meanwhile, ""),
            row("faces in both", report.both, ""),
            row("faces only before", report.only_before, ""),
            row("faces only now", report.only_now, ""),
            row("same person", count(FaceChange::Same), &agreement),
            row("kept", count(FaceChange::Kept), "same person by position; the analyzer alone did not match them"),
            row("other person", count(FaceChange::OtherPerson), ""),
            row("lost", count(FaceChange::Lost), "not detected any more"),
            row("recognised", count(FaceChange::Identified), "were unidentified before"),
            row("faces of new persons", count(FaceChange::NewPerson), ""),
        ];
        rows.retain(|row| row[1] != "0" || ["photos", "same person"].contains(&row[0].as_str()));
        output.columns(rows)
    }

    fn persons(&self, output: &mut Output) -> std::io::Result<()> {
        let has_changed = |faces: &PersonFaceCounts| faces.same != faces.before || faces.gained > 0;
        let persons = self.report.persons.iter().filter(|(_, faces)| self.args.all || has_changed(faces));
        let rows: Vec<_> = persons.map(|(person, faces)| self.person(*person, faces)).collect();
        if rows.is_empty() {
            return Ok(());
        }
        output.line("")?;
        self.list(&["person", "faces", "same", "kept", "lost", "gained", "to others"], rows, output)
    }

    /// Prints the first rows, or all with --all.
    fn list(&self, header: &[&str], mut rows: Vec<Vec<String>>, output: &mut Output) -> std::io::Result<()> {
        let max_rows = if self.args.all { usize::MAX } else { MAX_ROWS };
        let more = rows.len().saturating_sub(max_rows);
        rows.truncate(max_rows);
        output.table(header, rows)?;
        if more > 0 {
            output.line(format!("... and {more} more: list them with --all"))?;
        }
        Ok(())
    }

    fn splits_table(&self, output: &mut Output) -> std::io::Result<()> {
        let rows = self.splits().map(|(person, faces)| {
            let others: u64 = faces.other.values().sum();
            vec![
                self.named(person),
                faces.split_count().to_string(),
                format!("{} unchanged, {} kept, {others} of other persons", faces.same, faces.kept),
            ]
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return Ok(());
        }
        output.line("")?;
        self.list(&["split into several", "parts", "faces"], rows, output)
    }

    fn person(&self, person: PersonId, faces: &PersonFaceCounts) -> Vec<String> {
        let others: Vec<String> =
            faces.other.iter().map(|(whose, count)| format!("{count} to {}", self.named(*whose))).collect();
        let count = |count: u64| count.to_string();
        vec![
            self.named(person),
            count(faces.before),
            count(faces.same),
            count(faces.kept),
            count(faces.lost),
            count(faces.gained),
            others.join(", "),
        ]
    }

    fn merges(&self, output: &mut Output) -> std::io::Result<()> {
        let decided = self.absorbed().map(|(into, from, faces)| {
            vec![self.named(into), self.named(from), format!("all {faces} faces"), String::new()]
        });
        let joins = self.report.merges.merges.iter().map(|join| {
            let (into, from) = (join.into, join.from);
            let deviations = format!("{:.1} deviations", join.evidence.distinction);
            vec![self.named(into), self.named(from), deviations, format!("sparks persons merge {into} {from}")]
        });
        let rows: Vec<_> = decided.chain(joins).collect();
        if !rows.is_empty() {
            output.line("")?;
            self.list(&["seem to be the same", "", "evidence", "to merge them"], rows, output)?;
        }
        Ok(())
    }

    fn differences(&self, output: &mut Output) -> std::io::Result<()> {
        let differences = &self.report.differences;
        if !differences.is_empty() {
            output.line("")?;
            let is = if self.args.apply { "is" } else { "would be" };
            let header = ["photo", "face", "change", "was", is, "similarity", "threshold"];
            self.list(&header, differences.iter().map(|difference| self.difference(difference)).collect(), output)?;
        }
        output.line("")
    }

    fn difference(&self, difference: &FaceDifference) -> Vec<String> {
        let who =
            |person: Option<PersonId>| person.map_or_else(|| "unidentified".to_owned(), |person| self.named(person));
        let score = |value: Option<f32>| value.map_or_else(String::new, |value| format!("{value:.4}"));
        let face = difference.face_before.or(difference.face_now);
        vec![
            difference.image.to_string(),
            face.map_or_else(String::new, |face| face.to_string()),
            difference.change.name().into(),
            who(difference.person_before),
            who(difference.person_now),
            score(difference.similarity),
            score(difference.threshold),
        ]
    }

    /// Returns the ID of a person, with the display name if it differs.
    fn named(&self, person: PersonId) -> String {
        match self.names.get(&person).filter(|name| **name != person.to_string()) {
            Some(name) => format!("{person} ({})", one_line(name, 24)),
            None => person.to_string(),
        }
    }
}
