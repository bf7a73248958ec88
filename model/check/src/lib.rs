//! The world that attacks the rankwise protocols.
//!
//! | module | |
//! | --- | --- |
//! | [`registry`] | requirement, claim, mutants; what every model exports |
//! | [`explore`] | breadth-first search with shortest counterexamples, stuck states and budgets |
//! | [`waits`] | wait-for pass: any schedule at any world, in linear time |
//! | [`lanes`] | counterexamples as a person reads them |
//! | [`replay`] | recorded runs against the model |
//! | [`models`] | one for each protocol |
//! | [`docs`] | the pages that are generated from all this |
#![forbid(unsafe_code)]

pub mod docs;
pub mod explore;
pub mod lanes;
pub mod models;
pub mod registry;
pub mod replay;
pub mod waits;
