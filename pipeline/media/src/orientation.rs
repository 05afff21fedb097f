//! The EXIF orientation of a photo.

use crate::raster::Raster;

/// One of EXIF's eight orientations, as the steps that turn the stored image upright.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Orientation {
    /// Swaps rows and columns, before the mirrors.
    transposed: bool,
    /// Swaps left and right.
    mirrored: bool,
    /// Swaps top and bottom.
    flipped: bool,
}

impl Orientation {
    pub(crate) fn from_exif(value: u32) -> Option<Self> {
        let (transposed, mirrored, flipped) = match value {
            1 => (false, false, false),
            2 => (false, true, false),
            3 => (false, true, true),
            4 => (false, false, true),
            5 => (true, false, false),
            6 => (true, true, false),
            7 => (true, true, true),
            8 => (true, false, true),
            _ => return None,
        };
        Some(Self { transposed, mirrored, flipped })
    }

    /// Converts between the stored and the upright size, in both directions.
    pub(crate) fn upright_size(self, width: u32, height: u32) -> (u32, u32) {
        if self.transposed { (height, width) } else { (width, height) }
    }
}

impl Raster {
    pub(crate) fn orient(self, orientation: Orientation) -> Self {
        if orientation == Orientation::default() {
            return self;
        }
        let reorder = match self.model.channels() {
            1 => reorder::<1>,
            2 => reorder::<2>,
            3 => reorder::<3>,
            _ => reorder::<4>,
        };
        let samples = reorder(&self.samples, self.width as usize, self.height as usize, orientation);
        let (width, height) = orientation.upright_size(self.width, self.height);
        Raster { width, height, samples, ..self }
    }
}

fn reorder<const CHANNELS: usize>(stored: &[u8], width: usize, height: usize, orientation: Orientation) -> Vec<u8> {
    let (stored, _) = stored.as_chunks::<CHANNELS>();
    // Offsets in the stored image of one step to the right and one step down in the upright one.
    let (right, down) = if orientation.transposed { (width, 1) } else { (1, width) };
    let (columns, rows) = if orientation.transposed { (height, width) } else { (width, height) };
    let mut upright = vec![[0; CHANNELS]; stored.len()];
    for (y, row) in upright.chunks_exact_mut(columns.max(1)).enumerate() {
        let first = if orientation.flipped { rows - 1 - y } else { y } * down;
        let pixels = stored[first..].iter().step_by(right).take(columns);
        if orientation.mirrored {
            row.iter_mut().rev().zip(pixels).for_each(|(to, from)| *to = *from);
        } else {
            row.iter_mut().zip(pixels).for_each(|(to, from)| *to = *from);
        }
    }
    upright.into_flattened()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raster::ColourModel;

    /// A letter without symmetry, three wide and four high, as each orientation stores it.
    const STORED: [(u32, &[&str]); 8] = [
        (1, &["###", "#..", "##.", "#.."]),
        (2, &["###", "..#", ".##", "..#"]),
        (3, &["..#", ".##", "..#", "###"]),
        (4, &["#..", "##.", "#..", "###"]),
        (5, &["####", "#.#.", "#..."]),
        (6, &["#...", "#.#.", "####"]),
        (7, &["...#", ".#.#", "####"]),
        (8, &["####", ".#.#", "...#"]),
    ];

    #[test]
    fn every_orientation_becomes_upright() {
        let raster = |rows: &[&str]| Raster {
            width: rows[0].len() as u32,
            height: rows.len() as u32,
            model: ColourModel::Rgb,
            samples: rows.concat().bytes().flat_map(|letter| [letter; 3]).collect(),
        };
        for (value, rows) in STORED {
            let orientation = Orientation::from_exif(value).expect("an orientation");
            assert_eq!(raster(rows).orient(orientation), raster(STORED[0].1), "orientation {value}");
        }
    }

    #[test]
    fn other_values_are_rejected() {
        assert_eq!(Orientation::from_exif(0), None);
        assert_eq!(Orientation::from_exif(9), None);
    }
}
