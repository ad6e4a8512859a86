//! Draws the picture: plain SVG of shapes and words.

use std::fmt::Write as _;

use super::data::{MOST_COLORS, Point};
use super::{Chart, Kind, Values};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 84.0;
/// Colors that people with color blindness can distinguish (Okabe and Ito).
const COLORS: [&str; MOST_COLORS] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#555555"];

pub fn picture(chart: &Chart, values: &Values) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{title}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n",
        title = escape(&chart.title)
    );
    text(&mut out, WIDTH / 2.0, 24.0, "middle", &chart.title, " font-size=\"16\"");
    if chart.kind == Kind::Pie {
        pie(&mut out, values);
    } else {
        let plane = Plane::of(chart, values);
        plane.axes(&mut out, chart);
        plane.marks(&mut out, chart.kind);
        if values.series.len() > 1 {
            legend(&mut out, &values.series);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn escape(text: &str) -> String {
    let visible: String = text.chars().filter(|c| !c.is_control()).collect();
    let words = visible.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    words.replace('"', "&quot;")
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str, more: &str) {
    let words = escape(words);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{words}</text>"
    );
}

fn color(at: usize) -> &'static str {
    COLORS[at % COLORS.len()]
}

fn level_line(out: &mut String, y: f64, stroke: &str) {
    let right = WIDTH - RIGHT;
    let _ = writeln!(
        out,
        "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\" stroke=\"{stroke}\"/>"
    );
}

fn color_key(out: &mut String, x: f64, y: f64, at: usize) {
    let fill = color(at);
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"10\" height=\"10\" fill=\"{fill}\"/>"
    );
}

/// The positions of values on the picture.
struct Plane<'a> {
    values: &'a Values,
    low: f64,
    high: f64,
    step: f64,
    /// Smallest and largest x, where x is a number on a scale.
    x_range: Option<(f64, f64)>,
}

impl<'a> Plane<'a> {
    fn of(chart: &Chart, values: &'a Values) -> Self {
        let (low, high) = values.range();
        let step = nice_step((high - low) / 5.0);
        let low = (low / step + 1e-9).floor() * step;
        let high = (high / step - 1e-9).ceil() * step;
        let scaled = values.numeric_x && chart.kind != Kind::Bar;
        let xs = || values.points.iter().filter_map(|point| point.x_number);
        let x_range = scaled.then(|| {
            let min = xs().fold(f64::MAX, f64::min);
            let max = xs().fold(f64::MIN, f64::max);
            if min == max { (min - 0.5, max + 0.5) } else { (min, max) }
        });
        Self { values, low, high, step, x_range }
    }

    fn y(&self, value: f64) -> f64 {
        let height = HEIGHT - TOP - BOTTOM;
        TOP + height * (self.high - value) / (self.high - self.low)
    }

    fn slot(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.values.labels.len().max(1) as f64
    }

    fn label_of(&self, point: &Point) -> usize {
        self.values.labels.iter().position(|label| *label == point.x).unwrap_or(0)
    }

    fn x(&self, point: &Point) -> f64 {
        if let (Some((min, max)), Some(x)) = (self.x_range, point.x_number) {
            return LEFT + 8.0 + (WIDTH - LEFT - RIGHT - 16.0) * (x - min) / (max - min);
        }
        LEFT + self.slot() * (self.label_of(point) as f64 + 0.5)
    }

    fn axes(&self, out: &mut String, chart: &Chart) {
        let steps = ((self.high - self.low) / self.step).round() as u32;
        for value in (0..=steps).map(|at| self.low + f64::from(at) * self.step) {
            let y = self.y(value);
            level_line(out, y, "#dddddd");
            text(out, LEFT - 8.0, y + 4.0, "end", &short(value, self.step), "");
        }
        level_line(out, self.y(0.0_f64.clamp(self.low, self.high)), "#333333");
        // As many labels as there is room for, the first and the last among them.
        let every = (self.values.labels.len() as f64 / 24.0).ceil().max(1.0) as usize;
        let slanted = self.values.labels.iter().map(|label| label.chars().count()).max();
        let slanted = slanted.unwrap_or(0) as f64 * 7.0 > self.slot() * every as f64;
        let mut shown: Vec<&String> = Vec::new();
        for point in &self.values.points {
            if !self.label_of(point).is_multiple_of(every) || shown.contains(&&point.x) {
                continue;
            }
            shown.push(&point.x);
            let x = self.x(point);
            let y = HEIGHT - BOTTOM + 18.0;
            let label: String = point.x.chars().take(18).collect();
            if slanted {
                let more = format!(" transform=\"rotate(-35 {x:.1} {y:.1})\"");
                text(out, x, y, "end", &label, &more);
            } else {
                text(out, x, y, "middle", &label, "");
            }
        }
        // Below the labels, which take all of the room only when they are slanted.
        let below = if slanted { HEIGHT - 8.0 } else { HEIGHT - BOTTOM + 40.0 };
        text(out, (LEFT + WIDTH - RIGHT) / 2.0, below, "middle", &chart.x, "");
        let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
        let turned = format!(" transform=\"rotate(-90 16 {middle:.1})\"");
        text(out, 16.0, middle, "middle", &chart.y, &turned);
    }

