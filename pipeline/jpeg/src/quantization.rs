//! How coarse each frequency of a colour is.

use crate::block::FREQUENCIES;

/// Factors in the file's order.
pub(crate) type Quantization = [i16; FREQUENCIES];

/// The tables of a segment, by their numbers, as far as it is whole.
pub(crate) fn read(mut content: &[u8]) -> Vec<(usize, Quantization)> {
    let mut tables = Vec::new();
    while let Some((kind, after)) = content.split_first() {
        let bytes = if kind >> 4 == 0 { 1 } else { 2 };
        let Some((factors, after)) = after.split_at_checked(bytes * FREQUENCIES) else { break };
        let mut table = [0; FREQUENCIES];
        for (factor, bytes) in table.iter_mut().zip(factors.chunks_exact(bytes)) {
            let wide = bytes.iter().fold(0_u16, |wide, byte| wide << 8 | u16::from(*byte));
            *factor = i16::try_from(wide).unwrap_or(i16::MAX);
        }
        tables.push((usize::from(kind & 15), table));
        content = after;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_one_byte_or_two() {
        let narrow = [&[1][..], &[7; 64]].concat();
        let wide = [&[0x12][..], &[0x01, 0x02].repeat(64), &[0xff]].concat();
        let tables = read(&[narrow, wide].concat());
        assert_eq!(tables, [(1, [7; 64]), (2, [0x0102; 64])]);
        assert!(read(&[0; 64]).is_empty());
    }
}
