//! Black-box tests of the library, on threads and on real processes.

#[path = "it/agreement.rs"]
mod agreement;
#[path = "it/common.rs"]
mod common;
#[path = "it/exchange.rs"]
mod exchange;
#[path = "it/meeting.rs"]
mod meeting;
#[path = "it/processes.rs"]
mod processes;
#[path = "it/subgroup.rs"]
mod subgroup;