    fn marks(&self, out: &mut String, kind: Kind) {
        for (at, name) in self.values.series.iter().enumerate() {
            let points: Vec<&Point> =
                self.values.points.iter().filter(|point| point.series == *name).collect();
            match kind {
                Kind::Bar => self.bars(out, &points, at),
                Kind::Line | Kind::Area => self.line(out, &points, at, kind == Kind::Area),
                Kind::Scatter | Kind::Pie => {
                    for point in points {
                        let x = self.x(point);
                        let y = self.y(point.y);
                        let _ = writeln!(
                            out,
                            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{}\" fill-opacity=\"0.7\"/>",
                            color(at)
                        );
                    }
                }
            }
        }
    }

    fn bars(&self, out: &mut String, points: &[&Point], at: usize) {
        let all = self.values.series.len().max(1) as f64;
        let width = self.slot() * 0.8 / all;
        let zero = self.y(0.0);
        for point in points {
            let x = self.x(point) - self.slot() * 0.4 + width * at as f64;
            let y = self.y(point.y);
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                y.min(zero),
                (y - zero).abs(),
                color(at)
            );
        }
    }

    fn line(&self, out: &mut String, points: &[&Point], at: usize, filled: bool) {
        let place: Vec<String> = points
            .iter()
            .map(|point| format!("{:.1},{:.1}", self.x(point), self.y(point.y)))
            .collect();
        if let (true, Some(first), Some(last)) = (filled, points.first(), points.last()) {
            let zero = self.y(0.0);
            let _ = writeln!(
                out,
                "<polygon points=\"{:.1},{zero:.1} {} {:.1},{zero:.1}\" fill=\"{}\" fill-opacity=\"0.3\"/>",
                self.x(first),
                place.join(" "),
                self.x(last),
                color(at)
            );
        }
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
            place.join(" "),
            color(at)
        );
    }
}

fn pie(out: &mut String, values: &Values) {
    let total: f64 = values.points.iter().map(|point| point.y).sum();
    let cx = 230.0;
    let cy = 230.0;
    let radius = 150.0;
    let mut angle = -std::f64::consts::FRAC_PI_2;
    for (at, point) in values.points.iter().enumerate() {
        let share = if total > 0.0 { point.y / total } else { 0.0 };
        let end = angle + share * std::f64::consts::TAU;
        if share > 0.999_999 {
            let _ = writeln!(
                out,
                "<circle cx=\"{cx}\" cy=\"{cy}\" r=\"{radius}\" fill=\"{}\"/>",
                color(at)
            );
        } else if share > 0.0 {
            let large = i32::from(share > 0.5);
            let _ = writeln!(
                out,
                "<path d=\"M {cx} {cy} L {:.1} {:.1} A {radius} {radius} 0 {large} 1 {:.1} {:.1} Z\" fill=\"{}\" stroke=\"white\"/>",
                cx + radius * angle.cos(),
                cy + radius * angle.sin(),
                cx + radius * end.cos(),
                cy + radius * end.sin(),
                color(at)
            );
        }
        angle = end;
        let y = 64.0 + at as f64 * 15.0;
        color_key(out, 430.0, y - 9.0, at);
        let words =
            format!("{} — {} ({:.1} %)", point.x, short(point.y, point.y / 1_000.0), share * 100.0);
        text(out, 446.0, y, "start", &words, "");
    }
}

fn legend(out: &mut String, series: &[String]) {
    let width = (WIDTH - LEFT - RIGHT) / series.len() as f64;
    let most = (((width - 28.0) / 7.0) as usize).clamp(4, 16);
    let mut x = LEFT;
    for (at, name) in series.iter().enumerate() {
        color_key(out, x, 32.0, at);
        let name: String = name.chars().take(most).collect();
        text(out, x + 14.0, 41.0, "start", &name, "");
        x += 28.0 + name.chars().count() as f64 * 7.0;
    }
}

fn nice_step(raw: f64) -> f64 {
    let power = 10.0_f64.powf(raw.max(f64::MIN_POSITIVE).log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * power >= raw);
    factor.unwrap_or(10.0) * power
}

/// Writes a number as people read it on an axis, with the digits that distinguish it from one a step away.
fn short(value: f64, step: f64) -> String {
    let (scale, unit) = match value.abs() {
        size if size >= 1e9 => (1e9, "B"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    // One digit more than the step begins with, for steps of 2.5.
    let begins = (step.abs() / scale).max(1e-12).log10().floor() as i32;
    let digits = usize::try_from(1 - begins).unwrap_or(0);
    let written = format!("{:.digits$}", value / scale);
    let plain = if written.contains('.') {
        written.trim_end_matches('0').trim_end_matches('.')
    } else {
        &written
    };
    format!("{}{unit}", if plain == "-0" { "0" } else { plain })
}
