//! The halo exchange (HAL-1..11): its legs, its tables, and its call from agreement to release.

mod lifecycle;
mod plan;
mod seeds;
mod tables;

use crate::registry::{Module, Requirement};

const fn hal(number: u32) -> Requirement {
    Requirement::new("HAL", number)
}

/// Studies and mutants of the halo exchange.
pub fn module() -> Module {
    let parts = [plan::part(), tables::part(), lifecycle::part()];
    let (studies, mutants): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    Module { name: "halo", studies: studies.concat(), mutants: mutants.concat(), seeds: seeds::variants() }
}

pub use lifecycle::Calls;
pub use plan::{Legs, passed_worlds};
