//! Where bytes lie: padded bands, packed edges, and which pad row takes which (HAL-4, HAL-5).

use crate::legs::{Place, Side};
use crate::rules::Rules;
use core::fmt;

/// Element type of a tensor. A halo exchange moves bits and computes nothing; ranks compare the type all the
/// same, since edges of another type are edges of another tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the field's own")]
pub enum Dtype {
    U8,
    I8,
    F8E4M3,
    F8E5M2,
    U16,
    I16,
    F16,
    BF16,
    U32,
    I32,
    F32,
}

impl Dtype {
    /// Every type.
    pub const ALL: [Dtype; 11] = [
        Dtype::U8,
        Dtype::I8,
        Dtype::F8E4M3,
        Dtype::F8E5M2,
        Dtype::U16,
        Dtype::I16,
        Dtype::F16,
        Dtype::BF16,
        Dtype::U32,
        Dtype::I32,
        Dtype::F32,
    ];

    /// Bytes of one element: 1, 2 or 4.
    pub const fn bytes(self) -> u64 {
        match self {
            Dtype::U8 | Dtype::I8 | Dtype::F8E4M3 | Dtype::F8E5M2 => 1,
            Dtype::U16 | Dtype::I16 | Dtype::F16 | Dtype::BF16 => 2,
            Dtype::U32 | Dtype::I32 | Dtype::F32 => 4,
        }
    }

    /// Name, as NumPy or PyTorch write it.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::U8 => "uint8",
            Dtype::I8 => "int8",
            Dtype::F8E4M3 => "float8_e4m3",
            Dtype::F8E5M2 => "float8_e5m2",
            Dtype::U16 => "uint16",
            Dtype::I16 => "int16",
            Dtype::F16 => "float16",
            Dtype::BF16 => "bfloat16",
            Dtype::U32 => "uint32",
            Dtype::I32 => "int32",
            Dtype::F32 => "float32",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A band in memory: `[frames, 1 + rows + 1, width, channels]`, dense, one pad row on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BandShape {
    /// T.
    pub frames: u64,
    /// Real rows of this rank; pad rows are not counted.
    pub rows: u64,
    /// W.
    pub width: u64,
    /// C.
    pub channels: u64,
    /// Element type.
    pub dtype: Dtype,
}

/// Why a band's memory cannot be exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ShapeError {
    /// A dimension is 0.
    #[error("{dimension} is 0, expected at least 1")]
    Empty {
        /// Which.
        dimension: &'static str,
    },
    /// The sizes multiply past 64 bits.
    #[error("the band has more bytes than 64 bits count")]
    Overflow,
    /// The buffer is not as long as the shape says.
    #[error("the band's buffer has {found} bytes, expected {expected}")]
    Bytes {
        /// Bytes given.
        found: u64,
        /// Bytes of the shape with its pad rows.
        expected: u64,
    },
}

impl BandShape {
    /// Bytes of one row, `[W,C]`.
    pub fn row_bytes(&self) -> u64 {
        self.width * self.channels * self.dtype.bytes()
    }

    /// Bytes of one edge, `[T,W,C]`.
    pub fn edge_bytes(&self) -> u64 {
        self.frames * self.row_bytes()
    }

    /// Rows with the two pad rows.
    pub fn padded_rows(&self) -> u64 {
        self.rows + 2
    }

    /// Bytes of the whole padded band.
    pub fn padded_bytes(&self) -> u64 {
        self.padded_rows() * self.edge_bytes()
    }

    /// Checks that nothing is empty, that sizes fit 64 bits also for the receive buffer of `world` ranks,
    /// and that a buffer of `found` bytes is such a band.
    pub fn check(&self, found: u64, world: u32) -> Result<(), ShapeError> {
        let named = [
            ("frames", self.frames),
            ("rows", self.rows),
            ("width", self.width),
            ("channels", self.channels),
        ];
        if let Some((dimension, _)) = named.into_iter().find(|&(_, size)| size == 0) {
            return Err(ShapeError::Empty { dimension });
        }
        let factors = [
            self.frames,
            self.width,
            self.channels,
            self.dtype.bytes(),
            self.rows.saturating_add(2).max(2 * u64::from(world)),
        ];
        factors
            .into_iter()
            .try_fold(1u64, u64::checked_mul)
            .filter(|&bytes| bytes <= isize::MAX as u64)
            .ok_or(ShapeError::Overflow)?;
        let expected = self.padded_bytes();
        if found != expected { Err(ShapeError::Bytes { found, expected }) } else { Ok(()) }
    }
}

