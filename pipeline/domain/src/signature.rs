//! Signatures: quantised face embeddings, one byte per dimension.

/// A quantised embedding. Matching uses the bytes, so every worker and every rebuild computes the same similarity.
/// It deliberately has no serde implementation: biometric data must not enter the log or an API.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature(Box<[i8]>);

impl Signature {
    /// Returns the signature of an embedding; `None` if it has no direction (empty, all zero, or not finite).
    pub fn quantise(vector: &[f32]) -> Option<Self> {
        let longest = vector.iter().fold(0.0_f32, |longest, x| longest.max(x.abs()));
        if !longest.is_finite() || longest == 0.0 || vector.iter().any(|x| x.is_nan()) {
            return None;
        }
        Some(Self(vector.iter().map(|x| (x / longest * 127.0).round() as i8).collect()))
    }

    /// Returns the signature with these stored bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.iter().any(|b| *b != 0).then(|| Self(bytes.iter().map(|b| b.cast_signed()).collect()))
    }

    /// Returns the bytes to store.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().map(|b| b.cast_unsigned()).collect()
    }

    /// Returns the dimensions.
    pub fn as_slice(&self) -> &[i8] {
        &self.0
    }

    /// Returns the unit vector in the same direction, for services that use floating point.
    pub fn to_unit(&self) -> Vec<f32> {
        let length = f64::from(dot_self(&self.0)).sqrt();
        self.0.iter().map(|x| (f64::from(*x) / length) as f32).collect()
    }

    /// Returns the cosine similarity to another signature; 0 if the number of dimensions differs.
    pub fn similarity(&self, other: &Self) -> f32 {
        if self.0.len() != other.0.len() {
            return 0.0;
        }
        let dot = f64::from(dot(&self.0, &other.0));
        let norms = f64::from(dot_self(&self.0)) * f64::from(dot_self(&other.0));
        (dot / norms.sqrt()) as f32
    }
}

impl std::fmt::Debug for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signature({} dimensions)", self.0.len())
    }
}

/// Returns the dot product. The search spends nearly all its time here, so it is written for automatic vectorization: products of two
/// 16-bit numbers, summed in blocks, become one instruction for eight of them.
#[inline]
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    const BLOCK: usize = 16;
    let product = |a: i8, b: i8| i32::from(i16::from(a)) * i32::from(i16::from(b));
    let ((blocks_a, rest_a), (blocks_b, rest_b)) = (a.as_chunks::<BLOCK>(), b.as_chunks::<BLOCK>());
    let mut sum = 0;
    for (a, b) in blocks_a.iter().zip(blocks_b) {
        let mut of_block = 0;
        for n in 0..BLOCK {
            of_block += product(a[n], b[n]);
        }
        sum += of_block;
    }
    sum + rest_a.iter().zip(rest_b).map(|(a, b)| product(*a, *b)).sum::<i32>()
}

#[inline]
pub(crate) fn dot_self(a: &[i8]) -> i32 {
    dot(a, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarity_is_the_cosine() {
        let of = |v: &[f32]| Signature::quantise(v).expect("a direction");
        assert_eq!(of(&[3.0, 4.0]).similarity(&of(&[6.0, 8.0])), 1.0);
        assert_eq!(of(&[1.0, 0.0]).similarity(&of(&[0.0, 1.0])), 0.0);
        assert!((of(&[1.0, 0.0]).similarity(&of(&[1.0, 1.0])) - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-3);
        assert_eq!(of(&[1.0]).similarity(&of(&[1.0, 1.0])), 0.0);
        let there_and_back = Signature::from_bytes(&of(&[-1.0, 0.5]).to_bytes());
        assert_eq!(there_and_back, Some(of(&[-1.0, 0.5])));
    }

    #[test]
    fn unit_vector_has_the_same_direction() {
        let signature = Signature::quantise(&[3.0, -4.0]).expect("a direction");
        let unit = signature.to_unit();
        assert!((unit.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-6);
        assert_eq!(Signature::quantise(&unit), Some(signature));
    }

    #[test]
    fn vector_without_direction_has_no_signature() {
        for nothing in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY]] {
            assert_eq!(Signature::quantise(nothing), None);
        }
    }
}
