//! How a camera was held.

use crate::raster::Raster;

/// EXIF's eight ways to store an upright picture, as what must be done to see it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Orientation {
    /// Rows and columns change places, before the mirrors.
    transposed: bool,
    /// Left and right change places.
    mirrored: bool,
    /// Top and bottom change places.
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

    /// Width and height as seen upright, or the other way round.
    pub(crate) fn upright_size(self, width: u32, height: u32) -> (u32, u32) {
        if self.transposed { (height, width) } else { (width, height) }
    }
}

impl Raster {
    pub(crate) fn upright(self, orientation: Orientation) -> Self {
        if orientation == Orientation::default() {
            return self;
        }
        let turn = match self.model.channels() {
            1 => turned::<1>,
            2 => turned::<2>,
            3 => turned::<3>,
            _ => turned::<4>,
        };
        let samples = turn(&self.samples, self.width as usize, self.height as usize, orientation);
        let (width, height) = orientation.upright_size(self.width, self.height);
        Raster { width, height, samples, ..self }
    }
}

fn turned<const CHANNELS: usize>(stored: &[u8], width: usize, height: usize, orientation: Orientation) -> Vec<u8> {
    let (stored, _) = stored.as_chunks::<CHANNELS>();
    // How far a step to the right, and a step down, leads in what is stored.
    let (right, down) = if orientation.transposed { (width, 1) } else { (1, width) };
    let (across, rows) = if orientation.transposed { (height, width) } else { (width, height) };
    let mut turned = vec![[0; CHANNELS]; stored.len()];
    for (y, row) in turned.chunks_exact_mut(across.max(1)).enumerate() {
        let first = if orientation.flipped { rows - 1 - y } else { y } * down;
        let pixels = stored[first..].iter().step_by(right).take(across);
        if orientation.mirrored {
            row.iter_mut().rev().zip(pixels).for_each(|(to, from)| *to = *from);
        } else {
            row.iter_mut().zip(pixels).for_each(|(to, from)| *to = *from);
        }
    }
    turned.into_flattened()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raster::Model;

    /// A letter with no symmetry, three wide and four high, as each orientation stores it.
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
    fn every_orientation_is_seen_upright() {
        let raster = |rows: &[&str]| Raster {
            width: rows[0].len() as u32,
            height: rows.len() as u32,
            model: Model::Rgb,
            samples: rows.concat().bytes().flat_map(|letter| [letter; 3]).collect(),
        };
        for (value, rows) in STORED {
            let orientation = Orientation::from_exif(value).expect("an orientation");
            assert_eq!(raster(rows).upright(orientation), raster(STORED[0].1), "orientation {value}");
        }
    }

    #[test]
    fn other_values_are_none() {
        assert_eq!(Orientation::from_exif(0), None);
        assert_eq!(Orientation::from_exif(9), None);
    }
}
