//! The Rekognition face collection.

use sparks_domain::PersonId;

use super::{Doctor, MISSING, RUN_SETUP};
use crate::{error::AwsError, retry::with_retry, setup::face_collection::face_count};

/// Faces per page of `ListFaces`, as Rekognition limits them.
const PAGE: i32 = 4096;

impl Doctor {
    /// Checks that the collection exists and has no face of a person number above `counter`, the last allocated one: such a
    /// number would be allocated to a second person.
    pub async fn face_collection(&mut self, name: &str, counter: u32) {
        let subject = format!("Rekognition collection {name}");
        let client = self.connection.rekognition();
        match face_count(&client, name).await {
            Ok(Some(0)) if counter > 0 => {
                let observation = format!("has no faces, but {counter} persons were allocated");
                return self.fail(
                    subject,
                    observation,
                    "run `sparks redecide --apply` with these settings to enroll all persons",
                );
            }
            Ok(Some(count)) => self.ok(&subject, format!("faces: {count}")),
            Ok(None) => return self.fail(subject, MISSING, RUN_SETUP),
            Err(error) if error.is_access_denied() => {
                return self.fail(subject, &error, "grant rekognition:DescribeCollection to the worker's role");
            }
            Err(error) => {
                let remedy = "check that the service can be reached: network, aws.region, aws.endpoints.rekognition";
                return self.fail(subject, &error, remedy);
            }
        }
        let subject = format!("persons of Rekognition collection {name}");
        match self.highest_person(name).await {
            Ok(Some(highest)) if highest.number() > counter => {
                let observation = format!("has faces of {highest}, but the last allocated person number is {counter}");
                let remedy =
                    "the number would be allocated to another person; adopt existing persons with `sparks adopt`";
                self.fail(subject, observation, remedy);
            }
            Ok(_) => self.ok(subject, format!("none above the last allocated person number, {counter}")),
            Err(error) => self.unchecked(subject, &error, "rekognition:ListFaces"),
        }
    }

    /// Returns the person with the highest number in the collection.
    async fn highest_person(&self, name: &str) -> Result<Option<PersonId>, AwsError> {
        let (client, mut next, mut highest) = (self.connection.rekognition(), None::<String>, None);
        loop {
            let list = || client.list_faces().collection_id(name).max_results(PAGE).set_next_token(next.clone()).send();
            let answer = with_retry(list).await?;
            let persons = answer.faces().iter().filter_map(|face| face.external_image_id()?.parse::<PersonId>().ok());
            highest = persons.max().max(highest);
            match answer.next_token() {
                Some(token) if !token.is_empty() => next = Some(token.to_owned()),
                _ => return Ok(highest),
            }
        }
    }
}
