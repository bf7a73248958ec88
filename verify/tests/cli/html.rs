//! `explain FILE --html OUT`: the page as text, and in a browser where there is one.

use super::common::{Folder, run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The deadlock that `halo.coalesce = false` leads to, from the command itself.
fn deadlock() -> Value {
    let words =
        ["prove", "--json", "--set", "halo.coalesce=false", "--only", "halo/legs-forced", "--worlds", "2"];
    let found = run(&words).json()["obligations"][0]["counterexample"].clone();
    assert_eq!((&found["requirement"], &found["cycle"]), (&json!("HAL-3"), &json!([0, 1])), "{found}");
    found
}

/// The page of `found`, and where it is.
fn page(folder: &Folder, found: &Value) -> (String, String) {
    let file = folder.write("found.json", found.to_string().as_bytes());
    let out = folder.path().join("page.html").to_str().expect("UTF-8").to_owned();
    let done = run(&["explain", &file, "--html", &out]);
    assert_eq!((done.code, done.stdout), (Some(0), format!("kept in {out}\n")), "{}", done.stderr);
    (std::fs::read_to_string(&out).expect("the page"), out)
}

/// `lanes` that act in turn, `steps` in all, and then wait in a circle.
fn long(lanes: usize, steps: usize) -> Value {
    let step = |at: usize| {
        let peer = at.is_multiple_of(3).then_some((at * 5 + 1) % lanes);
        json!({ "lane": at % lanes, "text": format!("does thing {at} => it is done"), "peer": peer })
    };
    let wait = |lane: usize| json!({ "lane": lane, "on": (lane + 1) % lanes, "why": "the next one" });
    json!({
        "requirement": "HAL-3", "claim": "all is well", "study": "halo/legs", "world": lanes, "setting": "",
        "policy": [], "mutant": null, "lanes": (0..lanes).map(|lane| format!("rank {lane}")).collect::<Vec<_>>(),
        "steps": (0..steps).map(step).collect::<Vec<_>>(), "waits": (0..lanes).map(wait).collect::<Vec<_>>(),
        "cycle": (0..lanes).collect::<Vec<_>>(), "sentence": "All wait.",
    })
}

#[test]
fn the_page_says_what_where_under_which_policy_and_who_waits_for_whom() {
    let folder = Folder::new();
    let (page, _) = page(&folder, &deadlock());
    for fragment in [
        "<b>HAL-3</b> does not hold",
        "every leg completes on an arm that the environment forces",
        "<p class=\"wrong\">Deadlock: ranks 0 and 1 wait for each other in a circle",
        "<code><b>halo.coalesce</b> = false</code><span>--set halo.coalesce=false</span>",
        "2 ranks",
        "halo/legs-forced",
        "In a circle: rank 0 waits for rank 1 waits for rank 0.",
        ">waits for</text>",
    ] {
        assert!(page.contains(fragment), "{fragment}");
    }
}

#[test]
fn the_page_needs_nothing_else() {
    let folder = Folder::new();
    let (page, _) = page(&folder, &deadlock());
    for fragment in ["http://", "https://", "src=", "href=", "url(", "@import", "unsafe-inline", "eval("] {
        assert!(!page.contains(fragment), "{fragment}");
    }
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
}

#[test]
fn many_lanes_and_long_runs_have_a_row_for_each_step() {
    let folder = Folder::new();
    for (lanes, steps) in [(1, 1), (8, 200), (24, 40)] {
        let (page, _) = page(&folder, &long(lanes, steps));
        assert_eq!(page.matches("<li data-at=").count(), steps);
        assert!(page.len() < 1 << 20, "{} bytes", page.len());
    }
}

#[test]
fn a_counterexample_without_lanes_has_a_page_too() {
    let folder = Folder::new();
    let mut found = deadlock();
    for list in ["lanes", "steps", "waits", "cycle"] {
        found[list] = json!([]);
    }
    let (page, _) = page(&folder, &found);
    assert!(page.contains("which have no steps to draw") && !page.contains("<svg"));
}

/// A counterexample every text of which tries to become markup.
fn hostile() -> Value {
    let text = "</span></text></title></style></script><script>document.title='taken'</script>\
                <img src=x onerror=\"document.title='taken'\">\" onload='x'";
    json!({
        "requirement": text, "claim": text, "study": text, "world": 2, "setting": text,
        "policy": [{ "key": text, "value": text, "origin": text }], "mutant": text, "lanes": [text, text],
        "steps": [{ "lane": 0, "text": format!("{text} => {text}"), "peer": 1 }],
        "waits": [{ "lane": 0, "on": 1, "why": text }, { "lane": 1, "on": 0, "why": text }], "cycle": [0, 1],
        "sentence": text,
    })
}

#[test]
fn a_hostile_file_injects_no_markup() {
    let folder = Folder::new();
    let (page, _) = page(&folder, &hostile());
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (1, 1));
    assert_eq!((page.matches("<style").count(), page.matches("</style").count()), (1, 1));
    assert!(!page.contains("<img") && !page.contains("onload='"));
}

