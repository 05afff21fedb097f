//! Vectors in requests of a size that the service takes.

use crate::wire::Vector;

/// So many vectors a request are what Pinecone recommends.
const VECTORS: usize = 100;

/// What a request may weigh; Pinecone takes 2 MB.
const BYTES: usize = 1_900_000;

/// What these are written in, in order.
pub(crate) fn batches(vectors: &[Vector]) -> Vec<&[Vector]> {
    let mut batches = Vec::new();
    let (mut from, mut weight) = (0, 0);
    for (place, vector) in vectors.iter().enumerate() {
        let more = weigh(vector);
        if place > from && (place - from == VECTORS || weight + more > BYTES) {
            batches.push(&vectors[from..place]);
            (from, weight) = (place, 0);
        }
        weight += more;
    }
    if from < vectors.len() {
        batches.push(&vectors[from..]);
    }
    batches
}

/// At most so many bytes: a number has no more than 16 characters with its comma.
fn weigh(vector: &Vector) -> usize {
    vector.values.len() * 16 + vector.id.len() * 2 + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(count: usize, dimensions: usize) -> Vec<Vector> {
        let name = "person1#0ujtsYcgvSTl8PAuAdqWYSMnLOv#0".parse().expect("a name");
        (0..count).map(|_| Vector::new(&name, vec![-1.234_567_9e-38; dimensions])).collect()
    }

    fn sizes(vectors: &[Vector]) -> Vec<usize> {
        batches(vectors).iter().map(|batch| batch.len()).collect()
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
        let batches = batches(&vectors);
        assert!(batches.len() > 1);
        for batch in &batches {
            assert!(serde_json::to_vec(batch).expect("JSON").len() < 2_000_000);
        }
        assert_eq!(sizes(&vectors).iter().sum::<usize>(), 100);
    }
}
