//! Splits vectors into upsert requests within Pinecone's limits.

use crate::wire::Vector;

/// Vectors per request, as Pinecone recommends.
const MAX_VECTORS: usize = 100;

/// Bytes per request; Pinecone accepts 2 MB.
const MAX_BYTES: usize = 1_900_000;

/// Returns the batches, in order.
pub(crate) fn upsert_batches(vectors: &[Vector]) -> Vec<&[Vector]> {
    let mut batches = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (n, vector) in vectors.iter().enumerate() {
        let more = max_json_bytes(vector);
        if n > from && (n - from == MAX_VECTORS || bytes + more > MAX_BYTES) {
            batches.push(&vectors[from..n]);
            (from, bytes) = (n, 0);
        }
        bytes += more;
    }
    if from < vectors.len() {
        batches.push(&vectors[from..]);
    }
    batches
}

/// Returns an upper bound of the vector's size in JSON: a number has at most 16 characters with its comma.
fn max_json_bytes(vector: &Vector) -> usize {
    vector.values.len() * 16 + vector.id.len() * 2 + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(count: usize, dimensions: usize) -> Vec<Vector> {
        let id = "person1#0ujtsYcgvSTl8PAuAdqWYSMnLOv#0".parse().expect("vector ID");
        (0..count).map(|_| Vector::new(&id, vec![-1.234_567_9e-38; dimensions])).collect()
    }

    fn sizes(vectors: &[Vector]) -> Vec<usize> {
        upsert_batches(vectors).iter().map(|batch| batch.len()).collect()
    }

    #[test]
    fn no_request_has_too_many_vectors() {
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&vectors(100, 8)), [100]);
        assert_eq!(sizes(&vectors(250, 8)), [100, 100, 50]);
    }

    #[test]
    fn no_request_is_too_large() {
        let vectors = vectors(100, 4096);
        let batches = upsert_batches(&vectors);
        assert!(batches.len() > 1);
        for batch in &batches {
            assert!(serde_json::to_vec(batch).expect("JSON").len() < 2_000_000);
        }
        assert_eq!(sizes(&vectors).iter().sum::<usize>(), 100);
    }
}
