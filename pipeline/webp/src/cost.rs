//! What things cost, in 256ths of a bit.

use std::sync::LazyLock;

use crate::{BANDS, ZIGZAG, standard::SMALL_MODES, tokens::Likelihoods};

/// What decisions cost that are always coded the same way.
pub(crate) struct Fixed {
    /// A bit of 0, by how likely that is of 256.
    bit: [u16; 256],
    /// Sign and low bits of a level.
    level: Vec<u16>,
    /// 16x16 modes, with the choice of 16x16.
    pub(crate) large: [i64; 4],
    /// The choice of 4x4.
    pub(crate) is_small: i64,
    pub(crate) colour: [i64; 4],
    /// 4x4 modes, by the mode above and the mode to the left.
    pub(crate) small: [[[u16; 10]; 10]; 10],
}

pub(crate) static FIXED: LazyLock<Fixed> = LazyLock::new(Fixed::new);

impl Fixed {
    fn new() -> Self {
        let bit: [u16; 256] = std::array::from_fn(|p| (256.0 * (256.0 / p.max(1) as f64).log2()).min(1792.0) as u16);
        let cost = |is_one: bool, p: u8| bit_cost(&bit, is_one, p);
        let wide = |is_one, p| i64::from(cost(is_one, p));
        let large = wide(true, 145);
        Self {
            level: (0..2048).map(|level| low_bits(level).map(|(bit, p)| cost(bit, p)).sum::<u16>()).collect(),
            large: [
                large + wide(false, 156) + wide(false, 163),
                large + wide(true, 156) + wide(true, 128),
                large + wide(false, 156) + wide(true, 163),
                large + wide(true, 156) + wide(false, 128),
            ],
            is_small: wide(false, 145),
            colour: [
                wide(false, 142),
                wide(true, 142) + wide(true, 114) + wide(true, 183),
                wide(true, 142) + wide(false, 114),
                wide(true, 142) + wide(true, 114) + wide(false, 183),
            ],
            small: std::array::from_fn(|above| {
                std::array::from_fn(|left| {
                    let likelihoods = small_mode_likelihoods(above, left);
                    std::array::from_fn(|mode| {
                        small_mode_bits(mode).iter().map(|(branch, bit)| cost(*bit, likelihoods[*branch])).sum()
                    })
                })
            }),
            bit,
        }
    }

    pub(crate) fn bit(&self, is_one: bool, likelihood: u8) -> u16 {
        bit_cost(&self.bit, is_one, likelihood)
    }
}

fn bit_cost(table: &[u16; 256], is_one: bool, likelihood: u8) -> u16 {
    table[usize::from(if is_one { 255 - likelihood } else { likelihood })]
}

pub(crate) fn small_mode_likelihoods(above: usize, left: usize) -> &'static [u8] {
    &SMALL_MODES[(above * 10 + left) * 9..][..9]
}

/// The branches to a 4x4 mode.
pub(crate) fn small_mode_bits(mode: usize) -> &'static [(usize, bool)] {
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

/// The branches to a level from 1 on, without those that every level has: which likelihood, which way.
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

/// The low bits of a level and its sign (as if positive), with their likelihoods, which never change.
pub(crate) fn low_bits(level: usize) -> impl Iterator<Item = (bool, u8)> {
    let (base, likelihoods): (usize, &[u8]) = match level {
        0..=4 => (level, &[]),
        5 | 6 => (5, &[159]),
        7..=10 => (7, &[165, 145]),
        11..=18 => (11, &[173, 148, 140]),
        19..=34 => (19, &[176, 155, 140, 135]),
        35..=66 => (35, &[180, 157, 141, 134, 130]),
        _ => (67, &[254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129]),
    };
    let rest = level - base;
    let bits = likelihoods.iter().enumerate().map(move |(n, p)| (rest >> (likelihoods.len() - 1 - n) & 1 == 1, *p));
    bits.chain((level > 0).then_some((false, 128)))
}

/// From here on levels cost the same but for their low bits.
const LAST_LEVEL: usize = 67;

/// What coefficients cost with likelihoods as they are now.
pub(crate) struct Costs {
    /// By kind of block, place, context and level.
    levels: Vec<[[[u16; LAST_LEVEL + 1]; 3]; 16]>,
    /// That there is no coefficient more, and that there is, by kind of block, place and context.
    ends: [[[[u16; 2]; 3]; 17]; 4],
}

impl Costs {
    pub(crate) fn of(likelihoods: &Likelihoods) -> Self {
        let mut levels = vec![[[[0; LAST_LEVEL + 1]; 3]; 16]; 4];
        let mut ends = [[[[0; 2]; 3]; 17]; 4];
        for (kind, levels) in levels.iter_mut().enumerate() {
            for place in 0..16 {
                for context in 0..3 {
                    let p = likelihoods.branches(kind, BANDS[place], context);
                    ends[kind][place][context] = [FIXED.bit(false, p[0]), FIXED.bit(true, p[0])];
                    // After a zero there is always more.
                    let more = if context > 0 { ends[kind][place][context][1] } else { 0 };
                    let table = &mut levels[place][context];
                    table[0] = more + FIXED.bit(false, p[1]);
                    for (level, cost) in table.iter_mut().enumerate().skip(1) {
                        let branches = level_branches(level).iter().map(|(n, bit)| FIXED.bit(*bit, p[*n]));
                        *cost = more + FIXED.bit(true, p[1]) + branches.sum::<u16>();
                    }
                }
            }
        }
        Self { levels, ends }
    }

    /// Of a block whose last coefficient is before `coded`, in the order of the standard.
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
        for place in first..coded.min(16) {
            let level = usize::from(level(ZIGZAG[place & 15]).unsigned_abs()) & 2047;
            cost += i32::from(fixed[level]) + i32::from(tables[place & 15][context][level.min(LAST_LEVEL)]);
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
    levels.copy_from_slice(&FIXED.level);
    levels
});
