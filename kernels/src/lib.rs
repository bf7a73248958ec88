//! The byte layouts that device code shares with host code, as a C header.
//!
//! `include/wire.h` is generated from [`rankwise_protocol::wire`] and committed, so that a C or CUDA compiler
//! needs nothing else. A test compares the two.
#![forbid(unsafe_code)]

use rankwise_protocol::wire;
use std::fmt::Write;

/// The text of `include/wire.h`.
///
/// ```
/// assert!(rankwise_kernels::header().contains("#define RANKWISE_RECORD_BYTES 256"));
/// ```
pub fn header() -> String {
    let constants = [
        ("MAGIC", format!("0x{:08x}u", wire::MAGIC), "first bytes of a record and of a board"),
        ("VERSION", format!("{}u", wire::VERSION), "layout version"),
        ("RECORD_BYTES", wire::RECORD_BYTES.to_string(), "bytes of a record slot"),
        (
            "RECORD_HEADER_BYTES",
            wire::RECORD_HEADER_BYTES.to_string(),
            "bytes of a record before its payload",
        ),
        ("PAYLOAD_BYTES_MAX", wire::PAYLOAD_BYTES_MAX.to_string(), "bytes of payload at most"),
        ("LINE_BYTES", wire::LINE_BYTES.to_string(), "distance of words that different ranks write"),
    ];
    let mut text = String::from(OPENING);
    for (name, value, meaning) in &constants {
        writeln!(text, "/* {meaning} */\n#define RANKWISE_{name} {value}\n")
            .expect("a string takes any text");
    }
    text.push_str(CLOSING);
    text
}

const OPENING: &str = "\
/* Byte layouts of rankwise. Generated from the wire module of rankwise-protocol: do not edit.
 * Little endian throughout. */
#ifndef RANKWISE_WIRE_H
#define RANKWISE_WIRE_H

#ifdef __cplusplus
#define RANKWISE_STATIC_ASSERT static_assert
#else
#define RANKWISE_STATIC_ASSERT _Static_assert
#endif

";

const CLOSING: &str = "\
RANKWISE_STATIC_ASSERT(RANKWISE_RECORD_HEADER_BYTES + RANKWISE_PAYLOAD_BYTES_MAX == RANKWISE_RECORD_BYTES,
                       \"header and payload fill a record slot\");
RANKWISE_STATIC_ASSERT(RANKWISE_RECORD_BYTES % RANKWISE_LINE_BYTES == 0,
                       \"record slots of different ranks share no line\");
RANKWISE_STATIC_ASSERT((RANKWISE_LINE_BYTES & (RANKWISE_LINE_BYTES - 1)) == 0,
                       \"a line is a power of two\");

#endif
";

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    fn committed() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("include/wire.h")
    }

    #[test]
    fn the_committed_header_is_the_generated_one() {
        let committed = std::fs::read_to_string(committed()).expect("kernels/include/wire.h");
        let regenerate = "cargo run -q -p rankwise-kernels --example wire > kernels/include/wire.h";
        assert!(
            committed == super::header(),
            "kernels/include/wire.h is stale; write it anew with\n  {regenerate}"
        );
    }

    #[test]
    fn a_c_compiler_takes_the_header() {
        for language in [["-xc", "-std=c11"], ["-xc++", "-std=c++17"]] {
            let compile = Command::new("cc")
                .args(["-fsyntax-only", "-Wall", "-Wextra", "-Werror"])
                .args(language)
                .arg("-include")
                .arg(committed())
                .arg("/dev/null")
                .output();
            // No C compiler, or one without that language: nothing to ask.
            let Ok(output) = compile else { return };
            let errors = String::from_utf8_lossy(&output.stderr);
            let absent = errors.contains("cannot execute") || errors.contains("not installed");
            assert!(output.status.success() || absent, "{language:?}: {errors}");
        }
    }
}
