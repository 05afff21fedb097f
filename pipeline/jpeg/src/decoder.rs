//! Decodes a file to planes.

use crate::{
    Error, FrameHeader, Plane, Segment,
    block::{BLOCK_SIZE, Block, positions},
    coefficients::Coefficients,
    frame::read_frame_header,
    idct::InverseDct,
    progressive::ProgressiveReader,
    quantization::QuantizationTable,
    scan::{Scan, ScanComponent},
    segment::{marker, segments},
    sequential::{ComponentDecoder, SequentialReader},
    tables::Tables,
};

/// A decoded image, at full size or smaller.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedJpeg {
    /// The colour space of the planes.
    pub colour_space: ColourSpace,
    /// One plane per component. The plane of a subsampled component is smaller.
    pub planes: Vec<Plane>,
}

/// The colour space of an image's planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourSpace {
    /// Luminance.
    Grey,
    /// Luminance, blue and red chrominance.
    YCbCr,
    /// Red, green, blue.
    Rgb,
    /// Inverted cyan, magenta, yellow, black: 0 is full ink.
    Cmyk,
    /// Inverted CMY as YCbCr, and inverted black.
    Ycck,
}

/// Decodes the image at `scale_num / 8` of its size (scaled IDCT), 1 to 8; the size of each plane is rounded up.
///
/// Memory and CPU are the caller's to bound before: see [`FrameHeader::decoder_memory`] and [`crate::count_scans`].
pub fn decode(file: &[u8], scale_num: u32) -> Result<DecodedJpeg, Error> {
    let frame = read_frame_header(file)?;
    let scale_num = scale_num.clamp(1, 8) as usize;
    #[cfg(feature = "turbo")]
    if let Some(decoded) = crate::turbo::decode(file, &frame, scale_num) {
        return Ok(decoded);
    }
    let mut decoder = Decoder::new(&frame, scale_num);
    for segment in segments(file) {
        decoder.process_segment(&segment)?;
    }
    decoder.finish()
}

/// The state of decoding one file, segment by segment.
struct Decoder<'a> {
    frame: &'a FrameHeader,
    idct: InverseDct,
    positions: [u8; BLOCK_SIZE],
    tables: Tables,
    colour_markers: ColourMarkers,
    planes: Vec<Plane>,
    /// Coefficients of all components; empty unless the image is progressive.
    coefficients: Vec<Coefficients>,
    /// The quantization table of each component, set by the first scan that contains it.
    quantization: Vec<Option<QuantizationTable>>,
}

/// The markers that determine the colour space.
#[derive(Default)]
struct ColourMarkers {
    jfif: bool,
    /// The colour transform of Adobe's APP14 segment.
    adobe: Option<u8>,
}

impl<'a> Decoder<'a> {
    fn new(frame: &'a FrameHeader, side: usize) -> Self {
        let (columns, rows) = frame.mcus();
        let components = frame.components();
        let coefficients = if frame.progressive { components } else { &[] };
        Self {
            frame,
            idct: InverseDct::new(side),
            positions: positions(side),
            tables: Tables::default(),
            colour_markers: ColourMarkers::default(),
            planes: components.iter().map(|component| Plane::new(frame, component, side)).collect(),
            coefficients: coefficients
                .iter()
                .map(|component| Coefficients::new(columns * component.h, rows * component.v, side))
                .collect(),
            quantization: vec![None; components.len()],
        }
    }

    fn process_segment(&mut self, segment: &Segment<'_>) -> Result<(), Error> {
        self.colour_markers.update(segment);
        if segment.marker == marker::START_OF_SCAN {
            return self.decode_scan(segment);
        }
        self.tables.update(segment);
        Ok(())
    }

    fn decode_scan(&mut self, segment: &Segment<'_>) -> Result<(), Error> {
        let Self { frame, idct, positions, tables, planes, coefficients, quantization, .. } = self;
        let scan = Scan::read(segment.content, frame, tables).ok_or_else(|| damaged("a scan lacks its tables"))?;
        for &ScanComponent { component, .. } in &scan.components {
            let table = &mut quantization[component];
            if table.is_some() && !frame.progressive {
                return Err(damaged("it has a component in two scans"));
            }
            let number = frame.components()[component].quantization;
            *table = table.or(tables.quantization(number).copied());
            if table.is_none() {
                return Err(damaged("a component lacks its quantization table"));
            }
        }
        let interval = tables.restart_interval;
        let completeness = if frame.progressive {
            let mut reader = ProgressiveReader::new(&scan, coefficients);
            scan.decode(segment.rest, interval, &mut reader)
        } else {
            let mut free: Vec<Option<&mut Plane>> = planes.iter_mut().map(Some).collect();
            let decoders = scan.components.iter().map(|scanned| {
                let (dc, ac) = (scanned.dc()?, scanned.ac()?);
                let plane = free[scanned.component].take()?;
                let quantization = quantization[scanned.component].as_ref()?;
                Some(ComponentDecoder { dc, ac, quantization, plane, dc_predictor: 0 })
            });
            let decoders = decoders.collect::<Option<Vec<_>>>().ok_or_else(|| damaged("a scan lacks its tables"))?;
            let mut reader = SequentialReader { idct, positions, decoders, block: Block::default() };
            scan.decode(segment.rest, interval, &mut reader)
        };
        completeness.check()
    }

    fn finish(mut self) -> Result<DecodedJpeg, Error> {
        let tables: Option<Vec<QuantizationTable>> = self.quantization.iter().copied().collect();
        let tables = tables.ok_or_else(|| damaged("it lacks a component"))?;
        let side = self.idct.side();
        for ((plane, coefficients), table) in self.planes.iter_mut().zip(self.coefficients.drain(..)).zip(&tables) {
            coefficients.for_each(side, table, |at, block| plane.put_block(at, side, &self.idct.samples(block)));
        }
        Ok(DecodedJpeg { colour_space: self.colour_markers.colour_space(self.frame), planes: self.planes })
    }
}

impl ColourMarkers {
    fn update(&mut self, segment: &Segment<'_>) {
        match (segment.marker, segment.content) {
            (marker::APP0, [b'J', b'F', b'I', b'F', 0, ..]) => self.jfif = true,
            (marker::APP14, [b'A', b'd', b'o', b'b', b'e', _, _, _, _, _, _, transform, ..]) => {
                self.adobe = Some(*transform);
            }
            _ => {}
        }
    }

    /// Returns the colour space by the rules that libjpeg applies.
    fn colour_space(&self, frame: &FrameHeader) -> ColourSpace {
        let ids = frame.components().iter().map(|component| component.id);
        match (frame.component_count(), self.adobe) {
            (1, _) => ColourSpace::Grey,
            (4, Some(2)) => ColourSpace::Ycck,
            (4, _) => ColourSpace::Cmyk,
            (_, Some(0)) if !self.jfif => ColourSpace::Rgb,
            (_, None) if !self.jfif && ids.eq(*b"RGB") => ColourSpace::Rgb,
            _ => ColourSpace::YCbCr,
        }
    }
}

fn damaged(what: &str) -> Error {
    Error::Damaged(format!("the JPEG is damaged: {what}; upload another copy"))
}
