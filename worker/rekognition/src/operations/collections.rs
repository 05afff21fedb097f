//! Making, describing, listing and deleting collections.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Circumstances, Desk, Operation};
use crate::{collection::Collection, fields, members::Members, refusal::Refusal, signing::Caller, token};

/// So many are listed where nobody says how many.
const PAGE: usize = 1000;
/// What tokens of this list are bound to.
const LIST: &str = "collections";

/// The name of a collection in all of the cloud. There is no account here, so it has none's number.
fn resource(caller: &Caller, id: &str) -> String {
    format!("aws:rekognition:{}:000000000000:collection/{id}", caller.region)
}

pub struct CreateCollection {
    id: String,
    tags: BTreeMap<String, String>,
}

impl Operation for CreateCollection {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self { id: fields::collection(members)?, tags: fields::tags(members)?.into_iter().collect() })
    }

    fn perform(self, desk: &Desk, circumstances: &Circumstances) -> Result<Value, Refusal> {
        let arn = resource(&circumstances.caller, &self.id);
        let created = jiff::Timestamp::now().as_millisecond() as f64 / 1000.0;
        desk.shelf.create(Collection { id: self.id, created, tags: self.tags, faces: BTreeMap::new() })?;
        Ok(json!({ "StatusCode": 200, "CollectionArn": arn, "FaceModelVersion": desk.model.version() }))
    }
}

pub struct DeleteCollection {
    id: String,
}

impl Operation for DeleteCollection {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self { id: fields::collection(members)? })
    }

    fn perform(self, desk: &Desk, _: &Circumstances) -> Result<Value, Refusal> {
        desk.shelf.delete(&self.id)?;
        Ok(json!({ "StatusCode": 200 }))
    }
}

pub struct DescribeCollection {
    id: String,
}

impl Operation for DescribeCollection {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self { id: fields::collection(members)? })
    }

    fn perform(self, desk: &Desk, circumstances: &Circumstances) -> Result<Value, Refusal> {
        let arn = format!("arn:{}", resource(&circumstances.caller, &self.id));
        desk.shelf.ask(&self.id, |collection| {
            json!({
                "FaceCount": collection.faces.len(),
                "FaceModelVersion": desk.model.version(),
                "CollectionARN": arn,
                "CreationTimestamp": collection.created,
                "UserCount": 0,
            })
        })
    }
}

pub struct ListCollections {
    token: Option<String>,
    most: usize,
}

impl Operation for ListCollections {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self { token: fields::token(members)?, most: fields::page(members)?.unwrap_or(PAGE) })
    }

    fn perform(self, desk: &Desk, _: &Circumstances) -> Result<Value, Refusal> {
        let after = self.token.map(|token| token::read(LIST, &token)).transpose()?;
        let (page, more) = desk.shelf.names(after, self.most);
        let names: Vec<&String> = page.iter().map(|(_, name)| name).collect();
        let versions = vec![desk.model.version(); page.len()];
        let mut answer = json!({ "CollectionIds": names, "FaceModelVersions": versions });
        if let Some((last, _)) = page.last().filter(|_| more) {
            answer["NextToken"] = token::write(LIST, *last).into();
        }
        Ok(answer)
    }
}
