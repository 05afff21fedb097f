//! From a file to planes.

use crate::{
    Error, Frame, Plane, Segment,
    block::{Block, FREQUENCIES, places},
    coefficients::Coefficients,
    frame::frame,
    progressive::Progressive,
    quantization::Quantization,
    scan::Scan,
    segment::{marker, segments},
    sequential::{Canvas, Sequential},
    tables::Tables,
    transform::Transform,
};

/// A picture, smaller than the file's or as large.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// What the planes are.
    pub colours: Colours,
    /// One for each colour. Where a colour is stored with fewer samples than others, its plane is smaller.
    pub planes: Vec<Plane>,
}

/// What the numbers in a picture's planes stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// How light.
    Grey,
    /// How light, how blue, how red.
    YCbCr,
    /// Red, green, blue.
    Rgb,
    /// What inks leave of the paper: cyan, magenta, yellow, black.
    Cmyk,
    /// The first three inks as how light, how blue, how red; and black.
    Ycck,
}

/// The picture in so many eighths of its size, 1 to 8: each plane has as many of its samples, rounded up.
///
/// The frame says how much memory that takes, [`crate::scans`] how often the file goes over the picture: ask before.
pub fn decode(file: &[u8], eighths: u32) -> Result<Picture, Error> {
    let frame = frame(file)?;
    let eighths = eighths.clamp(1, 8) as usize;
    #[cfg(feature = "turbo")]
    if let Some(picture) = crate::turbo::decode(file, &frame, eighths) {
        return Ok(picture);
    }
    let mut decoder = Decoder::new(&frame, eighths);
    for segment in segments(file) {
        decoder.see(&segment)?;
    }
    decoder.finish()
}

/// Goes along with the segments of a file.
struct Decoder<'a> {
    frame: &'a Frame,
    transform: Transform,
    places: [u8; FREQUENCIES],
    tables: Tables,
    hints: Hints,
    planes: Vec<Plane>,
    /// Where several passes go over the picture.
    coefficients: Vec<Coefficients>,
    /// For each component its factors, as of the first scan it is in.
    factors: Vec<Option<Quantization>>,
}

/// What a file says about its colours.
#[derive(Default)]
struct Hints {
    jfif: bool,
    /// Adobe's number for how colours were changed before they were stored.
    adobe: Option<u8>,
}

impl<'a> Decoder<'a> {
    fn new(frame: &'a Frame, side: usize) -> Self {
        let (across, down) = frame.units();
        let components = frame.components();
        let coefficients = if frame.progressive { components } else { &[] };
        Self {
            frame,
            transform: Transform::new(side),
            places: places(side),
            tables: Tables::default(),
            hints: Hints::default(),
            planes: components.iter().map(|component| Plane::of_frame(frame, component, side)).collect(),
            coefficients: coefficients
                .iter()
                .map(|component| Coefficients::new(across * component.across, down * component.down, side))
                .collect(),
            factors: vec![None; components.len()],
        }
    }

    fn see(&mut self, segment: &Segment<'_>) -> Result<(), Error> {
        self.hints.see(segment);
        if segment.marker == marker::START_OF_SCAN {
            return self.scan(segment);
        }
        self.tables.see(segment);
        Ok(())
    }

    fn scan(&mut self, segment: &Segment<'_>) -> Result<(), Error> {
        let Self { frame, transform, places, tables, planes, coefficients, factors, .. } = self;
        let scan = Scan::read(segment.content, frame, tables).ok_or_else(|| damaged("a scan lacks its tables"))?;
        for part in &scan.parts {
            let known = &mut factors[part.component];
            if known.is_some() && !frame.progressive {
                return Err(damaged("it tells a colour twice"));
            }
            let number = frame.components()[part.component].quantization;
            *known = known.or(tables.quantization(number).copied());
            if known.is_none() {
                return Err(damaged("a colour lacks its quantization table"));
            }
        }
        let interval = tables.restart_interval;
        let tally = if frame.progressive {
            let means = vec![0; scan.parts.len()];
            let mut blocks = Progressive { parts: &scan.parts, pass: scan.pass, coefficients, means, idle: 0 };
            scan.walk(segment.rest, interval, &mut blocks)
        } else {
            let mut free: Vec<Option<&mut Plane>> = planes.iter_mut().map(Some).collect();
            let canvases = scan.parts.iter().map(|part| {
                let (dc, ac) = (part.dc()?, part.ac()?);
                let plane = free[part.component].take()?;
                Some(Canvas { dc, ac, quantization: factors[part.component].as_ref()?, plane, mean: 0 })
            });
            let canvases = canvases.collect::<Option<Vec<_>>>().ok_or_else(|| damaged("a scan lacks its tables"))?;
            let mut blocks = Sequential { transform, places, canvases, block: Block::default() };
            scan.walk(segment.rest, interval, &mut blocks)
        };
        tally.judge()
    }

    fn finish(mut self) -> Result<Picture, Error> {
        let factors: Option<Vec<Quantization>> = self.factors.iter().copied().collect();
        let factors = factors.ok_or_else(|| damaged("it lacks a colour"))?;
        let side = self.transform.side();
        for ((plane, coefficients), factors) in self.planes.iter_mut().zip(self.coefficients.drain(..)).zip(&factors) {
            coefficients.for_each(side, factors, |at, block| plane.put(at, side, &self.transform.samples(block)));
        }
        Ok(Picture { colours: self.hints.colours(self.frame), planes: self.planes })
    }
}

impl Hints {
    fn see(&mut self, segment: &Segment<'_>) {
        match (segment.marker, segment.content) {
            (marker::APP0, [b'J', b'F', b'I', b'F', 0, ..]) => self.jfif = true,
            (marker::APP14, [b'A', b'd', b'o', b'b', b'e', _, _, _, _, _, _, transform, ..]) => {
                self.adobe = Some(*transform);
            }
            _ => {}
        }
    }

    /// As everybody else takes them.
    fn colours(&self, frame: &Frame) -> Colours {
        let ids = frame.components().iter().map(|component| component.id);
        match (frame.colours(), self.adobe) {
            (1, _) => Colours::Grey,
            (4, Some(2)) => Colours::Ycck,
            (4, _) => Colours::Cmyk,
            (_, Some(0)) if !self.jfif => Colours::Rgb,
            (_, None) if !self.jfif && ids.eq(*b"RGB") => Colours::Rgb,
            _ => Colours::YCbCr,
        }
    }
}

fn damaged(what: &str) -> Error {
    Error::Damaged(format!("the JPEG is damaged: {what}; take another copy"))
}
