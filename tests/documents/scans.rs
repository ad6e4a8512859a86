//! Scans and pictures, which Tesseract reads.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::Home;
use super::agent::servers;
use super::endpoint::Endpoint;
use super::external::written;

/// Four lines, 1,240 × 600 dots of one bit: a heading, a paragraph with a divided word, another paragraph.
const SCAN: &[u8] = include_bytes!("../fixtures/scan.png");

/// Returns whether Tesseract is there; without it the tests end here, but not in CI.
#[expect(clippy::print_stderr, reason = "anyone who reads the output is told what was not tested")]
fn is_installed() -> bool {
    let is_there = std::process::Command::new("tesseract").arg("--version").output().is_ok();
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "install tesseract-ocr: scans are not tested"
    );
    if !is_there {
        eprintln!("skipped: there is no Tesseract");
    }
    is_there
}

/// Writes a PDF: a page of text, then a page for each of these ways to place the picture, which is the PNG's own data.
fn pdf(ways: &[&str]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut rest = &SCAN[8..];
    while let [a, b, c, d, kind @ ..] = rest
        && kind.len() > 4
    {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        if kind.starts_with(b"IDAT") {
            data.extend(&kind[4..4 + length]);
        }
        rest = &kind[4 + length + 4..];
    }
    let picture = |mask: &str| {
        let head = format!(
            "<< /Type /XObject /Subtype /Image /Width 1240 /Height 600 /BitsPerComponent 1 {mask} /Filter /FlateDecode \
             /DecodeParms << /Predictor 15 /Colors 1 /BitsPerComponent 1 /Columns 1240 >> /Length {} >>\nstream\n",
            data.len()
        );
        [head.as_bytes(), data.as_slice(), b"\nendstream"].concat()
    };
    let text = "BT /F 12 Tf 72 700 Td (The page before was written with letters.) Tj ET".to_owned();
    let contents = std::iter::once(text).chain(ways.iter().map(|way| (*way).to_owned()));
    let contents: Vec<String> = contents.collect();
    let kids: Vec<String> =
        (0..contents.len()).map(|page| format!("{} 0 R", 6 + 2 * page)).collect();
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
    let mut objects: Vec<Vec<u8>> = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".into(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), kids.len()).into(),
        font.into(),
        picture("/ColorSpace /DeviceGray"),
        picture("/ImageMask true"),
    ];
    for (number, content) in contents.iter().enumerate() {
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R \
                 /Resources << /Font << /F 3 0 R >> /XObject << /S 4 0 R /M 5 0 R >> >> >>",
                7 + 2 * number
            )
            .into(),
        );
        objects
            .push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()).into());
    }
    objects.push("<< /Author (Ann Archer) >>".into());
    written::file(&objects)
}

/// A home with a scan of these pages and a picture.
fn home(ways: &[&str]) -> Home {
    let home = Home::new(None);
    std::fs::write(home.path().join("scan.pdf"), pdf(ways)).unwrap();
    std::fs::write(home.path().join("photo.png"), SCAN).unwrap();
    home
}

/// Adds a file with variables besides the usual ones.
async fn add(home: &Home, file: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = home.command(&["documents", "add", file, "--json"]);
    command.envs(variables.iter().copied()).output().await.unwrap()
}

fn added(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    let added: Value = serde_json::from_slice(&output.stdout).unwrap();
    added["documents"][0].clone()
}

