//! The checker's own tests: what it proves, what it refutes, and that its engines agree.
#![deny(unsafe_code)]

#[path = "check/cases.rs"]
mod cases;
#[path = "check/cross_check.rs"]
mod cross_check;
#[path = "check/layouts.rs"]
mod layouts;
#[expect(unsafe_code, reason = "loom's cells hand out raw pointers")]
#[path = "check/loom/mod.rs"]
mod loom;
#[path = "check/proofs.rs"]
mod proofs;
