//! Quantization tables (T.81 B.2.4.1).

use crate::block::BLOCK_SIZE;

/// Quantization factors in zigzag order.
pub(crate) type QuantizationTable = [i16; BLOCK_SIZE];

/// Reads the tables of a DQT segment with their numbers, up to the first that is truncated.
pub(crate) fn read(mut content: &[u8]) -> Vec<(usize, QuantizationTable)> {
    let mut tables = Vec::new();
    while let Some((kind, after)) = content.split_first() {
        let bytes = if kind >> 4 == 0 { 1 } else { 2 };
        let Some((factors, after)) = after.split_at_checked(bytes * BLOCK_SIZE) else { break };
        let mut table = [0; BLOCK_SIZE];
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
