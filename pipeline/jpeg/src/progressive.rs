//! Progressive images (T.81 annex G): coefficients are collected over all scans, then transformed to samples.

use crate::{
    coefficients::{CoefficientBlock, Coefficients},
    huffman::{AcToken, BitReader, HuffmanTable},
    scan::{BlockReader, Scan, ScanComponent, ScanKind, SpectralBand},
};

/// Decodes the blocks of one progressive scan into coefficients.
pub(crate) struct ProgressiveReader<'a> {
    components: &'a [ScanComponent<'a>],
    kind: ScanKind,
    /// Coefficients of all components of the frame.
    coefficients: &'a mut [Coefficients],
    /// For each component of the scan, the DC coefficient of the previous block.
    dc_predictors: Vec<i32>,
    /// Number of following blocks whose band has ended (EOBRUN).
    eob_run: u32,
}

impl<'a> ProgressiveReader<'a> {
    pub(crate) fn new(scan: &'a Scan<'a>, coefficients: &'a mut [Coefficients]) -> Self {
        let dc_predictors = vec![0; scan.components.len()];
        Self { components: &scan.components, kind: scan.kind, coefficients, dc_predictors, eob_run: 0 }
    }
}

impl BlockReader for ProgressiveReader<'_> {
    fn restart(&mut self) {
        self.dc_predictors.fill(0);
        self.eob_run = 0;
    }

    #[inline]
    fn read(&mut self, bits: &mut BitReader<'_>, component: usize, (column, row): (usize, usize)) -> Option<()> {
        let scanned = &self.components[component];
        let mut block = self.coefficients[scanned.component].block(column, row)?;
        match self.kind {
            ScanKind::Sequential => None,
            ScanKind::DcFirst { shift } => {
                let predictor = &mut self.dc_predictors[component];
                *predictor = predictor.wrapping_add(scanned.dc()?.read_dc_difference(bits)?);
                *block.get(0)? = (*predictor << shift) as i16;
                Some(())
            }
            ScanKind::DcRefine { shift } => {
                *block.get(0)? |= (bits.read(1) << shift) as i16;
                Some(())
            }
            ScanKind::AcFirst(band) => read_ac_first(bits, scanned.ac()?, &mut self.eob_run, &mut block, band),
            ScanKind::AcRefine(band) => read_ac_refine(bits, scanned.ac()?, &mut self.eob_run, &mut block, band),
        }
    }
}

/// Reads the first scan of a band of AC coefficients (T.81 G.1.2.2).
#[inline]
fn read_ac_first(
    bits: &mut BitReader<'_>,
    table: &HuffmanTable,
    eob_run: &mut u32,
    block: &mut CoefficientBlock<'_>,
    band: SpectralBand,
) -> Option<()> {
    let SpectralBand { start, end, shift } = band;
    if *eob_run > 0 {
        *eob_run -= 1;
        return Some(());
    }
    let mut at = start;
    while at <= end {
        match table.read_ac(bits)? {
            AcToken::Coefficient { run, value } => {
                at += usize::from(run);
                if at > 63 {
                    return None;
                }
                block.set(at, value << shift);
                at += 1;
            }
            AcToken::Run(15) => at += 16,
            AcToken::Run(size) => {
                *eob_run = (1 << size) - 1 + bits.read(size.into());
                break;
            }
        }
    }
    Some(())
}

/// Reads a refinement scan of a band of AC coefficients (T.81 G.1.2.3): one correction bit for each coefficient that is nonzero
/// already, between the coefficients that become nonzero.
fn read_ac_refine(
    bits: &mut BitReader<'_>,
    table: &HuffmanTable,
    eob_run: &mut u32,
    block: &mut CoefficientBlock<'_>,
    band: SpectralBand,
) -> Option<()> {
    let SpectralBand { start, end, shift } = band;
    let up_to = |number: usize| u64::MAX >> (63 - number);
    let mut left = up_to(end) >> start << start;
    while *eob_run == 0 && left != 0 {
        let (run, value) = match table.read_ac(bits)? {
            // Only the sign counts, whatever magnitude is stored.
            AcToken::Coefficient { run, value } => (run, Some(if value > 0 { 1 } else { -1 } << shift)),
            AcToken::Run(15) => (15, None),
            AcToken::Run(size) => {
                *eob_run = (1 << size) + bits.read(size.into());
                break;
            }
        };
        let mut zeros = left & !*block.nonzero;
        for _ in 0..run {
            zeros &= zeros.wrapping_sub(1);
        }
        let new = zeros & zeros.wrapping_neg();
        let before = if new == 0 { left } else { left & (new - 1) };
        refine(bits, block, before & *block.nonzero, shift);
        if let Some(value) = value {
            if new == 0 {
                return None;
            }
            block.set(new.trailing_zeros() as usize, value);
        }
        left &= !(before | new);
    }
    if *eob_run > 0 {
        refine(bits, block, left & *block.nonzero, shift);
        *eob_run -= 1;
    }
    Some(())
}

/// Reads one correction bit for each of these coefficients: whether its magnitude grows by one step.
#[inline]
fn refine(bits: &mut BitReader<'_>, block: &mut CoefficientBlock<'_>, mut numbers: u64, shift: u32) {
    while numbers != 0 {
        let count = numbers.count_ones().min(16);
        let corrections = bits.read(count);
        for bit in (0..count).rev() {
            let number = numbers.trailing_zeros() as usize;
            numbers &= numbers - 1;
            if corrections >> bit & 1 == 1
                && let Some(value) = block.get(number)
            {
                *value = value.wrapping_add(if *value > 0 { 1 } else { -1 } << shift);
            }
        }
    }
}
