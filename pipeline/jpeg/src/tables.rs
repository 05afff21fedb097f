//! The tables that apply to the next scan.

use crate::{
    Segment,
    huffman::HuffmanTable,
    quantization::{self, QuantizationTable},
    segment::marker,
};

/// Huffman and quantization tables; a later definition replaces an earlier one.
#[derive(Default)]
pub(crate) struct Tables {
    dc: [Option<HuffmanTable>; 4],
    ac: [Option<HuffmanTable>; 4],
    quantization: [Option<QuantizationTable>; 4],
    /// MCUs between two restart markers; 0 for none.
    pub(crate) restart_interval: usize,
}

impl Tables {
    pub(crate) fn update(&mut self, segment: &Segment<'_>) {
        match segment.marker {
            marker::HUFFMAN => self.read_huffman_tables(segment.content),
            marker::QUANTIZATION => {
                for (number, table) in quantization::read(segment.content) {
                    if let Some(slot) = self.quantization.get_mut(number) {
                        *slot = Some(table);
                    }
                }
            }
            marker::RESTART_INTERVAL => {
                let interval = segment.content.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
                self.restart_interval = interval.into();
            }
            _ => {}
        }
    }

    fn read_huffman_tables(&mut self, mut content: &[u8]) {
        while let Some((class, after)) = content.split_first()
            && let Some((counts, after)) = after.split_first_chunk()
            && let Some((symbols, after)) =
                after.split_at_checked(counts.iter().map(|count: &u8| usize::from(*count)).sum())
        {
            let tables = if class >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            if let Some(table) = tables.get_mut(usize::from(class & 15)) {
                *table = HuffmanTable::new(counts, symbols);
            }
            content = after;
        }
    }

    /// Returns the Huffman table for DC coefficients.
    pub(crate) fn dc(&self, number: u8) -> Option<&HuffmanTable> {
        self.dc.get(usize::from(number))?.as_ref()
    }

    /// Returns the Huffman table for AC coefficients.
    pub(crate) fn ac(&self, number: u8) -> Option<&HuffmanTable> {
        self.ac.get(usize::from(number))?.as_ref()
    }

    pub(crate) fn quantization(&self, number: usize) -> Option<&QuantizationTable> {
        self.quantization.get(number)?.as_ref()
    }
}
