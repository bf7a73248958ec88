//! What a padded band must hold, from the unsplit array: naive loops with arithmetic of their own, which share
//! nothing with the protocol.

/// Dimensions of an unsplit array `[T,H,W,C]` and the bytes of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    /// T.
    pub(crate) frames: usize,
    /// H.
    pub(crate) height: usize,
    /// W.
    pub(crate) width: usize,
    /// C.
    pub(crate) channels: usize,
    /// Bytes of one element.
    pub(crate) element: usize,
}

/// Where a padded band differs from the unsplit array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Wrong {
    /// Frame.
    pub(crate) frame: usize,
    /// Row of the whole array; -1 and the height are the zero rows around it.
    pub(crate) row: i64,
    /// Column.
    pub(crate) column: usize,
    /// Channel.
    pub(crate) channel: usize,
    /// Byte of the element.
    pub(crate) byte: usize,
    /// What the band holds.
    pub(crate) found: u8,
    /// What the array has there.
    pub(crate) expected: u8,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Wrong { frame, row, column, channel, byte, found, expected } = self;
        write!(f, "frame {frame}, row {row}, column {column}, channel {channel}, byte {byte}: ")?;
        write!(f, "found {found:#04x}, expected {expected:#04x}")
    }
}

/// The first row that a rank owns: the rows before it are shared out as evenly as whole rows allow.
fn first_row(height: usize, world: usize, rank: usize) -> usize {
    // height * rank / world, without the product: whole turns of `world` rows, then the rest.
    let turns = height / world;
    let rest = height % world;
    turns * rank + rest * rank / world
}

/// Counts the bytes of `band` (`[T, 1 + rows + 1, W, C]` of `rank`) that are not those of `array`, and gives the
/// first. A band of another length is wrong in every byte that is missing or too many.
pub(crate) fn compare(
    whole: &Whole,
    array: &[u8],
    world: usize,
    rank: usize,
    band: &[u8],
) -> (u64, Option<Wrong>) {
    let Whole { frames, height, width, channels, element } = *whole;
    let top = first_row(height, world, rank);
    let bottom = first_row(height, world, rank + 1);
    let mut wrong = 0;
    let mut first = None;
    let mut position = 0;
    for frame in 0..frames {
        for padded_row in 0..bottom - top + 2 {
            let row = top as i64 + padded_row as i64 - 1;
            for column in 0..width {
                for channel in 0..channels {
                    for byte in 0..element {
                        let expected = if row < 0 || row >= height as i64 {
                            0
                        } else {
                            let pixel = (frame * height + row as usize) * width + column;
                            array[(pixel * channels + channel) * element + byte]
                        };
                        let found = band.get(position).copied();
                        position += 1;
                        if found != Some(expected) {
                            wrong += 1;
                            let found = found.unwrap_or_default();
                            first.get_or_insert(Wrong { frame, row, column, channel, byte, found, expected });
                        }
                    }
                }
            }
        }
    }
    (wrong + band.len().saturating_sub(position) as u64, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Whole = Whole { frames: 2, height: 3, width: 1, channels: 1, element: 1 };
    const ARRAY: [u8; 6] = [11, 12, 13, 21, 22, 23];

    #[test]
    fn a_right_band_has_no_wrong_byte() {
        // Rank 0 of 2 owns row 0, rank 1 rows 1 and 2.
        assert_eq!(compare(&WHOLE, &ARRAY, 2, 0, &[0, 11, 12, 0, 21, 22]), (0, None));
        assert_eq!(compare(&WHOLE, &ARRAY, 2, 1, &[11, 12, 13, 0, 21, 22, 23, 0]), (0, None));
    }

    #[test]
    fn a_wrong_byte_is_counted_and_the_first_is_named() {
        let (wrong, first) = compare(&WHOLE, &ARRAY, 2, 0, &[0, 11, 12, 7, 21, 9]);
        let first = first.unwrap();
        assert_eq!((wrong, first.frame, first.row, first.found, first.expected), (2, 1, -1, 7, 0));
    }

    #[test]
    fn missing_and_extra_bytes_are_wrong() {
        assert_eq!(compare(&WHOLE, &ARRAY, 2, 0, &[0, 11, 12, 0, 21]).0, 1);
        assert_eq!(compare(&WHOLE, &ARRAY, 2, 0, &[0, 11, 12, 0, 21, 22, 0]).0, 1);
    }

    #[test]
    fn bands_cover_all_rows_without_overlap() {
        for (height, world) in [(1, 1), (7, 3), (8, 8), (720, 7)] {
            let bounds: Vec<usize> = (0..=world).map(|rank| first_row(height, world, rank)).collect();
            assert!(bounds.is_sorted() && bounds[0] == 0 && bounds[world] == height, "{height} {world}");
        }
    }
}
