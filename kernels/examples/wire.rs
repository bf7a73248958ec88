//! Prints `include/wire.h` as this build would write it.

fn main() {
    print!("{}", rankwise_kernels::header());
}
