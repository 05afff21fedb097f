//! Bit costs, in 256ths of a bit.

use std::sync::LazyLock;

use crate::{BANDS, ZIGZAG, tables::INTRA4_MODE_PROBABILITIES, tokens::Probabilities};

/// Costs that do not depend on adaptive probabilities.
pub(crate) struct FixedCosts {
    /// Cost of a 0, by its probability of 256.
    bit: [u16; 256],
    /// Cost of the sign and the extra bits of a level.
    level: Vec<u16>,
    /// Cost of the 16x16 modes, including the choice of 16x16.
    pub(crate) intra16: [i64; 4],
    /// Cost of the choice of 4x4.
    pub(crate) is_intra4: i64,
    pub(crate) chroma: [i64; 4],
    /// Cost of the 4x4 modes, by the mode above and the mode to the left.
    pub(crate) intra4: [[[u16; 10]; 10]; 10],
}

pub(crate) static FIXED_COSTS: LazyLock<FixedCosts> = LazyLock::new(FixedCosts::new);

impl FixedCosts {
    fn new() -> Self {
        let bit: [u16; 256] = std::array::from_fn(|p| (256.0 * (256.0 / p.max(1) as f64).log2()).min(1792.0) as u16);
        let cost = |is_one: bool, p: u8| bit_cost(&bit, is_one, p);
        let wide = |is_one, p| i64::from(cost(is_one, p));
        let intra16 = wide(true, 145);
        Self {
            level: (0..2048).map(|level| extra_bits(level).map(|(bit, p)| cost(bit, p)).sum::<u16>()).collect(),
            intra16: [
                intra16 + wide(false, 156) + wide(false, 163),
                intra16 + wide(true, 156) + wide(true, 128),
                intra16 + wide(false, 156) + wide(true, 163),
                intra16 + wide(true, 156) + wide(false, 128),
            ],
            is_intra4: wide(false, 145),
            chroma: [
                wide(false, 142),
                wide(true, 142) + wide(true, 114) + wide(true, 183),
                wide(true, 142) + wide(false, 114),
                wide(true, 142) + wide(true, 114) + wide(false, 183),
            ],
            intra4: std::array::from_fn(|above| {
                std::array::from_fn(|left| {
                    let probabilities = intra4_mode_probabilities(above, left);
                    std::array::from_fn(|mode| {
                        intra4_mode_bits(mode).iter().map(|(branch, bit)| cost(*bit, probabilities[*branch])).sum()
                    })
                })
            }),
            bit,
        }
    }

    pub(crate) fn bit(&self, is_one: bool, probability: u8) -> u16 {
        bit_cost(&self.bit, is_one, probability)
    }
}

fn bit_cost(table: &[u16; 256], is_one: bool, probability: u8) -> u16 {
    table[usize::from(if is_one { 255 - probability } else { probability })]
}

pub(crate) fn intra4_mode_probabilities(above: usize, left: usize) -> &'static [u8] {
    &INTRA4_MODE_PROBABILITIES[(above * 10 + left) * 9..][..9]
}

/// Returns the branches to a 4x4 mode in the mode tree: index of the probability, and direction.
pub(crate) fn intra4_mode_bits(mode: usize) -> &'static [(usize, bool)] {
    const BITS: [&[(usize, bool)]; 10] = [
        &[(0, false)],
        &[(0, true), (1, false)],
        &[(0, true), (1, true), (2, false)],
        &[(0, true), (1, true), (2, true), (3, false), (4, false)],
        &[(0, true), (1, true), (2, true), (3, false), (4, true), (5, false)],
        &[(0, true), (1, true), (2, true), (3, false), (4, true), (5, true)],
        &[(0, true), (1, true), (2, true), (3, true), (6, false)],
        &[(0, true), (1, true), (2, true), (3, true), (6, true), (7, false)],
        &[(0, true), (1, true), (2, true), (3, true), (6, true), (7, true), (8, false)],
        &[(0, true), (1, true), (2, true), (3, true), (6, true), (7, true), (8, true)],
    ];
    BITS[mode]
}

