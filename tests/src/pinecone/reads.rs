//! What an index can be asked.

use serde_json::{Map, Value, json};

use super::{
    body::Body,
    checks::{MOST_VECTORS, fitting, named, space},
    refusal::Refusal,
    vectors::{Record, Vectors},
};

/// How many vectors may be asked for.
const MOST_NEAREST: u64 = 10_000;

/// How many names a page may have.
const MOST_LISTED: usize = 100;

/// The nearest vectors.
pub(super) fn nearest(vectors: &mut Vectors, mut body: Body) -> Result<Value, Refusal> {
    let namespace = space(body.text("namespace")?)?;
    let most = body.count("topK")?.unwrap_or_default();
    let (values, metadata) = (body.flag("includeValues")?, body.flag("includeMetadata")?);
    let (vector, id) = (body.numbers("vector")?, body.text("id")?);
    body.finish()?;
    if !(1..=MOST_NEAREST).contains(&most) {
        return Err(Refusal::argument(format!("topK must be between 1 and {MOST_NEAREST}, got {most}")));
    }
    let probe = match (vector, id) {
        (Some(vector), None) => Some(fitting(vectors, vector)?),
        (None, Some(id)) => {
            vectors.shown(&namespace).and_then(|shown| shown.get(&id)).map(|found| found.values.clone())
        }
        _ => return Err(Refusal::argument("Either vector or id must be given, and not both")),
    };
    let shown = vectors.shown(&namespace).cloned().unwrap_or_default();
    let mut scored: Vec<(f32, &String, &Record)> = probe
        .iter()
        .flat_map(|probe| shown.iter().map(|(id, record)| (vectors.score(probe, &record.values), id, record)))
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

/// Vectors by their names.
pub(super) fn fetch(vectors: &mut Vectors, parameters: Vec<(String, String)>) -> Result<Value, Refusal> {
    let (mut ids, mut namespace) = (Vec::new(), String::new());
    for (name, value) in parameters {
        match name.as_str() {
            "ids" => ids.push(named(value)?),
            "namespace" => namespace = space(Some(value))?,
            _ => return Err(Refusal::argument(format!("{name}: Cannot find field."))),
        }
    }
    if ids.is_empty() || ids.len() > MOST_VECTORS {
        return Err(Refusal::argument(format!("Between 1 and {MOST_VECTORS} ids must be given")));
    }
    let mut found = Map::new();
    let shown = vectors.shown(&namespace);
    for id in ids {
        if let Some(record) = shown.and_then(|shown| shown.get(&id)) {
            let mut vector = json!({ "id": id, "values": record.values });
            if !record.metadata.is_empty() {
                vector["metadata"] = json!(record.metadata);
            }
            found.insert(id, vector);
        }
    }
    Ok(json!({ "vectors": found, "namespace": namespace, "usage": { "readUnits": 1 } }))
}

/// Names of vectors, a page of them.
pub(super) fn list(vectors: &mut Vectors, parameters: Vec<(String, String)>) -> Result<Value, Refusal> {
    let (mut prefix, mut namespace, mut after, mut limit) = (String::new(), String::new(), None, MOST_LISTED);
    for (name, value) in parameters {
        match name.as_str() {
            "prefix" => prefix = value,
            "namespace" => namespace = space(Some(value))?,
            "paginationToken" => after = Some(token_end(&value)?),
            "limit" => limit = value.parse().unwrap_or_default(),
            _ => return Err(Refusal::argument(format!("{name}: Cannot find field."))),
        }
    }
    if !(1..=MOST_LISTED).contains(&limit) {
        return Err(Refusal::argument(format!("limit must be between 1 and {MOST_LISTED}")));
    }
    let shown = vectors.shown(&namespace);
    let mut ids: Vec<&String> = shown
        .into_iter()
        .flat_map(|shown| shown.keys())
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

/// What the index is like.
pub(super) fn describe(vectors: &mut Vectors, body: Body) -> Result<Value, Refusal> {
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

/// What goes on after this name. Nobody but us needs to read it, so it is in another alphabet.
fn token(last: &str) -> String {
    last.bytes().map(|byte| format!("{byte:02x}")).collect::<String>() + "=="
}

fn token_end(token: &str) -> Result<String, Refusal> {
    let digits = token.strip_suffix("==").unwrap_or_default().as_bytes();
    let bytes = digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let text = bytes.collect::<Option<Vec<u8>>>().and_then(|bytes| String::from_utf8(bytes).ok());
    text.filter(|text| !text.is_empty()).ok_or_else(|| Refusal::argument("Invalid pagination token"))
}
