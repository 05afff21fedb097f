//! The state that encoded macroblocks leave for the next ones.

use crate::{predict::Neighbours, source::corner};

/// The state along one edge of a macroblock, above or to the left.
#[derive(Debug, Clone)]
pub(crate) struct Border {
    pub(crate) y: [u8; 16],
    pub(crate) uv: [[u8; 8]; 2],
    /// Whether the nearest block of each column or row has coefficients: four of luma, two and two of chroma, Y2.
    pub(crate) coded: [u8; 9],
    pub(crate) modes: [u8; 4],
    /// Diffused quantization errors of chroma DC, by plane.
    pub(crate) errors: [[i8; 2]; 2],
}

impl Border {
    fn new(pixel: u8) -> Self {
        Self { y: [pixel; 16], uv: [[pixel; 8]; 2], coded: [0; 9], modes: [0; 4], errors: [[0; 2]; 2] }
    }
}

/// The borders above each column and to the left, and the corner pixels between.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) above: Vec<Border>,
    pub(crate) left: Border,
    corners: (u8, [u8; 2]),
    pub(crate) column: usize,
    pub(crate) row: usize,
}

impl Context {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            above: vec![Border::new(127); columns],
            left: Border::new(129),
            corners: (127, [127; 2]),
            column: 0,
            row: 0,
        }
    }

    pub(crate) fn start_row(&mut self, row: usize) {
        self.row = row;
        self.column = 0;
        self.left = Border::new(129);
    }

    pub(crate) fn above(&self) -> &Border {
        &self.above[self.column]
    }

    pub(crate) fn luma(&self) -> Neighbours<16> {
        Neighbours {
            above: (self.row > 0).then_some(self.above().y),
            left: (self.column > 0).then_some(self.left.y),
            corner: corner(self.column, self.row, || self.corners.0),
        }
    }

    pub(crate) fn chroma(&self, plane: usize) -> Neighbours<8> {
        Neighbours {
            above: (self.row > 0).then_some(self.above().uv[plane]),
            left: (self.column > 0).then_some(self.left.uv[plane]),
            corner: corner(self.column, self.row, || self.corners.1[plane]),
        }
    }

    /// Returns the four pixels above and to the right.
    pub(crate) fn above_right(&self) -> [u8; 4] {
        match self.above.get(self.column + 1) {
            _ if self.row == 0 => [127; 4],
            Some(next) => [next.y[0], next.y[1], next.y[2], next.y[3]],
            None => [self.above().y[15]; 4],
        }
    }

    /// Advances to the next macroblock.
    pub(crate) fn advance(&mut self, below: Border, right: Border) {
        let above = std::mem::replace(&mut self.above[self.column], below);
        self.corners = (above.y[15], [above.uv[0][7], above.uv[1][7]]);
        self.left = right;
        self.column += 1;
    }
}