/// What fills a pad row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PadFill {
    /// An edge in the receive buffer.
    From(Place),
    /// Zeros: there is no band on that side.
    Zeros,
}

/// What fills the pad row on `side` of `rank`.
pub fn pad_fill<R: Rules>(side: Side, rank: u32, world: u32) -> PadFill {
    match R::pad_source(side, rank, world) {
        Some((slot, edge)) => PadFill::From(Place::Slot(slot, edge)),
        None => PadFill::Zeros,
    }
}

fn pad_row(side: Side, shape: &BandShape) -> u64 {
    match side {
        Side::Above => 0,
        Side::Below => shape.rows + 1,
    }
}

fn edge_row(side: Side, shape: &BandShape) -> u64 {
    match side {
        Side::Above => 1,
        Side::Below => shape.rows,
    }
}

/// Byte offset of row `row` of frame `frame` in a padded band.
fn row_start(shape: &BandShape, frame: u64, row: u64) -> usize {
    ((frame * shape.padded_rows() + row) * shape.row_bytes()) as usize
}

/// Copies the first and the last real row of every frame of `band` into `packed`, `[2,T,W,C]`.
///
/// `band` and `packed` must have the lengths that `shape` gives.
pub fn pack(shape: &BandShape, band: &[u8], packed: &mut [u8]) {
    let row_bytes = shape.row_bytes() as usize;
    assert_eq!(band.len() as u64, shape.padded_bytes(), "band bytes");
    assert_eq!(packed.len() as u64, 2 * shape.edge_bytes(), "packed bytes");
    let mut rows = packed.chunks_exact_mut(row_bytes);
    for side in Side::BOTH {
        for frame in 0..shape.frames {
            let start = row_start(shape, frame, edge_row(side, shape));
            let to = rows.next().expect("one row a side and frame");
            to.copy_from_slice(&band[start..start + row_bytes]);
        }
    }
}

/// Fills the pad rows of `band` from the receive buffer `[world,2,T,W,C]`, reading only the slots that
/// [`pad_fill`] names.
///
/// `band` and `received` must have the lengths that `shape` and `world` give.
pub fn unpack<R: Rules>(shape: &BandShape, rank: u32, world: u32, received: &[u8], band: &mut [u8]) {
    let row_bytes = shape.row_bytes() as usize;
    assert_eq!(band.len() as u64, shape.padded_bytes(), "band bytes");
    assert_eq!(received.len() as u64, u64::from(world) * 2 * shape.edge_bytes(), "received bytes");
    for side in Side::BOTH {
        let fill = pad_fill::<R>(side, rank, world);
        for frame in 0..shape.frames {
            let start = row_start(shape, frame, pad_row(side, shape));
            let pad = &mut band[start..start + row_bytes];
            match fill {
                PadFill::Zeros => pad.fill(0),
                PadFill::From(place) => {
                    let (_, range) = place.bytes(shape.edge_bytes());
                    let from = range.start as usize + frame as usize * row_bytes;
                    pad.copy_from_slice(&received[from..from + row_bytes]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: BandShape = BandShape { frames: 2, rows: 3, width: 1, channels: 1, dtype: Dtype::U8 };

    #[test]
    fn pack_takes_the_first_and_last_real_rows_edge_major() {
        let band = [0, 11, 12, 13, 0, 0, 21, 22, 23, 0];
        let mut packed = [0; 4];
        pack(&SHAPE, &band, &mut packed);
        assert_eq!(packed, [11, 21, 13, 23]);
    }

    #[test]
    fn a_wrong_buffer_length_names_both_sizes() {
        assert_eq!(SHAPE.check(9, 2), Err(ShapeError::Bytes { found: 9, expected: 10 }));
        let huge = BandShape { frames: u64::MAX, ..SHAPE };
        assert_eq!(huge.check(9, 2), Err(ShapeError::Overflow));
        let empty = BandShape { width: 0, ..SHAPE };
        assert_eq!(empty.check(0, 2), Err(ShapeError::Empty { dimension: "width" }));
    }
}
