//! What is said to people: tables.

use sparks_domain::PersonId;
use sparks_engine::{Difference, Faces, What};

use super::Told;
use crate::output::{Output, brief, harmless};

/// Rows of a table without --all.
const LISTED: usize = 20;

impl Told<'_> {
    /// Persons whose faces the engine alone would take for those of several.
    pub(super) fn splits(&self) -> impl Iterator<Item = (PersonId, &Faces)> {
        self.report.persons.iter().filter(|(_, faces)| faces.pieces() > 1).map(|(person, faces)| (*person, faces))
    }

    /// Persons who had faces, and have none any more.
    pub(super) fn gone(&self) -> impl Iterator<Item = PersonId> {
        self.report.persons.iter().filter(|(_, faces)| faces.is_gone()).map(|(person, _)| *person)
    }

    /// Persons whose faces all went to one other: into whom, who, and how many faces.
    pub(super) fn absorbed(&self) -> impl Iterator<Item = (PersonId, PersonId, u64)> {
        self.report
            .persons
            .iter()
            .filter(|(_, faces)| faces.is_gone() && faces.other.len() == 1)
            .flat_map(|(from, faces)| faces.other.iter().map(|(into, count)| (*into, *from, *count)))
    }

    pub(super) fn tell(&self, output: &mut Output) -> anyhow::Result<()> {
        self.summary(output)?;
        self.persons(output)?;
        self.merges(output)?;
        self.splits_table(output)?;
        self.differences(output)?;
        for (image, why) in &self.report.unreadable {
            output.line(format!("{image} could not be looked at: {}", harmless(why)))?;
        }
        for person in &self.report.left_over {
            let into = self.absorbed().find(|(_, from, _)| from == person);
            let into = into.map_or_else(|| "PERSON".to_owned(), |(into, ..)| into.to_string());
            let name = self.named(*person);
            output.line(format!(
                "{name} is in no photo any more, and not forgotten because of the name: `sparks persons merge {into} {person}` \
                 hands it on"
            ))?;
        }
        let report = self.report;
        output.line(match (self.args.apply, report.changed) {
            (_, 0) => "nothing changes".to_owned(),
            (true, changed) => format!("{changed} photos decided anew"),
            (false, changed) => {
                format!("{changed} photos would be decided anew; nothing was written: --apply makes it so")
            }
        })?;
        Ok(())
    }

    fn summary(&self, output: &mut Output) -> std::io::Result<()> {
        let report = self.report;
        let count = |what| report.outcomes.get(&what).copied().unwrap_or_default();
        let row = |name: &str, value: u64, words: &str| vec![name.to_owned(), value.to_string(), words.to_owned()];
        let agreement = report.agreement().map_or_else(String::new, |(alone, kept)| {
            format!("{:.1}% of known faces the same; {:.1}% with those kept", alone * 100.0, kept * 100.0)
        });
        let mut rows = vec![
            row("photos", report.photos, ""),
            row("unreadable", report.unreadable.len() as u64, ""),
            row("moved meanwhile", report.moved, ""),
            row("faces seen by both", report.both, ""),
            row("only before", report.only_before, ""),
            row("only now", report.only_now, ""),
            row("same person", count(What::Same), &agreement),
            row("kept", count(What::Kept), "stay who they were by their place; alone, the engine could not tell"),
            row("other person", count(What::Other), ""),
            row("lost", count(What::Lost), "not seen any more"),
            row("recognised", count(What::Recognised), "were nobody's"),
            row("new persons' faces", count(What::New), ""),
        ];
        rows.retain(|row| row[1] != "0" || ["photos", "same person"].contains(&row[0].as_str()));
        output.columns(rows)
    }

    fn persons(&self, output: &mut Output) -> std::io::Result<()> {
        let is_news = |faces: &Faces| faces.same != faces.before || faces.gained > 0;
        let persons = self.report.persons.iter().filter(|(_, faces)| self.args.all || is_news(faces));
        let rows: Vec<_> = persons.map(|(person, faces)| self.person(*person, faces)).collect();
        if rows.is_empty() {
            return Ok(());
        }
        output.line("")?;
        self.list(&["person", "faces", "same", "kept", "lost", "gained", "others'"], rows, output)
    }

    /// The first few rows, or all.
    fn list(&self, header: &[&str], mut rows: Vec<Vec<String>>, output: &mut Output) -> std::io::Result<()> {
        let most = if self.args.all { usize::MAX } else { LISTED };
        let more = rows.len().saturating_sub(most);
        rows.truncate(most);
        output.table(header, rows)?;
        if more > 0 {
            output.line(format!("... and {more} more: --all lists them"))?;
        }
        Ok(())
    }

    fn splits_table(&self, output: &mut Output) -> std::io::Result<()> {
        let rows = self.splits().map(|(person, faces)| {
            let others: u64 = faces.other.values().sum();
            vec![
                self.named(person),
                faces.pieces().to_string(),
                format!("{} known again, {} kept, {others} somebody else's", faces.same, faces.kept),
            ]
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return Ok(());
        }
        output.line("")?;
        self.list(&["taken for several", "how many", "faces"], rows, output)
    }

    fn person(&self, person: PersonId, faces: &Faces) -> Vec<String> {
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
        let joins = self.report.merges.joins.iter().map(|join| {
            let (into, from) = (join.into, join.from);
            let deviations = format!("{:.1} deviations", join.evidence.distinction);
            vec![self.named(into), self.named(from), deviations, format!("sparks persons merge {into} {from}")]
        });
        let rows: Vec<_> = decided.chain(joins).collect();
        if !rows.is_empty() {
            output.line("")?;
            self.list(&["taken for one", "", "because of", "to join them"], rows, output)?;
        }
        Ok(())
    }

    fn differences(&self, output: &mut Output) -> std::io::Result<()> {
        let differences = &self.report.differences;
        if !differences.is_empty() {
            output.line("")?;
            let is = if self.args.apply { "is" } else { "would be" };
            let header = ["photo", "face", "what", "was", is, "similarity", "threshold"];
            self.list(&header, differences.iter().map(|difference| self.difference(difference)).collect(), output)?;
        }
        output.line("")
    }

    fn difference(&self, difference: &Difference) -> Vec<String> {
        let who = |person: Option<PersonId>| person.map_or_else(|| "nobody".to_owned(), |person| self.named(person));
        let share = |value: Option<f32>| value.map_or_else(String::new, |value| format!("{value:.4}"));
        let face = difference.before.or(difference.now);
        vec![
            difference.image.to_string(),
            face.map_or_else(String::new, |face| face.to_string()),
            difference.what.name().into(),
            who(difference.was),
            who(difference.is),
            share(difference.similarity),
            share(difference.threshold),
        ]
    }

    /// A person as people know them.
    fn named(&self, person: PersonId) -> String {
        match self.names.get(&person).filter(|name| **name != person.to_string()) {
            Some(name) => format!("{person} ({})", brief(name, 24)),
            None => person.to_string(),
        }
    }
}
