//! What a file tells about how its scans are to be read, as of the last segment seen.

use crate::{
    Segment,
    huffman::Huffman,
    quantization::{self, Quantization},
    segment::marker,
};

/// Later tables take the place of earlier ones.
#[derive(Default)]
pub(crate) struct Tables {
    dc: [Option<Huffman>; 4],
    ac: [Option<Huffman>; 4],
    quantization: [Option<Quantization>; 4],
    /// Units between two restarts; 0 where there are none.
    pub(crate) restart_interval: usize,
}

impl Tables {
    pub(crate) fn see(&mut self, segment: &Segment<'_>) {
        match segment.marker {
            marker::HUFFMAN => self.learn_codes(segment.content),
            marker::QUANTIZATION => {
                for (number, table) in quantization::read(segment.content) {
                    if let Some(known) = self.quantization.get_mut(number) {
                        *known = Some(table);
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

    fn learn_codes(&mut self, mut content: &[u8]) {
        while let Some((class, after)) = content.split_first()
            && let Some((counts, after)) = after.split_first_chunk()
            && let Some((symbols, after)) =
                after.split_at_checked(counts.iter().map(|count: &u8| usize::from(*count)).sum())
        {
            let tables = if class >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            if let Some(table) = tables.get_mut(usize::from(class & 15)) {
                *table = Huffman::new(counts, symbols);
            }
            content = after;
        }
    }

    /// Of the means of blocks.
    pub(crate) fn dc(&self, number: u8) -> Option<&Huffman> {
        self.dc.get(usize::from(number))?.as_ref()
    }

    /// Of everything else.
    pub(crate) fn ac(&self, number: u8) -> Option<&Huffman> {
        self.ac.get(usize::from(number))?.as_ref()
    }

    pub(crate) fn quantization(&self, number: usize) -> Option<&Quantization> {
        self.quantization.get(number)?.as_ref()
    }
}