/// Puts a program in the place of Tesseract, and returns the `PATH` with it alone and with what a shell needs.
fn instead(home: &Home, program: &str) -> String {
    let place = home.path().join("bin");
    std::fs::create_dir_all(&place).unwrap();
    let path = place.join("tesseract");
    std::fs::write(&path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{program}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.display().to_string()
}

/// Upright as a picture, twice over itself, as a mask in ink, turned by a quarter, and smaller on a page of its own.
const WAYS: [&str; 5] = [
    "q 595 0 0 288 8 400 cm /S Do Q",
    "q 0 544 612 248 re W n 595 0 0 288 8 400 cm /S Do Q q 595 0 0 288 8 400 cm /S Do Q",
    "q 0 0 0.6 rg 595 0 0 288 8 400 cm /M Do Q",
    "q 0 595 -288 0 400 100 cm /S Do Q",
    "q 400 0 0 194 100 300 cm /S Do Q",
];

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_are_pictures_are_read_and_their_quotes_say_so() {
    if !is_installed() {
        return;
    }
    let home = home(&WAYS);
    let added = added(&add(&home, "scan.pdf", &[]).await);
    let warning = added["warnings"][0].as_str().unwrap();
    for page in 2..=6 {
        assert!(warning.contains(&format!("{page} (9")), "page {page}: {warning}");
    }
    let found = home.json(&["documents", "search", "xylophone in the hall", "--json"]).await;
    let hits = found["hits"].as_array().unwrap();
    assert!(!hits.is_empty());
    for hit in hits {
        assert!(hit["page"].as_u64().unwrap() >= 2, "{hit}");
        assert!((80..=100).contains(&hit["recognized"].as_u64().unwrap()), "{hit}");
    }
    let shown = home.run(&["documents", "search", "xylophone in the hall"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("recognized text (9"), "{shown}");
    let text = home.run(&["documents", "show", added["document"].as_str().unwrap()]).await;
    let text = String::from_utf8_lossy(&text.stdout);
    // A word that the end of a line divides is whole.
    assert_eq!(text.matches("The xylophone in the hall").count(), WAYS.len(), "{text}");
}

/// Two pictures over most of the page, and a number in letters.
const STAMPED: &str = "q 612 0 0 296 0 450 cm /S Do Q q 612 0 0 296 0 100 cm /S Do Q \
    BT /F 9 Tf 450 20 Td (CONTOSO-0004711) Tj ET";

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_under_a_stamp_is_read_beside_it_or_reported() {
    let home = home(&[STAMPED]);
    let nowhere = home.path().join("nowhere").display().to_string();
    let without = added(&add(&home, "scan.pdf", &[("PATH", nowhere.as_str())]).await);
    let warning = without["warnings"][0].as_str().unwrap();
    assert!(warning.contains("install Tesseract") && warning.ends_with(": 2"), "{warning}");
    let delete = async |document: &Value| {
        home.json(&["documents", "delete", document["document"].as_str().unwrap(), "--json"]).await;
    };
    delete(&without).await;
    // A picture without words is no scan.
    let path = instead(&home, "cat >/dev/null; exit 0");
    let picture = added(&add(&home, "scan.pdf", &[("PATH", path.as_str())]).await);
    assert!(picture["warnings"][0].is_null(), "{picture}");
    delete(&picture).await;
    if !is_installed() {
        return;
    }
    let read = added(&add(&home, "scan.pdf", &[]).await);
    assert!(read["warnings"][0].as_str().unwrap().contains(": 2 (9"), "{read}");
    let text = home.run(&["documents", "show", read["document"].as_str().unwrap()]).await;
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(text.contains("CONTOSO-0004711") && text.contains("xylophone in the hall"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_read_and_is_a_document_of_one_page() {
    if !is_installed() {
        return;
    }
    let home = home(&[]);
    let added = added(&add(&home, "photo.png", &[]).await);
    assert_eq!(added["format"], "image");
    let found =
        home.json(&["documents", "search", "rent crowns", "--format", "png", "--json"]).await;
    let hit = &found["hits"][0];
    assert_eq!(hit["page"], 1);
    assert!(
        hit["recognized"].is_u64() && hit["quote"].as_str().unwrap().contains("1,250"),
        "{hit}"
    );
    // A folder may be full of pictures without text.
    let folder = home.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("photo.png"), SCAN).unwrap();
    std::fs::write(folder.join("note.md"), "# Note\n\nShort.\n").unwrap();
    let output = home.json(&["documents", "add", "folder", "--json"]).await;
    assert_eq!(output["documents"].as_array().unwrap().len(), 1, "{output}");
    let wrong = add(&home, "photo.png", &[("PERIHELION_DOCUMENTS_SCAN_LANGUAGES", "xxx")]).await;
    assert!(wrong.status.success(), "the same bytes are not read again: {wrong:?}");
    std::fs::write(home.path().join("other.png"), [SCAN, b"\0"].concat()).unwrap();
    let wrong = add(&home, "other.png", &[("PERIHELION_DOCUMENTS_SCAN_LANGUAGES", "xxx")]).await;
    let why = String::from_utf8_lossy(&wrong.stderr);
    assert!(!wrong.status.success() && why.contains("xxx"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn citations_of_a_scan_say_so_to_the_model_and_the_reader() {
    if !is_installed() {
        return;
    }
    let endpoint = Endpoint::willing().await;
    let home = Home::new(Some(endpoint.url.clone()));
    std::fs::write(home.path().join("photo.png"), SCAN).unwrap();
    home.json(&["documents", "add", "photo.png", "--json"]).await;
    std::fs::write(home.path().join("mcp-servers.toml"), servers(&home, &[])).unwrap();
    let report = home.json(&["run", "What is the rent of the lease?", "--json", "--quiet"]).await;
    let source = &report["results"][0]["sources"][0];
    for field in ["reference", "title"] {
        assert!(
            source[field].as_str().unwrap().contains("recognized text (9"),
            "{field}: {source}"
        );
    }
    let asked = endpoint.asked.lock().unwrap();
    let answer = asked.chats.iter().find(|(_, stage, _)| stage == "answer").unwrap();
    assert!(answer.2.to_string().contains("recognized_in_a_picture"), "{}", answer.2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_read_is_named_and_the_rest_is_added() {
    let home = home(&WAYS[..2]);
    let words = "echo '5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t91\tquokka'";
    let log = home.path().join("log").display().to_string();
    for (program, timeout, why) in [
        ("echo broken >&2; exit 3", "60", "ended with exit status: 3: broken".to_owned()),
        ("cat >/dev/null; exit 0", "60", "no text was recognized".to_owned()),
        (
            "sleep 3600 & echo $! >> LOG; wait",
            "1",
            "more than 1 s (documents.scan_timeout_sec)".to_owned(),
        ),
        ("yes", "1", "ended with exit status: 141".to_owned()),
    ] {
        let path = instead(&home, &program.replace("LOG", &log));
        let variables =
            [("PATH", path.as_str()), ("PERIHELION_DOCUMENTS_SCAN_TIMEOUT_SEC", timeout)];
        let output = add(&home, "photo.png", &variables).await;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && error.contains(&why), "{program}: {error}");
        let output = added(&add(&home, "scan.pdf", &variables).await);
        let warning = output["warnings"][0].as_str().unwrap();
        assert!(warning.contains(&why) && warning.ends_with(": 2, 3"), "{program}: {warning}");
        home.json(&["documents", "delete", output["document"].as_str().unwrap(), "--json"]).await;
    }
    let stray = std::fs::read_to_string(&log).unwrap();
    for pid in stray.lines() {
        let state = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
        assert!(state.is_err() || state.unwrap().contains(") Z"), "{pid} is still there");
    }
    let empty = home.path().join("log.d").display().to_string();
    let output = add(&home, "photo.png", &[("PATH", empty.as_str())]).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("install Tesseract"), "{output:?}");
    let path = instead(&home, words);
    let read = added(&add(&home, "photo.png", &[("PATH", path.as_str())]).await);
    assert_eq!(
        read["warnings"],
        json!(["text recognized in pictures, with its confidence, on pages: 1 (91 %)"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_where_it_is_missing() {
    let home = home(&[]);
    let part = async |path: &str| {
        let mut command = home.command(&["doctor", "--json"]);
        let output = command.env("PATH", path).output().await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let parts = report["parts"].as_array().unwrap().clone();
        parts.into_iter().find(|part| part["name"] == "Tesseract")
    };
    let path = instead(&home, "exit 0");
    assert!(part(&path).await.unwrap()["path"].is_string());
    let missing = part("/nowhere").await.unwrap();
    assert!(
        missing["path"].is_null() && missing["install"].as_str().unwrap().contains("tesseract-ocr")
    );
    let none = "[documents]\nscan_languages = []\n";
    std::fs::write(home.path().join("perihelion.toml"), none).unwrap();
    assert!(part("/nowhere").await.is_none());
}
