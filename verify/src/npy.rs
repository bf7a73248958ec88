//! Frames from a `.npy` file: `[T,H,W,C]`, little endian, C order.

use crate::complaint::{Complaint, regular};
use crate::rank::room;
use crate::reference::Whole;
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};
use rankwise_protocol::layout::Dtype;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Element types that are read, as NumPy writes them.
const TYPES: &str = "u1, i1, <u2, <i2, <f2, <u4, <i4 or <f4";

/// How a `.npy` file starts.
const MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes of the longest header that is read.
const HEADER_BYTES_MAX: usize = 1 << 16;
/// Brackets of the most nested header that is read: the parser recurses.
const BRACKETS_MAX: usize = 64;

/// A file whose header says what is wanted and whose length fits it.
pub(crate) struct Frames {
    /// Dimensions.
    pub(crate) whole: Whole,
    /// Element type.
    pub(crate) dtype: Dtype,
    reader: BufReader<File>,
}

impl Frames {
    /// Opens `path` and checks everything but the values, which can't be wrong.
    pub(crate) fn open(path: &Path) -> Result<Frames, Complaint> {
        let refused = |field: &str, found: &str, expected: &str| {
            Complaint::field(path.display(), field, found, expected)
        };
        regular(path).map_err(|found| refused("file", &found, "a .npy file"))?;
        let file = File::open(path).map_err(|error| refused("file", &error.to_string(), "a .npy file"))?;
        let metadata = file.metadata().map_err(|error| refused("file", &error.to_string(), "a .npy file"))?;
        let mut reader = BufReader::new(file);
        let text = header_bytes(&mut reader).map_err(|found| refused("header", &found, "a .npy header"))?;
        let header = NpyHeader::from_reader(&text[..])
            .map_err(|error| refused("header", &error.to_string(), "a .npy header"))?;
        if header.order() != Order::C {
            return Err(refused("fortran_order", "True", "False (C order)"));
        }
        let dtype = dtype_of(&header.dtype());
        let dtype = dtype.ok_or_else(|| refused("descr", &header.dtype().descr(), TYPES))?;
        let &[frames, height, width, channels] = header.shape() else {
            return Err(refused("shape", &format!("{:?}", header.shape()), "4 dimensions [T,H,W,C]"));
        };
        let sizes = [frames, height, width, channels];
        if sizes.contains(&0) {
            return Err(refused("shape", &format!("{sizes:?}"), "no dimension of 0"));
        }
        let bytes = sizes.into_iter().try_fold(dtype.bytes(), u64::checked_mul);
        let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as u64);
        let bytes = bytes.ok_or_else(|| {
            refused("shape", &format!("{sizes:?}"), "a product of sizes that fits in memory")
        })?;
        let found = metadata.len().saturating_sub(text.len() as u64);
        if found != bytes {
            let expected = format!("{bytes} bytes for {sizes:?} {dtype}");
            return Err(refused("data", &format!("{found} bytes"), &expected));
        }
        let [frames, height, width, channels] = sizes.map(|size| size as usize);
        let whole = Whole { frames, height, width, channels, element: dtype.bytes() as usize };
        Ok(Frames { whole, dtype, reader })
    }

    /// The elements.
    pub(crate) fn read(mut self, path: &Path) -> Result<Vec<u8>, Complaint> {
        let Whole { frames, height, width, channels, element } = self.whole;
        let size = frames * height * width * channels * element;
        let mut bytes = room(size)?;
        bytes.resize(size, 0);
        self.reader.read_exact(&mut bytes).map_err(|error| {
            Complaint::field(path.display(), "data", &error.to_string(), &format!("{} bytes", bytes.len()))
        })?;
        Ok(bytes)
    }
}

/// Everything before the elements. What the parser allocates and how deep it goes hangs on it, so it has limits.
fn header_bytes(reader: &mut impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut more = |bytes: &mut Vec<u8>, count: usize| {
        let read = reader.by_ref().take(count as u64).read_to_end(bytes);
        read.map_err(|error| error.to_string())
    };
    more(&mut bytes, 10)?;
    // Magic, two bytes of version, then the length: two bytes in version 1, four from version 2 on.
    if bytes.get(6).is_some_and(|&version| version >= 2) && bytes.starts_with(MAGIC) {
        more(&mut bytes, 2)?;
    }
    let mut length = [0; 4];
    let written = bytes.get(8..).unwrap_or_default();
    length[..written.len()].copy_from_slice(written);
    let length = u32::from_le_bytes(length) as usize;
    if !bytes.starts_with(MAGIC) {
        // The parser says what is wrong.
        return Ok(bytes);
    }
    if length > HEADER_BYTES_MAX {
        return Err(format!("{length} bytes (at most {HEADER_BYTES_MAX} are read)"));
    }
    more(&mut bytes, length)?;
    let brackets = bytes.iter().filter(|byte| b"([{".contains(byte)).count();
    if brackets > BRACKETS_MAX {
        return Err(format!("{brackets} brackets (at most {BRACKETS_MAX} are read)"));
    }
    Ok(bytes)
}

fn dtype_of(written: &DType) -> Option<Dtype> {
    let DType::Plain(written) = written else { return None };
    let size = written.size_field();
    if size != 1 && written.endianness() != Endianness::Little {
        return None;
    }
    Some(match (written.type_char(), size) {
        (TypeChar::Uint, 1) => Dtype::U8,
        (TypeChar::Int, 1) => Dtype::I8,
        (TypeChar::Uint, 2) => Dtype::U16,
        (TypeChar::Int, 2) => Dtype::I16,
        (TypeChar::Float, 2) => Dtype::F16,
        (TypeChar::Uint, 4) => Dtype::U32,
        (TypeChar::Int, 4) => Dtype::I32,
        (TypeChar::Float, 4) => Dtype::F32,
        _ => return None,
    })
}
