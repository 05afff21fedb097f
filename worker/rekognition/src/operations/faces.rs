//! Listing and deleting the faces of a collection.

use std::{collections::BTreeSet, ops::Bound};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Circumstances, Desk, Operation};
use crate::{
    collection::Collection,
    fields,
    members::Members,
    model::Model,
    refusal::{Kind, Refusal},
    token,
};

/// So many are listed where nobody says how many.
const PAGE: usize = 1000;

pub struct ListFaces {
    collection: String,
    token: Option<String>,
    most: usize,
    user: Option<String>,
    only: Option<BTreeSet<Uuid>>,
}

impl Operation for ListFaces {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        Ok(Self {
            collection: fields::collection(members)?,
            token: fields::token(members)?,
            most: fields::page(members)?.unwrap_or(PAGE),
            user: fields::user(members)?,
            only: fields::faces(members)?.map(|faces| faces.into_iter().collect()),
        })
    }

    fn perform(self, desk: &Desk, _: &Circumstances) -> Result<Value, Refusal> {
        let list = format!("faces of {}", self.collection);
        let after = self.token.as_ref().map(|token| token::read(&list, token));
        desk.shelf.ask(&self.collection, |collection| {
            // Faces belong to nobody here.
            if let Some(user) = &self.user {
                return Err(Refusal::new(Kind::ResourceNotFound, format!("The user id: {user} does not exist")));
            }
            Ok(self.page(collection, after.transpose()?, &list, &desk.model))
        })?
    }
}

impl ListFaces {
    fn page(&self, collection: &Collection, after: Option<Uuid>, list: &str, model: &Model) -> Value {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let wanted = |id: &Uuid| self.only.as_ref().is_none_or(|only| only.contains(id));
        let mut behind = collection.faces.range((from, Bound::Unbounded)).filter(|(id, _)| wanted(id));
        let page: Vec<_> = behind.by_ref().take(self.most).collect();
        let faces: Vec<Value> = page.iter().map(|(id, face)| face.describe(**id, model)).collect();
        let mut answer = json!({ "Faces": faces, "FaceModelVersion": model.version() });
        if let (Some((last, _)), true) = (page.last(), behind.next().is_some()) {
            answer["NextToken"] = token::write(list, **last).into();
        }
        answer
    }
}

pub struct DeleteFaces {
    collection: String,
    faces: Vec<Uuid>,
}

impl Operation for DeleteFaces {
    fn read(members: &mut Members) -> Result<Self, Refusal> {
        let (collection, faces) = (fields::collection(members)?, fields::faces(members)?);
        Ok(Self { collection, faces: members.required("FaceIds", faces)? })
    }

    fn perform(self, desk: &Desk, _: &Circumstances) -> Result<Value, Refusal> {
        let deleted = desk.shelf.remove(&self.collection, &self.faces)?;
        let others: BTreeSet<&Uuid> = self.faces.iter().filter(|face| !deleted.contains(face)).collect();
        let failed: Vec<Value> = others
            .into_iter()
            .map(|face| json!({ "FaceId": face.to_string(), "Reasons": ["FACE_NOT_FOUND"] }))
            .collect();
        let deleted: Vec<String> = deleted.iter().map(Uuid::to_string).collect();
        Ok(json!({ "DeletedFaces": deleted, "UnsuccessfulFaceDeletions": failed }))
    }
}
