//! What changes an index.

use serde_json::{Value, json};

use super::{
    body::Body,
    checks::{MOST_VECTORS, fitting, metadata, named, space},
    refusal::Refusal,
    vectors::{Record, Vectors, Write},
};

/// Puts vectors where they are, or writes over them.
pub(super) fn upsert(vectors: &mut Vectors, mut body: Body) -> Result<Value, Refusal> {
    let namespace = space(body.text("namespace")?)?;
    let list = body.list("vectors")?.unwrap_or_default();
    body.finish()?;
    match list.len() {
        0 => return Err(Refusal::argument("No vectors to upsert")),
        1..=MOST_VECTORS => {}
        count => {
            return Err(Refusal::argument(format!("Request size {count} exceeds the limit of {MOST_VECTORS} vectors")));
        }
    }
    let records: Vec<_> = list.into_iter().map(|vector| record(vectors, vector)).collect::<Result<_, _>>()?;
    let count = records.len();
    for (id, record) in records {
        vectors.write(&namespace, Write::Upsert(id, record));
    }
    Ok(json!({ "upsertedCount": count }))
}

fn record(vectors: &Vectors, vector: Value) -> Result<(String, Record), Refusal> {
    let mut vector = Body::of(vector)?;
    let id = named(vector.text("id")?.unwrap_or_default())?;
    if vector.take("sparseValues").is_some() {
        return Err(Refusal::beyond("sparseValues"));
    }
    let values = fitting(vectors, vector.numbers("values")?.unwrap_or_default())?;
    let metadata = metadata(vector.take("metadata"))?;
    vector.finish()?;
    Ok((id, Record { values, metadata }))
}

/// Changes a vector that is there.
pub(super) fn update(vectors: &mut Vectors, mut body: Body) -> Result<Value, Refusal> {
    let namespace = space(body.text("namespace")?)?;
    let id = named(body.text("id")?.unwrap_or_default())?;
    let values = body.numbers("values")?.map(|values| fitting(vectors, values)).transpose()?;
    let metadata = metadata(body.take("setMetadata"))?;
    body.finish()?;
    vectors.write(&namespace, Write::Update(id, values, metadata));
    Ok(json!({}))
}

/// Drops vectors.
pub(super) fn delete(vectors: &mut Vectors, mut body: Body) -> Result<Value, Refusal> {
    let namespace = space(body.text("namespace")?)?;
    let (ids, all) = (body.texts("ids")?.unwrap_or_default(), body.flag("deleteAll")?);
    body.finish()?;
    if ids.is_empty() != all {
        return Err(Refusal::argument("Either ids or deleteAll must be given, and not both"));
    }
    if ids.len() > MOST_VECTORS {
        let words = format!("Too many ids: {}, the limit is {MOST_VECTORS}", ids.len());
        return Err(Refusal::argument(words));
    }
    let ids: Vec<String> = ids.into_iter().map(named).collect::<Result<_, _>>()?;
    if !vectors.knows(&namespace) {
        return Err(Refusal::not_found("Namespace not found"));
    }
    vectors.write(&namespace, if all { Write::DeleteAll } else { Write::Delete(ids) });
    Ok(json!({}))
}
