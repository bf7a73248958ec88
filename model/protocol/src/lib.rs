//! The protocols of rankwise as pure values.
//!
//! Everything that a rank decides is in this crate: plain data and functions from (state, input) to
//! (state, effect). There is no IO, clock, thread, randomness or unsafe code here. The driver in
//! `rankwise` carries effects out on real transports; the checker in `rankwise-check` does the same with
//! an adversary as the world. Both call the functions below, so the code that is proved is the code that
//! runs.
//!
//! | module | what it decides |
//! | --- | --- |
//! | [`policy`] | what a deployment may choose: arms by world size, deadlines |
//! | [`rules`] | each decision that a mutant can break |
//! | [`bands`] | which rows a rank owns |
//! | [`legs`] | who sends what to whom, in which groups; statistics |
//! | [`layout`] | where packed edges lie, which pad row takes which |
//! | [`group`] | how an exchange of records is decided |
//! | [`call`] | what ranks say before a collective, and the verdict on it |
//! | [`subgroup`] | whether some of a group's ranks become a group, and in which order |
//! | [`halo`] | the halo exchange from call to unpack |
//! | [`event`] | what a driver logs, for replay |
//! | [`shared`] | the algorithms on shared words that really run |
//! | [`wire`] | byte layouts |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bands;
pub mod call;
pub mod event;
pub mod group;
pub mod halo;
pub mod layout;
pub mod legs;
pub mod policy;
pub mod rules;
pub mod shared;
pub mod subgroup;
pub mod wire;
