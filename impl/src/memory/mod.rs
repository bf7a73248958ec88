//! Memory: mappings, private buffers, the mark of a process, and the region that the ranks of a group share.

mod mapping;
mod origin;
mod region;

pub(crate) use mapping::{Buffer, Mapping};
pub(crate) use origin::Origin;
pub(crate) use region::Region;
