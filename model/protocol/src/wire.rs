//! Byte layouts: records, their payloads, and the board in shared memory. Little endian throughout.
//!
//! A record slot:
//!
//! | bytes | |
//! | --- | --- |
//! | 0..4 | magic |
//! | 4..6 | version |
//! | 6..8 | op |
//! | 8..16 | nonce |
//! | 16..24 | index |
//! | 24..32 | call |
//! | 32..36 | rank |
//! | 36..38 | payload bytes |
//! | 38..40 | zero |
//! | 40..256 | payload, then zeros |
//!
//! A call record, as payload: status 0 (ready) or 1 + reason, text bytes, fields, zero; text; then each field
//! as its number and a 64-bit value.

use crate::call::{CallRecord, FIELDS_MAX, Field, Op, Reason, Status, TEXT_BYTES_MAX, Text};
use crate::group::{Record, Tag};
use alloc::vec::Vec;

/// First bytes of a record and of a board.
pub const MAGIC: u32 = 0x4b57_4e52;
/// Layout version.
pub const VERSION: u16 = 1;
/// Bytes of a record slot.
pub const RECORD_BYTES: usize = 256;
/// Bytes of a record before its payload.
pub const RECORD_HEADER_BYTES: usize = 40;
/// Bytes of payload at most.
pub const PAYLOAD_BYTES_MAX: usize = RECORD_BYTES - RECORD_HEADER_BYTES;
/// Words that different ranks write lie this far apart, so that no two share a cache line, prefetched
/// neighbours included.
pub const LINE_BYTES: usize = 128;

const CALL_HEADER_BYTES: usize = 4;
const FIELD_BYTES: usize = 9;
const _: () = assert!(CALL_HEADER_BYTES + TEXT_BYTES_MAX + FIELDS_MAX * FIELD_BYTES <= PAYLOAD_BYTES_MAX);

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Fewer bytes than the field needs.
    #[error("{field} is cut off")]
    Truncated {
        /// Which.
        field: &'static str,
    },
    /// A field holds what no build of this version writes.
    #[error("{field} is {found}")]
    Invalid {
        /// Which.
        field: &'static str,
        /// What it holds.
        found: u64,
    },
}

/// Encodes a record. Its payload must fit; ours do, by the constants above.
pub fn encode(record: &Record) -> [u8; RECORD_BYTES] {
    let length = record.payload.len();
    assert!(length <= PAYLOAD_BYTES_MAX, "payload is {length} bytes, at most {PAYLOAD_BYTES_MAX} fit");
    let mut bytes = [0; RECORD_BYTES];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &MAGIC.to_le_bytes());
    put(4, &VERSION.to_le_bytes());
    put(6, &(record.tag.op as u16).to_le_bytes());
    put(8, &record.nonce.to_le_bytes());
    put(16, &record.index.to_le_bytes());
    put(24, &record.tag.call.to_le_bytes());
    put(32, &record.rank.to_le_bytes());
    put(36, &(length as u16).to_le_bytes());
    put(RECORD_HEADER_BYTES, &record.payload);
    bytes
}

/// Decodes a record, or says which field is wrong.
pub fn decode(bytes: &[u8]) -> Result<Record, WireError> {
    let mut reader = Reader { bytes };
    let magic = reader.number("magic", 4)?;
    check("magic", magic, u64::from(MAGIC))?;
    let version = reader.number("version", 2)?;
    check("version", version, u64::from(VERSION))?;
    let op = reader.number("op", 2)?;
    let op = Op::ALL.get(op as usize).copied().ok_or(WireError::Invalid { field: "op", found: op })?;
    let nonce = reader.number("nonce", 8)?;
    let index = reader.number("index", 8)?;
    let call = reader.number("call", 8)?;
    let rank = reader.number("rank", 4)? as u32;
    let length = reader.number("payload bytes", 2)?;
    if length as usize > PAYLOAD_BYTES_MAX {
        return Err(WireError::Invalid { field: "payload bytes", found: length });
    }
    let zero = reader.number("padding", 2)?;
    check("padding", zero, 0)?;
    let payload = reader.take("payload", length as usize)?.to_vec();
    Ok(Record { nonce, rank, index, tag: Tag { op, call }, payload })
}

