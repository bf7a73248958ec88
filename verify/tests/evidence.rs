//! What the policy names as measured is in `docs/measurements`, in the form that its README describes.

use rankwise_protocol::policy::{Evidence, Policy};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn every_measured_rung_has_a_row_that_covers_its_arm_and_world() {
    for rung in &Policy::shipped().halo().rungs {
        let Evidence::Measured { file, row } = &rung.evidence else { continue };
        let rows = rows(&folder().join(file));
        let found = rows.iter().find(|candidate| candidate["row"] == row.as_str());
        let found = found.unwrap_or_else(|| panic!("{file} has no row {row}"));
        assert_eq!(found["arm"], rung.arm.name(), "{file}#{row}: arm");
        let world = found["world"].as_u64().and_then(|world| u32::try_from(world).ok());
        assert!(world.is_some_and(|world| rung.worlds.contains(world)), "{file}#{row}: world");
    }
}

#[test]
fn every_row_has_the_documented_form() {
    let files =
        std::fs::read_dir(folder()).expect("docs/measurements").map(|entry| entry.expect("entry").path());
    let mut checked = 0;
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
        let rows = rows(&file);
        let names: BTreeSet<&str> = rows.iter().filter_map(|row| row["row"].as_str()).collect();
        assert_eq!(names.len(), rows.len(), "{}: a row without a name, or a name twice", file.display());
        for row in &rows {
            check_row(row).unwrap_or_else(|what| panic!("{}: {}: {what}", file.display(), row["row"]));
            checked += 1;
        }
    }
    assert!(checked > 0, "no row was found");
}

fn check_row(row: &Value) -> Result<(), String> {
    let unit = row["unit"].as_str().ok_or("no unit")?;
    if !["ms", "us", "gb_per_s"].contains(&unit) {
        return Err(format!("unit is {unit}"));
    }
    let [arm, rival] = ["arm", "rival"].map(|side| format!("{side}_{unit}"));
    let fixed = ["row", "what", "world", "unit", "arm", "rival", "machine", "date", "versions", "source"];
    let expected: BTreeSet<&str> = fixed.into_iter().chain([arm.as_str(), rival.as_str()]).collect();
    let found: BTreeSet<&str> = row.as_object().ok_or("not an object")?.keys().map(String::as_str).collect();
    if found != expected {
        return Err(format!("fields {found:?}, expected {expected:?}"));
    }
    let samples =
        |side: &str| row[side].as_array().filter(|list| list.iter().all(Value::is_number)).map(Vec::len);
    match (samples(&arm), samples(&rival)) {
        (Some(ours), Some(theirs)) if ours == theirs && ours > 0 => Ok(()),
        (ours, theirs) => Err(format!("samples {ours:?} and {theirs:?}")),
    }
}

fn rows(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let file: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(file["schema"], 1, "schema");
    assert!(file["note"].is_string(), "note");
    file["rows"].as_array().expect("rows").clone()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("verify lies in the workspace")
        .join("docs/measurements")
}
