//! Frames from `.npy` files.

use super::common::{Folder, run};

/// A `.npy` file with this header and these bytes.
fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

/// A `.npy` file of version 2 that says how long its header is.
fn version_2(length: u32, header: &[u8]) -> Vec<u8> {
    [&b"\x93NUMPY\x02\x00"[..], &length.to_le_bytes(), header].concat()
}

/// Bytes that repeat late.
fn data(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 167 + at / 251) as u8).collect()
}

#[test]
fn frames_of_every_type_arrive_bit_for_bit() {
    let types = [
        ("|u1", 1, "uint8"),
        ("|i1", 1, "int8"),
        ("<u2", 2, "uint16"),
        ("<i2", 2, "int16"),
        ("<f2", 2, "float16"),
        ("<u4", 4, "uint32"),
        ("<i4", 4, "int32"),
        ("<f4", 4, "float32"),
    ];
    let folder = Folder::new();
    for (descr, element, name) in types {
        let path = folder.write("f.npy", &file(descr, false, "(3, 7, 5, 2)", &data(3 * 7 * 5 * 2 * element)));
        for group in ["shm", "threads"] {
            let done = run(&["run", "halo", "--input", &path, "--group", group, "--repeat", "3", "--json"]);
            assert_eq!(done.code, Some(0), "{descr}: {done:?}");
            let report = done.json();
            assert_eq!(report["dtype"], name);
            assert_eq!(report["shape"], serde_json::json!([3, 7, 5, 2]));
            assert_eq!((&report["verdict"], &report["wrong_bytes"]), (&"equal".into(), &0.into()));
        }
    }
}

#[test]
fn a_file_that_a_library_wrote_is_read() {
    use npyz::WriterBuilder;
    let folder = Folder::new();
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::new().default_dtype().shape(&[2, 6, 4, 3]);
    let mut writer = options.writer(&mut bytes).begin_nd().expect("a header");
    writer.extend((0..2 * 6 * 4 * 3).map(|at| at as f32 / 7.0)).expect("values");
    writer.finish().expect("an end");
    let path = folder.write("f.npy", &bytes);
    let report = run(&["run", "halo", "--input", &path, "--world", "3", "--json"]).json();
    assert_eq!((&report["verdict"], &report["dtype"]), (&"equal".into(), &"float32".into()));
}

#[test]
fn a_wrong_file_is_refused_in_one_line_that_names_the_field() {
    let good = file("|u1", false, "(2, 6, 5, 4)", &data(240));
    let cases = [
        ("data cut", good[..good.len() - 1].to_vec(), "data: found 239 bytes, expected 240 bytes"),
        ("data too long", [&good[..], &[0]].concat(), "data: found 241 bytes, expected 240 bytes"),
        ("header cut", good[..40].to_vec(), "header: found"),
        ("no magic", vec![0; 300], "header: found magic not found"),
        ("empty", Vec::new(), "header: found"),
        ("huge header", version_2(64 << 20, b"{"), "header: found 67108864 bytes (at most 65536 are read)"),
        ("nested header", version_2(60_000, &[b'('; 60_000]), "header: found 60000 brackets"),
        ("long header", version_2(60_000, &[b'x'; 60_000]), "header: found"),
        ("escape", version_2(6, b"{'\x1b[2J"), "header: found"),
        ("escape in descr", file("\x1b[2J", false, "(2, 6, 5, 4)", &[]), "invalid type string"),
        ("big endian", file(">f4", false, "(2, 6, 5, 1)", &data(240)), "descr: found '>f4', expected u1"),
        ("double", file("<f8", false, "(1, 6, 5, 1)", &data(240)), "descr: found '<f8', expected u1"),
        ("bool", file("|b1", false, "(2, 6, 5, 4)", &data(240)), "descr: found '|b1', expected u1"),
        ("Fortran", file("|u1", true, "(2, 6, 5, 4)", &data(240)), "fortran_order: found True"),
        ("3 dimensions", file("|u1", false, "(12, 5, 4)", &data(240)), "shape: found [12, 5, 4], expected 4"),
        ("no frames", file("|u1", false, "(0, 6, 5, 4)", &[]), "shape: found [0, 6, 5, 4], expected no dim"),
        ("too few rows", file("|u1", false, "(2, 3, 5, 4)", &data(120)), "height is 3 rows for 4 ranks"),
        (
            "more than memory",
            file("<u4", false, "(4294967296, 4294967296, 5, 4)", &data(240)),
            "shape: found [4294967296, 4294967296, 5, 4], expected a product",
        ),
    ];
    let folder = Folder::new();
    for (name, bytes, expected) in cases {
        let path = folder.write("f.npy", &bytes);
        let done = run(&["run", "halo", "--input", &path]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{name}: {done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{name}: {done:?}");
        let plain = done.stderr.trim_end().chars().all(|letter| !letter.is_control());
        assert!(plain && done.stderr.len() < 500, "{name}: {done:?}");
        assert!(done.stderr.contains(expected), "{name}: {expected}: {}", done.stderr);
    }
    let folder_itself = folder.path().to_str().expect("UTF-8");
    let done = run(&["run", "halo", "--input", folder_itself]);
    assert!(done.code == Some(1) && done.stderr.contains("no regular file"), "{done:?}");
}

#[test]
fn frames_that_no_machine_holds_are_refused_in_one_line() {
    let folder = Folder::new();
    let start = file("|u1", false, "(1048576, 1048576, 1, 1)", &[]);
    let path = folder.write("f.npy", &start);
    let sparse = std::fs::File::options().write(true).open(&path).expect("the file");
    sparse.set_len(start.len() as u64 + (1 << 40)).expect("a sparse file");
    for group in ["shm", "threads"] {
        let done = run(&["run", "halo", "--input", &path, "--group", group]);
        assert_eq!((done.code, done.stderr.lines().count()), (Some(1), 1), "{group}: {done:?}");
        let expected = "bytes, expected what this machine can give";
        assert!(done.stderr.contains("memory: found ") && done.stderr.contains(expected), "{done:?}");
    }
}
