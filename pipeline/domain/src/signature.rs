//! What a face looks like to a model: a direction in space, one byte a dimension.

/// A quantised unit vector. Matching works on the bytes, so every replica and every rebuild sees the same similarity.
/// Deliberately absent: serde. A signature is biometric and must not slip into the log or an API.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature(Box<[i8]>);

impl Signature {
    /// The signature in this direction; `None` where there is none (empty, all zero, or not finite).
    pub fn quantise(vector: &[f32]) -> Option<Self> {
        let longest = vector.iter().fold(0.0_f32, |longest, x| longest.max(x.abs()));
        if !longest.is_finite() || longest == 0.0 || vector.iter().any(|x| x.is_nan()) {
            return None;
        }
        Some(Self(vector.iter().map(|x| (x / longest * 127.0).round() as i8).collect()))
    }

    /// The signature with these bytes, as a store kept them.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.iter().any(|b| *b != 0).then(|| Self(bytes.iter().map(|b| b.cast_signed()).collect()))
    }

    /// The bytes a store keeps.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().map(|b| b.cast_unsigned()).collect()
    }

    /// The dimensions.
    pub fn as_slice(&self) -> &[i8] {
        &self.0
    }

    /// The same direction as a vector of length one, for what computes in floating point.
    pub fn to_unit(&self) -> Vec<f32> {
        let length = f64::from(dot_self(&self.0)).sqrt();
        self.0.iter().map(|x| (f64::from(*x) / length) as f32).collect()
    }

    /// The cosine of the angle to another signature: 1 is the same, 0 is unrelated. Nothing is like what has other dimensions.
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

/// The search is this and little else, so it is written the way that every processor does several at once.
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    const LANES: usize = 16;
    let product = |a: &i8, b: &i8| i32::from(i16::from(*a) * i16::from(*b));
    let ((chunks_a, rest_a), (chunks_b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0; LANES];
    for (a, b) in chunks_a.iter().zip(chunks_b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += product(a, b);
        }
    }
    sums.iter().sum::<i32>() + rest_a.iter().zip(rest_b).map(|(a, b)| product(a, b)).sum::<i32>()
}

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
    fn a_unit_vector_points_the_same_way() {
        let signature = Signature::quantise(&[3.0, -4.0]).expect("a direction");
        let unit = signature.to_unit();
        assert!((unit.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-6);
        assert_eq!(Signature::quantise(&unit), Some(signature));
    }

    #[test]
    fn no_direction_is_no_signature() {
        for nothing in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY]] {
            assert_eq!(Signature::quantise(nothing), None);
        }
    }
}
