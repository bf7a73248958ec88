//! Band plan: which rows of a tensor each rank owns (HAL-8, TRN-1).

use crate::rules::Rules;
use core::marker::PhantomData;
use core::ops::Range;

/// Rows `[total*rank/world, total*(rank+1)/world)`: the intervals of all ranks cover `0..total` once, in
/// rank order, and differ in length by one row at most.
///
/// `rank` must be below `world`.
pub fn interval(total: u64, world: u32, rank: u32) -> Range<u64> {
    assert!(rank < world, "rank {rank} is not in a world of {world}");
    let bound = |ranks: u32| (u128::from(total) * u128::from(ranks) / u128::from(world)) as u64;
    bound(rank)..bound(rank + 1)
}

/// Why rows cannot be split over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BandsError {
    /// A world has at least one rank.
    #[error("world is 0, expected at least 1 rank")]
    NoRanks,
    /// Some rank would own no row, so it would have no edge to send (HAL-8).
    #[error("height is {rows} rows for {world} ranks, expected at least one row a rank")]
    MoreRanksThanRows {
        /// Rows to split.
        rows: u64,
        /// Ranks to split them over.
        world: u32,
    },
}

/// Split of `rows` over `world` ranks in which every rank owns at least one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bands<R> {
    rows: u64,
    world: u32,
    rules: PhantomData<R>,
}

impl<R: Rules> Bands<R> {
    /// Plans the split, or says why there is none.
    pub fn new(rows: u64, world: u32) -> Result<Self, BandsError> {
        if world == 0 {
            return Err(BandsError::NoRanks);
        }
        if R::band_needs_a_row() && rows < u64::from(world) {
            return Err(BandsError::MoreRanksThanRows { rows, world });
        }
        Ok(Self { rows, world, rules: PhantomData })
    }

    /// Rows that `rank` owns.
    pub fn rows_of(&self, rank: u32) -> Range<u64> {
        interval(self.rows, self.world, rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Shipped;

    #[test]
    fn rows_of_a_large_tensor_do_not_overflow() {
        assert_eq!(interval(u64::MAX, 65_536, 65_535).end, u64::MAX);
    }

    #[test]
    fn a_band_without_rows_is_refused_by_name() {
        let refused = Bands::<Shipped>::new(3, 4).unwrap_err();
        assert_eq!(refused, BandsError::MoreRanksThanRows { rows: 3, world: 4 });
        assert_eq!(Bands::<Shipped>::new(3, 0).unwrap_err(), BandsError::NoRanks);
    }
}
