//! The source pixels of a macroblock (16x16).

use crate::{
    planes::Planes,
    predict::Neighbours,
    simd::{Blocks8, gather},
};

/// The source pixels of a macroblock, as blocks.
pub(crate) struct SourceMacroblock {
    pub(crate) blocks: [[u8; 16]; 16],
    pub(crate) luma: [Blocks8; 2],
    pub(crate) chroma: Blocks8,
}

impl SourceMacroblock {
    pub(crate) fn read(planes: &Planes, column: usize, row: usize) -> Self {
        let luma_block =
            |n: usize| block(&planes.y, planes.columns * 16, column * 16 + n % 4 * 4, row * 16 + n / 4 * 4);
        let chroma_block = |n: usize| {
            let plane = if n < 4 { &planes.u } else { &planes.v };
            block(plane, planes.columns * 8, column * 8 + n % 2 * 4, row * 8 + n / 2 % 2 * 4)
        };
        let blocks: [[u8; 16]; 16] = std::array::from_fn(luma_block);
        let chroma: [[u8; 16]; 8] = std::array::from_fn(chroma_block);
        Self {
            luma: [0, 8].map(|first| gather(std::array::from_fn(|n| &blocks[first + n]))),
            chroma: gather(std::array::from_fn(|n| &chroma[n])),
            blocks,
        }
    }

    /// Returns whether all luma pixels are equal.
    pub(crate) fn is_flat(&self) -> bool {
        let first = self.blocks[0][0];
        self.blocks.iter().flatten().all(|pixel| *pixel == first)
    }
}

fn block(plane: &[u8], stride: usize, x: usize, y: usize) -> [u8; 16] {
    let mut block = [0; 16];
    for (n, row) in block.chunks_exact_mut(4).enumerate() {
        row.copy_from_slice(&plane[(y + n) * stride + x..][..4]);
    }
    block
}

/// Returns the source pixels around a macroblock: luma, and both chroma planes.
pub(crate) fn source_neighbours(planes: &Planes, column: usize, row: usize) -> (Neighbours<16>, [Neighbours<8>; 2]) {
    let chroma = [&planes.u, &planes.v].map(|plane| neighbours::<8>(plane, planes.columns * 8, column * 8, row * 8));
    (neighbours::<16>(&planes.y, planes.columns * 16, column * 16, row * 16), chroma)
}

fn neighbours<const N: usize>(plane: &[u8], stride: usize, x: usize, y: usize) -> Neighbours<N> {
    let above = (y > 0).then(|| std::array::from_fn(|n| plane[(y - 1) * stride + x + n]));
    let left = (x > 0).then(|| std::array::from_fn(|n| plane[(y + n) * stride + x - 1]));
    Neighbours { above, left, corner: corner(x, y, || plane[(y - 1) * stride + x - 1]) }
}

/// Returns the pixel above and to the left, or the value of RFC 6386, section 12.2, outside the image.
pub(crate) fn corner(x: usize, y: usize, pixel: impl FnOnce() -> u8) -> u8 {
    match (x, y) {
        (_, 0) => 127,
        (0, _) => 129,
        _ => pixel(),
    }
}
