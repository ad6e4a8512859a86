//! Text in pictures, recognized by Tesseract: <https://github.com/tesseract-ocr/tesseract>.
//!
//! It reads each picture in a process, which inherits the bounds of this one, and writes one line for each word with
//! the confidence. Invariant: a document's pictures end within their time, whatever they hold.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::builder::{Builder, join, one_line};
use crate::{Error, Format, Limits, Parsed, Warning};

/// Bounds for Tesseract, which is used where it is on `PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tesseract {
    /// Names of languages, joined by `+`.
    pub languages: String,
    /// Seconds for all pictures of a document.
    pub seconds: u64,
}

pub(crate) struct Recognized {
    pub paragraphs: Vec<String>,
    pub percent: u8,
}

const MOST_PICTURES: usize = 1_000;

/// Bytes that are read of the words of a picture.
const MOST_OUTPUT: u64 = 16 << 20;

/// The percentage of confidence below which words are taken for noise.
const NOISE: f64 = 40.0;

const NOTHING: &str = "no text was recognized";

const MISSING: &str = "install Tesseract (the package tesseract-ocr), or run `ocrmypdf` first";

pub const PASSED: [&str; 2] = ["PATH", "TESSDATA_PREFIX"];

pub(crate) struct Recognition<'a> {
    tesseract: Option<&'a Tesseract>,
    until: Instant,
    left: usize,
    /// Why the last picture gave no text.
    pub why: String,
}

impl<'a> Recognition<'a> {
    #[expect(clippy::disallowed_methods, reason = "this crate has no other clock")]
    pub fn new(limits: &'a Limits) -> Self {
        let tesseract = limits.tesseract.as_ref();
        let seconds = tesseract.map_or(0, |tesseract| tesseract.seconds);
        Self {
            tesseract,
            until: Instant::now() + Duration::from_secs(seconds),
            left: MOST_PICTURES,
            why: if tesseract.is_some() { NOTHING } else { MISSING }.to_owned(),
        }
    }

    pub fn is_ready(&self) -> bool {
        self.tesseract.is_some() && self.left > 0
    }

    /// Returns whether the last picture was read, and had no text.
    pub fn found_nothing(&self) -> bool {
        self.why == NOTHING
    }

    /// Returns the texts of a picture's pages, without those that have none.
    pub fn read(&mut self, picture: Vec<u8>, dpi: Option<u32>) -> BTreeMap<u32, Recognized> {
        self.output(picture, dpi).map(|output| texts(&output)).unwrap_or_default()
    }

    /// Returns what Tesseract writes about a picture; `None` says why.
    #[expect(clippy::disallowed_methods, reason = "this crate has no other clock")]
    fn output(&mut self, picture: Vec<u8>, dpi: Option<u32>) -> Option<String> {
        let tesseract = self.tesseract.filter(|_| self.left > 0)?;
        let mut command = Command::new("tesseract");
        command.args(["stdin", "stdout", "--psm", "1", "-l", &tesseract.languages]);
        command.args(["-c", "tessedit_create_tsv=1"]);
        if let Some(dpi) = dpi {
            command.args(["--dpi", &dpi.to_string()]);
        }
        let passed = PASSED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        command.env_clear().env("OMP_THREAD_LIMIT", "1").envs(passed);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let left = std::mem::take(&mut self.left) - 1;
        let Ok(mut child) = command.spawn() else {
            self.why = MISSING.to_owned();
            return None;
        };
        let time = self.until.saturating_duration_since(Instant::now());
        let exchanged = exchange(&mut child, picture, time);
        // It has ended, or runs for too long.
        drop(child.kill());
        let status = child.wait().ok()?;
        let Some((output, errors)) = exchanged else {
            let most = tesseract.seconds;
            self.why = format!("it takes more than {most} s (documents.scan_timeout_sec)");
            return None;
        };
        // Every picture needs the languages; with some of them missing, it reads by the others.
        let is_unable = !status.success() && errors.contains("language");
        self.left = if is_unable { 0 } else { left };
        if status.success() {
            self.why = NOTHING.to_owned();
            return Some(output);
        }
        let why = format!("Tesseract ended with {status}: {}", one_line(&errors));
        self.why = why.chars().take(300).collect();
        None
    }
}

/// Writes a picture and reads both outputs; `None` if they do not end in time.
fn exchange(child: &mut Child, picture: Vec<u8>, time: Duration) -> Option<(String, String)> {
    let mut stdin = child.stdin.take()?;
    let stdout = child.stdout.take()?;
    let stderr = child.stderr.take()?;
    // A process that ends early says why by its status.
    std::thread::spawn(move || drop(stdin.write_all(&picture)));
    let (sender, receiver) = mpsc::channel();
    let errors = std::thread::spawn(move || all_of(stderr));
    std::thread::spawn(move || {
        drop(sender.send((all_of(stdout), errors.join().unwrap_or_default())));
    });
    receiver.recv_timeout(time).ok()
}

fn all_of(output: impl std::io::Read) -> String {
    let mut read = Vec::new();
    drop(output.take(MOST_OUTPUT).read_to_end(&mut read));
    String::from_utf8_lossy(&read).into_owned()
}

/// Reads the words of pages, one a line: level, page, block, paragraph, line, word, four places, confidence and text.
fn texts(output: &str) -> BTreeMap<u32, Recognized> {
    let mut pages: BTreeMap<u32, (Vec<String>, f64, f64)> = BTreeMap::new();
    let mut last = ["", "", "", ""];
    for line in output.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let ["5", page, block, paragraph, row, _, _, _, _, _, confidence, word] = columns[..]
        else {
            continue;
        };
        let (Ok(number), Ok(confidence)) = (page.parse(), confidence.parse::<f64>()) else {
            continue;
        };
        let word = word.trim();
        if word.is_empty() {
            continue;
        }
        let (paragraphs, sure, letters) = pages.entry(number).or_default();
        match paragraphs.last_mut().filter(|_| last[..3] == [page, block, paragraph]) {
            Some(text) if last[3] == row => {
                text.push(' ');
                text.push_str(word);
            }
            Some(text) => join(text, word),
            None => paragraphs.push(word.to_owned()),
        }
        last = [page, block, paragraph, row];
        let length = word.chars().count() as f64;
        *sure += confidence * length;
        *letters += length;
    }
    let recognized = pages.into_iter().filter_map(|(number, (paragraphs, sure, letters))| {
        let confidence = sure / letters;
        let percent = confidence.clamp(0.0, 100.0) as u8;
        (confidence >= NOISE).then_some((number, Recognized { paragraphs, percent }))
    });
    recognized.collect()
}

pub(crate) fn warning(pages: &BTreeMap<u32, Recognized>) -> Warning {
    let pages = pages.iter().map(|(number, page)| (*number, page.percent)).collect();
    Warning::Recognized { pages }
}

pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Parsed, Error> {
    let mut recognition = Recognition::new(limits);
    let pages = recognition.read(bytes.to_vec(), None);
    if pages.is_empty() {
        return Err(Error::Scan { pages: 1, why: recognition.why });
    }
    let mut builder = Builder::new(Format::Image);
    for (number, page) in &pages {
        builder.page(*number);
        page.paragraphs.iter().for_each(|text| builder.paragraph(text));
    }
    builder.warnings.push(warning(&pages));
    Ok(builder.finish())
}