/// Encodes a call record.
pub fn encode_call(record: &CallRecord) -> Vec<u8> {
    assert!(record.signature.len() <= FIELDS_MAX, "at most {FIELDS_MAX} fields");
    let (status, text) = match &record.status {
        Status::Ready => (0, ""),
        Status::Refused { reason, text } => (1 + *reason as u8, text.as_str()),
    };
    let mut bytes = Vec::with_capacity(PAYLOAD_BYTES_MAX);
    bytes.extend([status, text.len() as u8, record.signature.len() as u8, 0]);
    bytes.extend(text.as_bytes());
    for (field, value) in &record.signature {
        bytes.push(*field as u8);
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

/// Decodes a call record, or says which field is wrong.
pub fn decode_call(bytes: &[u8]) -> Result<CallRecord, WireError> {
    let mut reader = Reader { bytes };
    let status = reader.number("status", 1)?;
    let text_bytes = reader.number("text bytes", 1)?;
    let fields = reader.number("fields", 1)?;
    check("padding", reader.number("padding", 1)?, 0)?;
    if text_bytes as usize > TEXT_BYTES_MAX {
        return Err(WireError::Invalid { field: "text bytes", found: text_bytes });
    }
    if fields as usize > FIELDS_MAX {
        return Err(WireError::Invalid { field: "fields", found: fields });
    }
    let text = core::str::from_utf8(reader.take("text", text_bytes as usize)?)
        .map_err(|_| WireError::Invalid { field: "text", found: text_bytes })?;
    let status = match status as usize {
        0 => Status::Ready,
        reason => {
            let reason = Reason::ALL.get(reason - 1).copied();
            let reason = reason.ok_or(WireError::Invalid { field: "status", found: status })?;
            Status::Refused { reason, text: Text::new(text) }
        }
    };
    let signature = (0..fields)
        .map(|_| {
            let field = reader.number("field", 1)?;
            let known = Field::ALL.get(field as usize).copied();
            let known = known.ok_or(WireError::Invalid { field: "field", found: field })?;
            Ok((known, reader.number("value", 8)?))
        })
        .collect::<Result<_, WireError>>()?;
    check("bytes left over", reader.bytes.len() as u64, 0)?;
    Ok(CallRecord { status, signature })
}

/// Decodes the call records that an exchange gathered, or names the first rank whose record is none.
pub fn decode_calls(records: &[Record]) -> Result<Vec<CallRecord>, u32> {
    records.iter().map(|record| decode_call(&record.payload).map_err(|_| record.rank)).collect()
}

fn check(field: &'static str, found: u64, expected: u64) -> Result<(), WireError> {
    if found == expected { Ok(()) } else { Err(WireError::Invalid { field, found }) }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(WireError::Truncated { field })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number(&mut self, field: &'static str, length: usize) -> Result<u64, WireError> {
        let taken = self.take(field, length)?;
        Ok(taken.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}

/// Where the parts of a group's shared memory lie: board, then one channel for each ordered pair of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLayout {
    /// Ranks.
    pub world: u32,
    /// Record slots of a rank.
    pub slots: u64,
    /// Bytes of a channel's ring.
    pub ring_bytes: usize,
}

impl SharedLayout {
    /// Offset of the decision word. What precedes it is the header that a joining rank checks: magic and
    /// version, world, nonce, ring bytes, each as 64 bits.
    pub fn decision(&self) -> usize {
        LINE_BYTES
    }

    /// Offset of a rank's `posted` word.
    pub fn posted(&self, rank: u32) -> usize {
        self.decision() + LINE_BYTES * (1 + rank as usize)
    }

    /// Offset of the word that a rank's peers count up to wake it, with 32 bits. It and the next two lie in the
    /// second half of the line of `posted`.
    pub fn rung(&self, rank: u32) -> usize {
        self.posted(rank) + LINE_BYTES / 2
    }

    /// Offset of the count of a rank's threads that sleep, with 32 bits.
    pub fn asleep(&self, rank: u32) -> usize {
        self.rung(rank) + 4
    }

    /// Offset of the word that says whether a process has become this rank, with 32 bits.
    pub fn claimed(&self, rank: u32) -> usize {
        self.rung(rank) + 8
    }

    /// Offset of a record slot.
    pub fn slot(&self, rank: u32, slot: u64) -> usize {
        self.posted(self.world) + (u64::from(rank) * self.slots + slot) as usize * RECORD_BYTES
    }

    /// Offset of the channel from one rank to another: `written`, `consumed`, then the ring.
    pub fn channel(&self, from: u32, to: u32) -> usize {
        let channels = self.slot(self.world, 0).next_multiple_of(LINE_BYTES);
        channels + (from as usize * self.world as usize + to as usize) * self.channel_bytes()
    }

    fn channel_bytes(&self) -> usize {
        2 * LINE_BYTES + self.ring_bytes
    }

    /// Bytes of it all.
    pub fn bytes(&self) -> usize {
        self.channel(self.world, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn record() -> Record {
        let tag = Tag { op: Op::Halo, call: u64::MAX };
        Record { nonce: 1, rank: 2, index: 3, tag, payload: vec![9; PAYLOAD_BYTES_MAX] }
    }

    #[test]
    fn a_record_survives_its_bytes() {
        assert_eq!(decode(&encode(&record())), Ok(record()));
    }

    #[test]
    fn a_record_of_another_version_or_op_is_refused_by_name() {
        let mut bytes = encode(&record());
        bytes[4] = 9;
        assert_eq!(decode(&bytes), Err(WireError::Invalid { field: "version", found: 9 }));
        let mut bytes = encode(&record());
        bytes[6] = 99;
        assert_eq!(decode(&bytes), Err(WireError::Invalid { field: "op", found: 99 }));
    }

    #[test]
    fn every_truncation_of_a_record_is_refused() {
        let bytes = encode(&record());
        assert!((0..RECORD_BYTES).all(|length| decode(&bytes[..length]).is_err()));
    }

    #[test]
    fn a_call_record_survives_its_bytes_and_no_truncation_does() {
        let status = Status::Refused { reason: Reason::Shape, text: Text::new("9 bytes") };
        let signature = Field::ALL.map(|field| (field, u64::MAX)).to_vec();
        let record = CallRecord { status, signature };
        let bytes = encode_call(&record);
        assert_eq!(decode_call(&bytes), Ok(record));
        assert!((0..bytes.len()).all(|length| decode_call(&bytes[..length]).is_err()));
    }

    #[test]
    fn parts_of_shared_memory_do_not_overlap() {
        let layout = SharedLayout { world: 3, slots: 2, ring_bytes: 4096 };
        assert!(layout.posted(1) + 8 <= layout.rung(1) && layout.claimed(1) + 4 <= layout.posted(2));
        assert!(layout.posted(2) + LINE_BYTES <= layout.slot(0, 0));
        assert!(layout.slot(2, 1) + RECORD_BYTES <= layout.channel(0, 0));
        assert_eq!(layout.channel(0, 1) - layout.channel(0, 0), 2 * LINE_BYTES + 4096);
    }
}