/// Returns the branches to a level of 1 or more, without those that all levels share: index of the probability, and direction.
pub(crate) fn level_branches(level: usize) -> &'static [(usize, bool)] {
    match level {
        0 | 1 => &[(2, false)],
        2 => &[(2, true), (3, false), (4, false)],
        3 => &[(2, true), (3, false), (4, true), (5, false)],
        4 => &[(2, true), (3, false), (4, true), (5, true)],
        5 | 6 => &[(2, true), (3, true), (6, false), (7, false)],
        7..=10 => &[(2, true), (3, true), (6, false), (7, true)],
        11..=18 => &[(2, true), (3, true), (6, true), (8, false), (9, false)],
        19..=34 => &[(2, true), (3, true), (6, true), (8, false), (9, true)],
        35..=66 => &[(2, true), (3, true), (6, true), (8, true), (10, false)],
        _ => &[(2, true), (3, true), (6, true), (8, true), (10, true)],
    }
}

/// Returns the extra bits of a level and its sign (as if positive), with their fixed probabilities.
pub(crate) fn extra_bits(level: usize) -> impl Iterator<Item = (bool, u8)> {
    let (base, probabilities): (usize, &[u8]) = match level {
        0..=4 => (level, &[]),
        5 | 6 => (5, &[159]),
        7..=10 => (7, &[165, 145]),
        11..=18 => (11, &[173, 148, 140]),
        19..=34 => (19, &[176, 155, 140, 135]),
        35..=66 => (35, &[180, 157, 141, 134, 130]),
        _ => (67, &[254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129]),
    };
    let rest = level - base;
    let bits = probabilities.iter().enumerate().map(move |(n, p)| (rest >> (probabilities.len() - 1 - n) & 1 == 1, *p));
    bits.chain((level > 0).then_some((false, 128)))
}

/// From this level on the adaptive cost is the same.
const LAST_LEVEL: usize = 67;

/// Costs of coefficient tokens by adaptive probabilities.
pub(crate) struct TokenCosts {
    /// By kind of block, zigzag index, context and level.
    levels: Vec<[[[u16; LAST_LEVEL + 1]; 3]; 16]>,
    /// Costs of the end of block and of its absence, by kind of block, zigzag index and context.
    ends: [[[[u16; 2]; 3]; 17]; 4],
}

impl TokenCosts {
    pub(crate) fn of(probabilities: &Probabilities) -> Self {
        let mut levels = vec![[[[0; LAST_LEVEL + 1]; 3]; 16]; 4];
        let mut ends = [[[[0; 2]; 3]; 17]; 4];
        for (kind, levels) in levels.iter_mut().enumerate() {
            for index in 0..16 {
                for context in 0..3 {
                    let p = probabilities.branches(kind, BANDS[index], context);
                    ends[kind][index][context] = [FIXED_COSTS.bit(false, p[0]), FIXED_COSTS.bit(true, p[0])];
                    // A zero is never followed by an end of block.
                    let more = if context > 0 { ends[kind][index][context][1] } else { 0 };
                    let table = &mut levels[index][context];
                    table[0] = more + FIXED_COSTS.bit(false, p[1]);
                    for (level, cost) in table.iter_mut().enumerate().skip(1) {
                        let branches = level_branches(level).iter().map(|(n, bit)| FIXED_COSTS.bit(*bit, p[*n]));
                        *cost = more + FIXED_COSTS.bit(true, p[1]) + branches.sum::<u16>();
                    }
                }
            }
        }
        Self { levels, ends }
    }

    /// Returns the cost of a block; `coded` is one more than the zigzag index of its last nonzero level.
    #[inline]
    pub(crate) fn block(
        &self,
        kind: usize,
        first: usize,
        context: usize,
        coded: usize,
        level: impl Fn(usize) -> i16,
    ) -> i32 {
        let ends = &self.ends[kind & 3];
        let tables = &self.levels[kind & 3];
        if coded <= first {
            return ends[first & 1][context][0].into();
        }
        let mut cost = if context == 0 { i32::from(ends[first & 1][0][1]) } else { 0 };
        let mut context = context;
        let fixed = &**FIXED_LEVELS;
        for index in first..coded.min(16) {
            let level = usize::from(level(ZIGZAG[index & 15]).unsigned_abs()) & 2047;
            cost += i32::from(fixed[level]) + i32::from(tables[index & 15][context][level.min(LAST_LEVEL)]);
            context = level.min(2);
        }
        if coded < 16 {
            cost += i32::from(ends[coded & 15][context][0]);
        }
        cost
    }
}

static FIXED_LEVELS: LazyLock<Box<[u16; 2048]>> = LazyLock::new(|| {
    let mut levels = Box::new([0; 2048]);
    levels.copy_from_slice(&FIXED_COSTS.level);
    levels
});
