//! What clients can ask for, each read strictly and then done.

mod collections;
mod compare;
mod detect;
mod faces;
mod index;
mod search;

use std::time::Duration;

use serde_json::Value;

use crate::{looker::Looker, members::Members, model::Model, refusal::Refusal, shelf::Shelf, signing::Caller};

/// What operations work with.
pub struct Desk {
    pub looker: Looker,
    pub model: Model,
    pub shelf: Shelf,
}

/// The circumstances of one request.
pub struct Circumstances {
    pub caller: Caller,
    pub visibility_delay: Duration,
}

/// An operation with its input.
trait Operation: Sized {
    /// Reads the input; members that are left over are refused by whoever calls this.
    fn read(members: &mut Members) -> Result<Self, Refusal>;

    /// Does it.
    fn perform(self, desk: &Desk, circumstances: &Circumstances) -> Result<Value, Refusal>;
}

/// An operation that is known by its name.
#[derive(Clone, Copy)]
pub struct Named {
    pub name: &'static str,
    /// Whether it decodes photos, which takes a core for a while.
    pub looks: bool,
    run: fn(&Desk, &Circumstances, &[u8]) -> Result<Value, Refusal>,
}

const OPERATIONS: [Named; 11] = [
    named::<collections::CreateCollection>("CreateCollection", false),
    named::<collections::DeleteCollection>("DeleteCollection", false),
    named::<collections::DescribeCollection>("DescribeCollection", false),
    named::<collections::ListCollections>("ListCollections", false),
    named::<compare::CompareFaces>("CompareFaces", true),
    named::<detect::DetectFaces>("DetectFaces", true),
    named::<faces::DeleteFaces>("DeleteFaces", false),
    named::<faces::ListFaces>("ListFaces", false),
    named::<index::IndexFaces>("IndexFaces", true),
    named::<search::SearchFaces>("SearchFaces", false),
    named::<search::SearchFacesByImage>("SearchFacesByImage", true),
];

const fn named<O: Operation>(name: &'static str, looks: bool) -> Named {
    Named { name, looks, run: run::<O> }
}

fn run<O: Operation>(desk: &Desk, circumstances: &Circumstances, body: &[u8]) -> Result<Value, Refusal> {
    let mut members = Members::of(body)?;
    let operation = O::read(&mut members)?;
    members.end()?;
    operation.perform(desk, circumstances)
}

impl Named {
    /// The operation with this name.
    pub fn find(name: &str) -> Option<Self> {
        OPERATIONS.into_iter().find(|operation| operation.name == name)
    }

    /// Does it.
    pub fn run(self, desk: &Desk, circumstances: &Circumstances, body: &[u8]) -> Result<Value, Refusal> {
        (self.run)(desk, circumstances, body)
    }
}