#[test]
fn a_peer_that_does_not_exist_is_refused() {
    let folder = Folder::new();
    let mut found = long(2, 1);
    found["steps"][0]["peer"] = json!(2);
    let file = folder.write("found.json", found.to_string().as_bytes());
    let done = run(&["explain", &file, "--html", "page.html"]);
    assert!(done.code == Some(1) && done.stderr.contains("lane 2 of 2"), "{done:?}");
}

#[test]
fn a_requirement_has_no_page() {
    let done = run(&["explain", "HAL-3", "--html", "page.html"]);
    let said = "rankwise: --html: found HAL-3, expected a counterexample that prove wrote";
    assert!(done.code == Some(1) && done.stderr.starts_with(said), "{done:?}");
}

/// Runs Chromium on a page, headless, and gives what it prints; `None` where it is not installed, unless
/// `RANKWISE_NEED_CHROMIUM` is set: then it must be.
fn browse(folder: &Folder, page: &str, words: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join("chromium").is_file()) {
        assert!(
            std::env::var_os("RANKWISE_NEED_CHROMIUM").is_none(),
            "chromium is not on PATH, and is needed"
        );
        eprintln!("chromium is not on PATH: the page was not looked at in a browser");
        return None;
    }
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    // Its sandbox refuses to run as root; the pages are ours.
    let quiet = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--hide-scrollbars",
        "--window-size=1280,720",
    ];
    let output = Command::new("timeout")
        .args(["120", "chromium"])
        .args(quiet)
        .arg(profile)
        .args(words)
        .arg(format!("file://{page}"))
        .output()
        .expect("chromium starts");
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn in_a_browser_the_page_goes_to_the_step_it_is_asked_for() {
    let folder = Folder::new();
    let (_, out) = page(&folder, &long(3, 4));
    let Some(dom) = browse(&folder, &format!("{out}#step=2&theme=dark"), &["--dump-dom"]) else { return };
    for fragment in [
        "data-theme=\"dark\"",
        "<body data-step=\"2\">",
        "<li data-at=\"1\"><span",
        "<li data-at=\"2\" class=\"current\" aria-current=\"step\">",
        "<li data-at=\"3\" class=\"later\">",
        "<div class=\"end later\" data-at=\"5\">",
        "<div class=\"controls\" role=\"toolbar\" aria-label=\"Steps\">",
        "aria-live=\"polite\">2 of 4. rank 1: does thing 1 =&gt; it is done</p>",
    ] {
        assert!(dom.contains(fragment), "{fragment}\n{dom}");
    }
    let dom = browse(&folder, &out, &["--dump-dom"]).expect("as before");
    assert!(dom.contains("<body data-step=\"5\">") && dom.contains("End. All wait."), "{dom}");
    assert!(!dom.contains("class=\"later") && dom.contains("<div class=\"end\" data-at=\"5\""), "{dom}");
}

#[test]
fn in_a_browser_a_hostile_file_runs_nothing() {
    let folder = Folder::new();
    let (_, out) = page(&folder, &hostile());
    let Some(dom) = browse(&folder, &format!("{out}#step=1"), &["--dump-dom"]) else { return };
    assert!(
        dom.contains("data-step=\"1\"") && !dom.contains("<title>taken") && !dom.contains("<img"),
        "{dom}"
    );
}

#[test]
fn in_a_browser_the_page_is_drawn_light_and_dark() {
    let folder = Folder::new();
    let (_, out) = page(&folder, &deadlock());
    let shot = |theme: &str| {
        let picture = folder.path().join(format!("{theme}.png"));
        let word = format!("--screenshot={}", picture.display());
        browse(&folder, &format!("{out}#theme={theme}"), &[&word]).map(|_| bytes(&picture))
    };
    let (Some(light), Some(dark)) = (shot("light"), shot("dark")) else { return };
    // An empty page of this size is compressed to under 10 kB.
    assert!(light.len() > 40_000 && dark.len() > 40_000, "{} and {} bytes", light.len(), dark.len());
    assert_ne!(light, dark);
}

fn bytes(picture: &Path) -> Vec<u8> {
    let bytes = std::fs::read(picture).expect("a screenshot");
    assert!(bytes.starts_with(b"\x89PNG"));
    bytes
}
