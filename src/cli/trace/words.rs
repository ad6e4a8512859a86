//! The one-line forms of a span, a duration and a sum of money.

use chrono::TimeDelta;

use crate::cli::output::brief;
use perihelion_engine::checkpoint::RunStatus;
use perihelion_telemetry::{About, Reason, RunOfTrace, Span, Spent, Status};

/// Characters of a foreign text in a line.
pub(super) const TEXT: usize = 160;

pub(super) fn line(span: &Span) -> String {
    let took = length(span.duration());
    let spent = spent(span.spent);
    let line = match &span.about {
        About::Workflow { graph, runs, .. } => {
            let what = if span.within.is_some() { "graph " } else { "" };
            format!("{what}{graph} · {} · {took}{spent}", ran(runs, span.open))
        }
        About::Transition { from, to, reason, .. } => {
            let to = if to.is_empty() { "?".to_owned() } else { to.join(", ") };
            let why = match reason {
                Reason::Edge | Reason::Undecided => String::new(),
                reason => format!(" · {}", reason.as_str().replace('_', " ")),
            };
            let is_moment = span.duration() == TimeDelta::zero();
            let took = if is_moment { String::new() } else { format!(" · {took}") };
            format!("{from} → {to}{why}{took}{spent}")
        }
        About::Chat { role, model, attempts, .. } => {
            let model = model.as_deref().unwrap_or("no answer");
            let again =
                if *attempts > 1 { format!(" · {attempts} attempts") } else { String::new() };
            format!("chat {model} ({role}) · {took}{spent}{again}")
        }
        About::Agent { agent, reflection_status, attempts, .. } => {
            let verdict =
                reflection_status.as_ref().map(|status| format!(" · {status}")).unwrap_or_default();
            let rounds = match attempts {
                Some(attempts) if *attempts > 1 => format!(" after {attempts} attempts"),
                _ => String::new(),
            };
            format!("{agent}{verdict}{rounds} · {took}{spent}")
        }
        About::Stage { stage, .. } => format!("stage {stage} · {took}{spent}"),
        About::Tool { server, tool, attempts, .. } => {
            let dot = if server.is_empty() { "" } else { "." };
            let sent = match attempts {
                0 => " · not sent".to_owned(),
                1 => String::new(),
                more => format!(" · sent {more} times"),
            };
            format!("{server}{dot}{tool} · {took}{sent}")
        }
        About::Reflection { verdict, attempt, of, .. } => {
            let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
            let verdict = verdict.as_deref().unwrap_or("no verdict yet");
            format!("reflect · {verdict} · attempt {attempt}{of} · {took}{spent}")
        }
        About::Question { interrupt_kind, answered, .. } => {
            let state = if *answered { "answered" } else { "waiting for a person" };
            format!("asked a person ({interrupt_kind}) · {state}")
        }
    };
    format!("{} {}", mark(span), brief(&line, 400))
}

pub(super) fn mark(span: &Span) -> char {
    match (&span.status, &span.about) {
        (Status::Error { .. }, _) => '✗',
        (Status::Ok | Status::Unset, _) if span.open => '…',
        (_, About::Question { .. }) => '?',
        (_, About::Reflection { verdict: Some(verdict), .. }) if verdict == "REJECTED" => '↺',
        (Status::Ok, _) => '✓',
        (Status::Unset, _) => '·',
    }
}

pub(super) fn ran(runs: &[RunOfTrace], open: bool) -> String {
    let one = |(index, run): (usize, &RunOfTrace)| {
        let word = match run.status {
            RunStatus::Running if open && index + 1 == runs.len() => "not finished",
            RunStatus::Running => "crashed",
            RunStatus::Queued => "queued for a worker",
            RunStatus::Done => "done",
            RunStatus::Interrupted => "waiting for a person",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "stopped",
        };
        format!("run {} {word}", run.number)
    };
    runs.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

/// Describes the usage of model calls; empty without any.
pub(super) fn spent(spent: Option<Spent>) -> String {
    match spent {
        Some(spent) if spent.input_tokens + spent.output_tokens > 0 => {
            let tokens = format!(" · {} → {} tokens", spent.input_tokens, spent.output_tokens);
            let cost = cost(spent).map(|cost| format!(" · {cost}")).unwrap_or_default();
            format!("{tokens}{cost}")
        }
        _ => String::new(),
    }
}

/// Describes the cost, if prices are configured; an incomplete sum is a lower bound.
pub(super) fn cost(spent: Spent) -> Option<String> {
    let least = if spent.unpriced > 0 { "≥ " } else { "" };
    Some(format!("{least}{}", dollars(i128::from(spent.nano_usd?))))
}

/// Writes billionths of a US dollar, to four digits that count.
pub(super) fn dollars(nano: i128) -> String {
    let sign = if nano < 0 { "-" } else { "" };
    let amount = nano.unsigned_abs();
    match amount {
        0 => "$0".to_owned(),
        1..=99_999 => format!("{sign}${:.7}", amount as f64 / 1e9),
        100_000..=999_999_999 => format!("{sign}${:.4}", amount as f64 / 1e9),
        _ => format!("{sign}${:.2}", amount as f64 / 1e9),
    }
}

pub(super) fn length(duration: TimeDelta) -> String {
    match duration.num_milliseconds() {
        ms if ms < 1_000 => format!("{ms} ms"),
        ms if ms < 60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        ms if ms < 3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        ms => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sums_are_not_rounded_to_zero() {
        let words = [0, 1_500, 1_234_500, 2_500_000_000, -40_000_000].map(dollars);
        assert_eq!(words, ["$0", "$0.0000015", "$0.0012", "$2.50", "-$0.0400"]);
    }

    #[test]
    fn a_sum_with_missing_calls_is_marked() {
        let spent =
            Spent { calls: 2, nano_usd: Some(1_000_000_000), unpriced: 1, ..Spent::default() };
        assert_eq!(cost(spent).unwrap(), "≥ $1.00");
        assert_eq!(cost(Spent { nano_usd: None, ..spent }), None);
    }
}
