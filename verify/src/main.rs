//! _
fn main() {}
