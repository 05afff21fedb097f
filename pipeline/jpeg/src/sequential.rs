//! Pictures told in one pass: every block becomes samples as soon as it is read.

use crate::{
    block::{Block, FREQUENCIES},
    huffman::{Bits, Huffman, Next},
    plane::Plane,
    quantization::Quantization,
    scan::Blocks,
    transform::Transform,
};

/// The planes that a scan paints.
pub(crate) struct Sequential<'a> {
    pub(crate) transform: &'a Transform,
    /// For each frequency in the file's order, where it lies in a block.
    pub(crate) places: &'a [u8; FREQUENCIES],
    pub(crate) canvases: Vec<Canvas<'a>>,
    pub(crate) block: Block,
}

/// One of them.
pub(crate) struct Canvas<'a> {
    pub(crate) dc: &'a Huffman,
    pub(crate) ac: &'a Huffman,
    pub(crate) quantization: &'a Quantization,
    pub(crate) plane: &'a mut Plane,
    /// That of the block before.
    pub(crate) mean: i32,
}

impl Blocks for Sequential<'_> {
    fn restart(&mut self) {
        self.canvases.iter_mut().for_each(|canvas| canvas.mean = 0);
    }

    #[inline]
    fn read(&mut self, bits: &mut Bits<'_>, part: usize, at: (usize, usize)) -> Option<()> {
        let canvas = &mut self.canvases[part];
        self.block.clear();
        canvas.read(bits, self.places, &mut self.block)?;
        canvas.plane.put(at, self.transform.side(), &self.transform.samples(&self.block));
        Some(())
    }
}

impl Canvas<'_> {
    #[inline(always)]
    fn read(&mut self, bits: &mut Bits<'_>, places: &[u8; FREQUENCIES], block: &mut Block) -> Option<()> {
        self.mean = self.mean.wrapping_add(self.dc.difference(bits)?);
        block.set(0, 0, self.mean.wrapping_mul(self.quantization[0].into()) as i16);
        let mut at = 1;
        while at < FREQUENCIES {
            match self.ac.next(bits)? {
                Next::Value { zeros, value } => {
                    at += usize::from(zeros);
                    let factor = self.quantization.get(at)?;
                    block.set(places[at].into(), at, value.wrapping_mul(*factor));
                    at += 1;
                }
                Next::Zeros(15) => at += 16,
                Next::Zeros(_) => break,
            }
        }
        Some(())
    }
}
