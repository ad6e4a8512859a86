//! Moving lines at the foot of the terminal during work; permanent text is written above them.
//!
//! Enter at [`Bars::add`]. They are drawn on standard error, and only if that is a terminal.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use perihelion_engine::clock;
use terminal_size::{Height, Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::output::{has_json_lines, is_colour_refused};

/// How often the lines move without other drawing.
const TICK: Duration = Duration::from_millis(120);

/// A redraw takes this much of a budget of one second.
const REDRAW: Duration = Duration::from_millis(50);

const FRAMES: [char; 8] = ['⠁', '⠂', '⠄', '⡀', '⢀', '⠠', '⠐', '⠈'];

const BAR: u64 = 20;

pub(super) struct Bars(Mutex<Drawing>);

#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Its message, which can have several rows.
    Message,
    /// Something that turns, the time, and the message.
    Spinner,
    /// How much is done, the time, and the message.
    Bar,
}

/// One line; gone when it [ends](Bar::end).
#[derive(Clone)]
pub(super) struct Bar {
    bars: &'static Bars,
    id: usize,
}

struct Drawing {
    lines: Vec<Line>,
    next_id: usize,
    rows: usize,
    frame: usize,
    is_ticking: bool,
    /// When the budget of redraws is full again.
    is_full_at: Option<Instant>,
}

struct Line {
    id: usize,
    form: Form,
    message: String,
    begun: Instant,
    done: u64,
    of: u64,
}

impl Bars {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Drawing {
            lines: Vec::new(),
            next_id: 0,
            rows: 0,
            frame: 0,
            is_ticking: false,
            is_full_at: None,
        }))
    }

    pub(super) fn is_hidden(&self) -> bool {
        !std::io::stderr().is_terminal() || has_json_lines()
    }

    /// Adds a line where lines are drawn.
    pub(super) fn shown(&'static self, form: Form) -> Option<Bar> {
        (!self.is_hidden()).then(|| self.add(form))
    }

    pub(super) fn add(&'static self, form: Form) -> Bar {
        let mut drawing = self.0.lock();
        let id = drawing.next_id;
        drawing.next_id += 1;
        let begun = clock::monotonic();
        drawing.lines.push(Line { id, form, message: String::new(), begun, done: 0, of: 1 });
        let is_first = !std::mem::replace(&mut drawing.is_ticking, true);
        if let (true, Ok(runtime)) = (is_first, tokio::runtime::Handle::try_current()) {
            runtime.spawn(self.tick());
        }
        Bar { bars: self, id }
    }

    pub(super) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        let mut drawing = self.0.lock();
        drawing.show("");
        let written = write();
        drawing.draw();
        written
    }

    async fn tick(&'static self) {
        loop {
            clock::sleep(TICK).await;
            // A terminal can make its writer wait, and the lease of a run must not wait for that.
            if !tokio::task::spawn_blocking(|| self.move_on()).await.unwrap_or_default() {
                return;
            }
        }
    }

    /// Draws the next frame; false if there is nothing to draw.
    fn move_on(&self) -> bool {
        let mut drawing = self.0.lock();
        drawing.is_ticking = !drawing.lines.is_empty();
        if drawing.is_ticking {
            drawing.frame = (drawing.frame + 1) % FRAMES.len();
            drawing.draw();
        }
        drawing.is_ticking
    }
}

impl Bar {
    pub(super) fn set_message(&self, message: String) {
        self.change(|line| line.message = message);
    }

    pub(super) fn set_done(&self, done: u64, of: u64) {
        self.change(|line| {
            line.done = done;
            line.of = of;
        });
    }

    pub(super) fn end(&self) {
        let mut drawing = self.bars.0.lock();
        drawing.lines.retain(|line| line.id != self.id);
        drawing.draw();
    }

    fn change(&self, change: impl FnOnce(&mut Line)) {
        let mut drawing = self.bars.0.lock();
        if let Some(line) = drawing.lines.iter_mut().find(|line| line.id == self.id) {
            change(line);
        }
        if drawing.has_budget() {
            drawing.draw();
        }
    }
}

impl Drawing {
    fn has_budget(&mut self) -> bool {
        let now = clock::monotonic();
        let full = self.is_full_at.map_or(now, |at| at.max(now)) + REDRAW;
        let has_budget = full <= now + Duration::from_secs(1);
        if has_budget {
            self.is_full_at = Some(full);
        }
        has_budget
    }

    fn draw(&mut self) {
        let (_, columns) = size();
        let lines: Vec<String> =
            self.lines.iter().map(|line| line.text(self.frame, columns)).collect();
        self.show(&lines.join("\n"));
    }

    fn show(&mut self, text: &str) {
        let (_, columns) = size();
        let mut written = String::new();
        if self.rows > 1 {
            let _ = write!(written, "\u{1b}[{}A", self.rows - 1);
        }
        if self.rows > 0 {
            written.push_str("\r\u{1b}[J");
        }
        written.push_str(text);
        self.rows = text.lines().map(|line| width(line).div_ceil(columns).max(1)).sum();
        if std::io::stderr().is_terminal() && !has_json_lines() {
            let _ = std::io::stderr().lock().write_all(written.as_bytes());
        }
    }
}

impl Line {
    fn text(&self, frame: usize, columns: usize) -> String {
        let seconds = self.begun.elapsed().as_secs();
        let time = if seconds < 60 { format!("{seconds}s") } else { format!("{}m", seconds / 60) };
        let sign = match self.form {
            Form::Message => return self.message.clone(),
            Form::Spinner => FRAMES[frame].to_string(),
            Form::Bar => {
                let filled = (self.done.min(self.of) * BAR / self.of.max(1)) as usize;
                format!("{:░<1$}", "█".repeat(filled), BAR as usize)
            }
        };
        let rest = format!(" {time:>4} {}", self.message);
        let rest = cut(&rest, columns.saturating_sub(sign.width()));
        if is_colour_refused() {
            format!("{sign}{rest}")
        } else {
            format!("\u{1b}[36m{sign}\u{1b}[0m{rest}")
        }
    }
}

pub(super) fn size() -> (usize, usize) {
    let size = terminal_size_of(std::io::stderr());
    let (Width(columns), Height(rows)) = size.unwrap_or((Width(79), Height(24)));
    (usize::from(rows.max(1)), usize::from(columns.max(1)))
}

/// Returns the columns of a text, without its color codes.
pub(super) fn width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().width();
    let colored = parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.width()));
    first + colored.sum::<usize>()
}

fn cut(text: &str, columns: usize) -> &str {
    let mut left = columns;
    let end = text.char_indices().find(|(_, letter)| {
        let width = letter.width().unwrap_or(0);
        let fits = width <= left;
        left -= if fits { width } else { 0 };
        !fits
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_measured_and_cut_by_columns() {
        assert_eq!(width("\u{1b}[1mtwo\u{1b}[0m wörds"), 9);
        assert_eq!((cut("日本語", 5), cut("abc", 5), cut("abc", 0)), ("日本", "abc", ""));
    }
}
