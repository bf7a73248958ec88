//! The algorithms on shared words in every order of steps, each load giving every value that its ordering allows.
//!
//! loom runs the code of `protocol::shared` that ships; only words, slots and ring are its own. Beside each shape
//! stands what it can see and what it cannot. Then each ordering is weakened, one at a time, and a shape must
//! refute it.
//!
//! No shape sees: a failed swap that gives an old value, a load that runs after a later store, a torn word, what a
//! compiler does to the bytes of other processes. loom has none of these.

mod board;
mod channel;

use loom::model::Builder;
use loom::sync::atomic::AtomicU64;
use rankwise_protocol::shared::Word;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What stands in place of the orderings that the code asks for.
#[derive(Clone, Copy, Default)]
struct Instead {
    load: Option<Ordering>,
    store: Option<Ordering>,
    swapped: Option<Ordering>,
    not_swapped: Option<Ordering>,
}

struct Shared {
    word: AtomicU64,
    instead: Instead,
}

impl Shared {
    fn new(instead: Instead) -> Self {
        Shared { word: AtomicU64::new(0), instead }
    }
}

impl Word for Shared {
    fn load(&self, ordering: Ordering) -> u64 {
        self.word.load(self.instead.load.unwrap_or(ordering))
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.word.store(value, self.instead.store.unwrap_or(ordering));
    }

    fn compare_exchange(&self, current: u64, new: u64, yes: Ordering, no: Ordering) -> Result<u64, u64> {
        let (yes, no) = (self.instead.swapped.unwrap_or(yes), self.instead.not_swapped.unwrap_or(no));
        self.word.compare_exchange(current, new, yes, no)
    }
}

/// Every order of a shape's steps in which a thread that could go on is left at most `preemptions` times.
fn in_every_order(preemptions: Option<usize>, shape: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(shape);
}

/// Panics of loom reach the caller, whichever thread of the shape they come from.
fn assert_refuted(shape: impl FnOnce()) {
    let panic = catch_unwind(AssertUnwindSafe(shape)).expect_err("every order is well");
    let text = panic.downcast_ref::<String>().map_or("", String::as_str);
    assert!(text.contains("Causality violation"), "refuted for another reason: {text}");
}

/// Something that must come about in some order.
fn seen() -> Arc<AtomicBool> {
    Arc::default()
}
