//! Sequential images: every block is transformed to samples as soon as it is read.

use crate::{
    block::{BLOCK_SIZE, Block},
    huffman::{AcToken, BitReader, HuffmanTable},
    idct::InverseDct,
    plane::Plane,
    quantization::QuantizationTable,
    scan::BlockReader,
};

/// Decodes the blocks of a sequential scan into planes.
pub(crate) struct SequentialReader<'a> {
    pub(crate) idct: &'a InverseDct,
    /// The position in a block of each coefficient, in zigzag order.
    pub(crate) positions: &'a [u8; BLOCK_SIZE],
    pub(crate) decoders: Vec<ComponentDecoder<'a>>,
    pub(crate) block: Block,
}

/// The tables and the plane of one component of the scan.
pub(crate) struct ComponentDecoder<'a> {
    pub(crate) dc: &'a HuffmanTable,
    pub(crate) ac: &'a HuffmanTable,
    pub(crate) quantization: &'a QuantizationTable,
    pub(crate) plane: &'a mut Plane,
    /// The DC coefficient of the previous block.
    pub(crate) dc_predictor: i32,
}

impl BlockReader for SequentialReader<'_> {
    fn restart(&mut self) {
        self.decoders.iter_mut().for_each(|decoder| decoder.dc_predictor = 0);
    }

    #[inline]
    fn read(&mut self, bits: &mut BitReader<'_>, component: usize, at: (usize, usize)) -> Option<()> {
        let decoder = &mut self.decoders[component];
        self.block.clear();
        decoder.read(bits, self.positions, &mut self.block)?;
        decoder.plane.put_block(at, self.idct.side(), &self.idct.samples(&self.block));
        Some(())
    }
}

impl ComponentDecoder<'_> {
    #[inline(always)]
    fn read(&mut self, bits: &mut BitReader<'_>, positions: &[u8; BLOCK_SIZE], block: &mut Block) -> Option<()> {
        self.dc_predictor = self.dc_predictor.wrapping_add(self.dc.read_dc_difference(bits)?);
        block.set(0, 0, self.dc_predictor.wrapping_mul(self.quantization[0].into()) as i16);
        let mut at = 1;
        while at < BLOCK_SIZE {
            match self.ac.read_ac(bits)? {
                AcToken::Coefficient { run, value } => {
                    at += usize::from(run);
                    let factor = self.quantization.get(at)?;
                    block.set(positions[at].into(), at, value.wrapping_mul(*factor));
                    at += 1;
                }
                AcToken::Run(15) => at += 16,
                AcToken::Run(_) => break,
            }
        }
        Some(())
    }
}
