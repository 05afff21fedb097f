//! Read operations: query, fetch, list, describe.

use serde_json::{Map, Value, json};

use super::{
    api_error::ApiError,
    request_body::RequestBody,
    validation::{MAX_VECTORS, parse_namespace, parse_values, parse_vector_id},
    vectors::{Record, Vectors},
};

/// The largest `topK`.
const MAX_TOP_K: u64 = 10_000;

/// The largest page of a listing.
const MAX_LISTED: usize = 100;

/// Returns the nearest vectors.
pub(super) fn nearest(vectors: &mut Vectors, mut body: RequestBody) -> Result<Value, ApiError> {
    let namespace = parse_namespace(body.text("namespace")?)?;
    let most = body.count("topK")?.unwrap_or_default();
    let (values, metadata) = (body.flag("includeValues")?, body.flag("includeMetadata")?);
    let (vector, id) = (body.numbers("vector")?, body.text("id")?);
    body.finish()?;
    if !(1..=MAX_TOP_K).contains(&most) {
        return Err(ApiError::invalid_argument(format!("topK must be between 1 and {MAX_TOP_K}, got {most}")));
    }
    let probe = match (vector, id) {
        (Some(vector), None) => Some(parse_values(vectors, vector)?),
        (None, Some(id)) => {
            vectors.visible(&namespace).and_then(|visible| visible.get(&id)).map(|found| found.values.clone())
        }
        _ => return Err(ApiError::invalid_argument("Either vector or id must be given, and not both")),
    };
    let visible = vectors.visible(&namespace).cloned().unwrap_or_default();
    let mut scored: Vec<(f32, &String, &Record)> = probe
        .iter()
        .flat_map(|probe| visible.iter().map(|(id, record)| (vectors.score(probe, &record.values), id, record)))
        .collect();
    scored.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    if vectors.metric == "euclidean" {
        scored.reverse();
    }
    let matches: Vec<Value> = scored
        .iter()
        .take(usize::try_from(most).unwrap_or(usize::MAX))
        .map(|(score, id, record)| {
            let mut found = json!({ "id": id, "score": score, "values": [] });
            if values {
                found["values"] = json!(record.values);
            }
            if metadata && !record.metadata.is_empty() {
                found["metadata"] = json!(record.metadata);
            }
            found
        })
        .collect();
    Ok(json!({ "results": [], "matches": matches, "namespace": namespace, "usage": { "readUnits": 5 } }))
}

/// Returns vectors by ID.
pub(super) fn fetch(vectors: &mut Vectors, parameters: Vec<(String, String)>) -> Result<Value, ApiError> {
    let (mut ids, mut namespace) = (Vec::new(), String::new());
    for (name, value) in parameters {
        match name.as_str() {
            "ids" => ids.push(parse_vector_id(value)?),
            "namespace" => namespace = parse_namespace(Some(value))?,
            _ => return Err(ApiError::invalid_argument(format!("{name}: Cannot find field."))),
        }
    }
    if ids.is_empty() || ids.len() > MAX_VECTORS {
        return Err(ApiError::invalid_argument(format!("Between 1 and {MAX_VECTORS} ids must be given")));
    }
    let mut found = Map::new();
    let visible = vectors.visible(&namespace);
    for id in ids {
        if let Some(record) = visible.and_then(|visible| visible.get(&id)) {
            let mut vector = json!({ "id": id, "values": record.values });
            if !record.metadata.is_empty() {
                vector["metadata"] = json!(record.metadata);
            }
            found.insert(id, vector);
        }
    }
    Ok(json!({ "vectors": found, "namespace": namespace, "usage": { "readUnits": 1 } }))
}

/// Returns a page of vector IDs.
pub(super) fn list(vectors: &mut Vectors, parameters: Vec<(String, String)>) -> Result<Value, ApiError> {
    let (mut prefix, mut namespace, mut after, mut limit) = (String::new(), String::new(), None, MAX_LISTED);
    for (name, value) in parameters {
        match name.as_str() {
            "prefix" => prefix = value,
            "namespace" => namespace = parse_namespace(Some(value))?,
            "paginationToken" => after = Some(parse_token(&value)?),
            "limit" => limit = value.parse().unwrap_or_default(),
            _ => return Err(ApiError::invalid_argument(format!("{name}: Cannot find field."))),
        }
    }
    if !(1..=MAX_LISTED).contains(&limit) {
        return Err(ApiError::invalid_argument(format!("limit must be between 1 and {MAX_LISTED}")));
    }
    let visible = vectors.visible(&namespace);
    let mut ids: Vec<&String> = visible
        .into_iter()
        .flat_map(|visible| visible.keys())
        .filter(|id| id.starts_with(&prefix) && after.as_ref().is_none_or(|after| *id > after))
        .take(limit + 1)
        .collect();
    let is_more = ids.len() > limit;
    ids.truncate(limit);
    let listed: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
    let mut answer = json!({ "vectors": listed, "namespace": namespace, "usage": { "readUnits": 1 } });
    if let (true, Some(last)) = (is_more, ids.last()) {
        answer["pagination"] = json!({ "next": token(last) });
    }
    Ok(answer)
}

/// Returns statistics of the index.
pub(super) fn describe(vectors: &mut Vectors, body: RequestBody) -> Result<Value, ApiError> {
    body.finish()?;
    let counts = vectors.counts();
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let namespaces: Map<String, Value> =
        counts.into_iter().map(|(name, count)| (name, json!({ "vectorCount": count }))).collect();
    Ok(json!({
        "namespaces": namespaces,
        "indexFullness": 0.0,
        "totalVectorCount": total,
        "dimension": vectors.dimension,
        "metric": vectors.metric,
        "vectorType": "dense",
    }))
}

/// Returns the pagination token that continues after this ID, in hex to make it opaque.
fn token(last: &str) -> String {
    last.bytes().map(|byte| format!("{byte:02x}")).collect::<String>() + "=="
}

fn parse_token(token: &str) -> Result<String, ApiError> {
    let digits = token.strip_suffix("==").unwrap_or_default().as_bytes();
    let bytes = digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let text = bytes.collect::<Option<Vec<u8>>>().and_then(|bytes| String::from_utf8(bytes).ok());
    text.filter(|text| !text.is_empty()).ok_or_else(|| ApiError::invalid_argument("Invalid pagination token"))
}
