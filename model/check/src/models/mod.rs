//! One file for each protocol. Each exports its studies and mutants as a [`crate::registry::Module`].

pub mod channel;
pub mod group;
pub mod halo;
mod subgroup;

/// Declares rules that differ from the shipped ones in what is given.
macro_rules! mutant {
    ($(#[$doc:meta])* $name:ident { $($body:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        struct $name;
        impl rankwise_protocol::rules::Rules for $name { $($body)* }
    };
}
pub(crate) use mutant;
