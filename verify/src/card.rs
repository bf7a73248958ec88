//! A test card: frames that a person recognises, and in which every row of every frame differs from its
//! neighbours, so that an edge from the wrong row or frame shows.

use crate::complaint::Complaint;
use crate::rank::room;
use crate::reference::Whole;
use rankwise_protocol::layout::Dtype;

/// Draws `[T,H,W,C]` as bytes of `dtype`, the same for the same `seed`.
///
/// Colour bars, brighter towards the bottom; a white diagonal; a circle that moves with the frame; grain from the
/// seed. Values lie between 0 and 1, spread over the range of integer types.
pub(crate) fn draw(whole: &Whole, dtype: Dtype, seed: u64) -> Result<Vec<u8>, Complaint> {
    let Whole { frames, height, width, channels, element } = *whole;
    let mut bytes = room(frames * height * width * channels * element)?;
    let mut grain = Random::new(seed);
    for frame in 0..frames {
        for row in 0..height {
            for column in 0..width {
                let light = light(whole, frame, row, column);
                let bar = column * BARS.len() / width;
                for channel in 0..channels {
                    let color = if BARS[bar] >> (channel % 3) & 1 == 1 { 1.0 } else { 0.25 };
                    let noise = (grain.next() >> 40) as f32 / (1 << 24) as f32;
                    let value = light.unwrap_or(color * (0.2 + 0.6 * row as f32 / height as f32));
                    encode(dtype, 0.875 * value + 0.125 * noise, &mut bytes);
                }
            }
        }
    }
    Ok(bytes)
}

/// White, yellow, cyan, green, magenta, red, blue, black: one bit a channel.
const BARS: [u8; 8] = [0b111, 0b011, 0b110, 0b010, 0b101, 0b001, 0b100, 0b000];

/// The brightness of the drawing at a point, or `None` where the bars show.
fn light(whole: &Whole, frame: usize, row: usize, column: usize) -> Option<f32> {
    let (height, width) = (whole.height as f32, whole.width as f32);
    let (x, y) = (column as f32 + 0.5, row as f32 + 0.5);
    if (y * width / height - x).abs() < 1.0 {
        return Some(1.0);
    }
    let radius = 0.3 * height.min(width);
    let travel = (frame as f32 + 0.5) / whole.frames as f32;
    let center = (radius + travel * (width - 2.0 * radius), height / 2.0);
    let distance = ((x - center.0).powi(2) + (y - center.1).powi(2)).sqrt();
    ((distance - radius).abs() < 1.0).then_some(0.9)
}

/// Appends `value`, 0 to 1, as an element of `dtype`.
fn encode(dtype: Dtype, value: f32, bytes: &mut Vec<u8>) {
    let whole = |steps: f64| (f64::from(value) * steps) as u64;
    let word = match dtype {
        Dtype::U8 => whole(255.0),
        Dtype::I8 => whole(255.0).wrapping_sub(128),
        Dtype::U16 => whole(65_535.0),
        Dtype::I16 => whole(65_535.0).wrapping_sub(32_768),
        Dtype::U32 => whole(4_294_967_295.0),
        Dtype::I32 => whole(4_294_967_295.0).wrapping_sub(1 << 31),
        Dtype::F8E4M3 => float(value, 4, 3),
        Dtype::F8E5M2 => float(value, 5, 2),
        Dtype::F16 => float(value, 5, 10),
        Dtype::BF16 => float(value, 8, 7),
        Dtype::F32 => u64::from(value.to_bits()),
    };
    bytes.extend_from_slice(&word.to_le_bytes()[..dtype.bytes() as usize]);
}

/// `value`, 0 to 1, cut to a float with that many bits of exponent and mantissa.
fn float(value: f32, exponent_bits: i32, mantissa_bits: i32) -> u64 {
    let bias = (1 << (exponent_bits - 1)) - 1;
    let exponent = (value.to_bits() >> 23) as i32 - 127 + bias;
    if exponent <= 0 {
        return (value * f32::powi(2.0, bias - 1 + mantissa_bits)) as u64;
    }
    let mantissa = (value.to_bits() & 0x7f_ffff) >> (23 - mantissa_bits);
    (exponent as u64) << mantissa_bits | u64::from(mantissa)
}

/// Changes every byte by a pattern that depends on `seed` and `repetition` alone, so that an edge left over from
/// an earlier exchange shows.
pub(crate) fn alter(array: &mut [u8], seed: u64, repetition: u64) {
    let mut pattern = Random::new(seed ^ repetition.rotate_left(32));
    let mut words = array.chunks_exact_mut(8);
    for word in &mut words {
        let changed = u64::from_le_bytes((&*word).try_into().expect("8 bytes")) ^ pattern.next();
        word.copy_from_slice(&changed.to_le_bytes());
    }
    let last = pattern.next().to_le_bytes();
    words.into_remainder().iter_mut().zip(last).for_each(|(byte, flip)| *byte ^= flip);
}

/// SplitMix64.
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(dtype: Dtype) -> Whole {
        Whole { frames: 3, height: 24, width: 32, channels: 3, element: dtype.bytes() as usize }
    }

    #[test]
    fn every_row_of_every_type_differs_from_all_others() {
        for dtype in Dtype::ALL {
            let whole = whole(dtype);
            let card = draw(&whole, dtype, 1).unwrap();
            let mut rows: Vec<&[u8]> = card.chunks(whole.width * whole.channels * whole.element).collect();
            rows.sort();
            rows.dedup();
            assert_eq!(rows.len(), 3 * 24, "{dtype}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_card() {
        let whole = whole(Dtype::F16);
        assert_eq!(draw(&whole, Dtype::F16, 5), draw(&whole, Dtype::F16, 5));
        assert_ne!(draw(&whole, Dtype::F16, 5), draw(&whole, Dtype::F16, 6));
    }

    #[test]
    fn floats_are_cut_as_their_formats_say() {
        let cases = [(1.0, 0x3c00, 0x3f80, 0x38, 0x3c), (0.5, 0x3800, 0x3f00, 0x30, 0x38)];
        for (value, half, brain, e4m3, e5m2) in cases {
            assert_eq!(float(value, 5, 10), half);
            assert_eq!(float(value, 8, 7), brain);
            assert_eq!((float(value, 4, 3), float(value, 5, 2)), (e4m3, e5m2));
        }
        assert_eq!(float(0.0, 5, 10), 0);
        // The smallest subnormal half is 2^-24.
        assert_eq!(float(f32::powi(2.0, -24), 5, 10), 1);
    }

    #[test]
    fn a_repetition_changes_nearly_every_byte() {
        let mut array = vec![7; 8 * 1000 + 3];
        alter(&mut array, 0, 1);
        let same = array.iter().filter(|&&byte| byte == 7).count();
        assert!(same < 80, "{same} of 8003 bytes are as they were");
        let mut other = vec![7; 8 * 1000 + 3];
        alter(&mut other, 0, 2);
        assert_ne!(array, other);
    }
}
