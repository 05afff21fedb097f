//! Write operations: upsert, update, delete.

use serde_json::{Value, json};

use super::{
    api_error::ApiError,
    request_body::RequestBody,
    validation::{MAX_VECTORS, metadata, parse_namespace, parse_values, parse_vector_id},
    vectors::{Record, Vectors, Write},
};

/// Inserts or replaces vectors.
pub(super) fn upsert(vectors: &mut Vectors, mut body: RequestBody) -> Result<Value, ApiError> {
    let namespace = parse_namespace(body.text("namespace")?)?;
    let list = body.list("vectors")?.unwrap_or_default();
    body.finish()?;
    match list.len() {
        0 => return Err(ApiError::invalid_argument("No vectors to upsert")),
        1..=MAX_VECTORS => {}
        count => {
            return Err(ApiError::invalid_argument(format!(
                "Request size {count} exceeds the limit of {MAX_VECTORS} vectors"
            )));
        }
    }
    let records: Vec<_> = list.into_iter().map(|vector| record(vectors, vector)).collect::<Result<_, _>>()?;
    let count = records.len();
    for (id, record) in records {
        vectors.write(&namespace, Write::Upsert(id, record));
    }
    Ok(json!({ "upsertedCount": count }))
}

fn record(vectors: &Vectors, vector: Value) -> Result<(String, Record), ApiError> {
    let mut vector = RequestBody::of(vector)?;
    let id = parse_vector_id(vector.text("id")?.unwrap_or_default())?;
    if vector.take("sparseValues").is_some() {
        return Err(ApiError::unimplemented("sparseValues"));
    }
    let values = parse_values(vectors, vector.numbers("values")?.unwrap_or_default())?;
    let metadata = metadata(vector.take("metadata"))?;
    vector.finish()?;
    Ok((id, Record { values, metadata }))
}

/// Changes an existing vector.
pub(super) fn update(vectors: &mut Vectors, mut body: RequestBody) -> Result<Value, ApiError> {
    let namespace = parse_namespace(body.text("namespace")?)?;
    let id = parse_vector_id(body.text("id")?.unwrap_or_default())?;
    let values = body.numbers("values")?.map(|values| parse_values(vectors, values)).transpose()?;
    let metadata = metadata(body.take("setMetadata"))?;
    body.finish()?;
    vectors.write(&namespace, Write::Update(id, values, metadata));
    Ok(json!({}))
}

/// Deletes vectors.
pub(super) fn delete(vectors: &mut Vectors, mut body: RequestBody) -> Result<Value, ApiError> {
    let namespace = parse_namespace(body.text("namespace")?)?;
    let (ids, all) = (body.texts("ids")?.unwrap_or_default(), body.flag("deleteAll")?);
    body.finish()?;
    if ids.is_empty() != all {
        return Err(ApiError::invalid_argument("Either ids or deleteAll must be given, and not both"));
    }
    if ids.len() > MAX_VECTORS {
        let message = format!("Too many ids: {}, the limit is {MAX_VECTORS}", ids.len());
        return Err(ApiError::invalid_argument(message));
    }
    let ids: Vec<String> = ids.into_iter().map(parse_vector_id).collect::<Result<_, _>>()?;
    if !vectors.has_namespace(&namespace) {
        return Err(ApiError::not_found("Namespace not found"));
    }
    vectors.write(&namespace, if all { Write::DeleteAll } else { Write::Delete(ids) });
    Ok(json!({}))
}
