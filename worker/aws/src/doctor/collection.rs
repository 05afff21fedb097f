//! The collection of faces.

use sparks_domain::PersonId;

use super::{Doctor, SET_UP};
use crate::{
    setup::collection::faces,
    trouble::{Trouble, patiently},
};

/// Faces that one answer lists.
const PAGE: i32 = 4096;

impl Doctor {
    /// Whether the collection is there, and knows nobody whose number will be given to somebody else: with this the last
    /// number given out.
    pub async fn collection(&mut self, name: &str, counter: u32) {
        let what = format!("Rekognition collection {name}");
        let client = self.connection.rekognition();
        match faces(&client, name).await {
            Ok(Some(0)) if counter > 0 => {
                let seen = format!("it knows nobody, and {counter} persons were numbered");
                return self.fail(what, seen, "`sparks redecide --apply` with these settings teaches it everybody");
            }
            Ok(Some(count)) => self.ok(&what, format!("faces: {count}")),
            Ok(None) => return self.fail(what, "it is not there", SET_UP),
            Err(trouble) if trouble.is_forbidden() => {
                return self.fail(what, &trouble, "grant rekognition:DescribeCollection to the worker's role");
            }
            Err(trouble) => {
                let remedy = "see that the service can be reached: network, aws.region, aws.endpoints.rekognition";
                return self.fail(what, &trouble, remedy);
            }
        }
        let what = format!("persons of Rekognition collection {name}");
        match self.highest(name).await {
            Ok(Some(highest)) if highest.number() > counter => {
                let seen = format!("it knows {highest}, and the last number given out is {counter}");
                let remedy = "somebody else would get that number: `sparks adopt` takes over who is known";
                self.fail(what, seen, remedy);
            }
            Ok(_) => self.ok(what, "nobody whose number is still to be given out"),
            Err(trouble) => self.unseen(what, &trouble, "rekognition:ListFaces"),
        }
    }

    /// The person with the highest number.
    async fn highest(&self, name: &str) -> Result<Option<PersonId>, Trouble> {
        let (client, mut next, mut highest) = (self.connection.rekognition(), None::<String>, None);
        loop {
            let list = || client.list_faces().collection_id(name).max_results(PAGE).set_next_token(next.clone()).send();
            let answer = patiently(list).await?;
            let persons = answer.faces().iter().filter_map(|face| face.external_image_id()?.parse::<PersonId>().ok());
            highest = persons.max().max(highest);
            match answer.next_token() {
                Some(token) if !token.is_empty() => next = Some(token.to_owned()),
                _ => return Ok(highest),
            }
        }
    }
}
