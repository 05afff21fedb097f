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
        let channels = self.model.channels();
        let (stored_width, stored_height) = (self.width as usize, self.height as usize);
        let (width, height) = orientation.upright_size(self.width, self.height);
        let mut samples = Vec::with_capacity(self.samples.len());
        for y in 0..height as usize {
            for x in 0..width as usize {
                let (x, y) = (
                    if orientation.mirrored { width as usize - 1 - x } else { x },
                    if orientation.flipped { height as usize - 1 - y } else { y },
                );
                let (x, y) = if orientation.transposed { (y, x) } else { (x, y) };
                debug_assert!(x < stored_width && y < stored_height);
                let at = (y * stored_width + x) * channels;
                samples.extend_from_slice(&self.samples[at..at + channels]);
            }
        }
        Raster { width, height, samples, ..self }
    }
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
