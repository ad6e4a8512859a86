//! A window frame's `EXCLUDE`: carried through the parser as the first thing that the window is parted by.

use sqlparser::ast::{
    Expr, Function, Ident, NamedWindowExpr, Select, Value, WindowSpec, WindowType,
};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{MARK, Reader, is_space, is_word, space};

const EXCLUSIONS: [(&[&str], &str); 4] = [
    (&["current", "row"], "EXCLUDE CURRENT ROW"),
    (&["group"], "EXCLUDE GROUP"),
    (&["ties"], "EXCLUDE TIES"),
    (&["no", "others"], "EXCLUDE NO OTHERS"),
];

/// Takes each `EXCLUDE …` at the end of a window out, and marks the window with it.
pub fn cut(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut from = 0;
    while let Some(at) = tokens.iter().skip(from).position(|token| is_word(&token.token, "exclude"))
    {
        let at = from + at;
        from = at + 1;
        let Some((end, text)) = exclusion(&tokens, at) else { continue };
        let Some((place, parted)) = window(&tokens[..at]) else { continue };
        let span = tokens[at].span;
        tokens.drain(at..end);
        let mark = Token::SingleQuotedString(format!("{MARK}{text}"));
        let inserted = if parted {
            vec![space(), mark, Token::Comma, space()]
        } else {
            let words = [Token::make_keyword("PARTITION"), space(), Token::make_keyword("BY")];
            words.into_iter().chain([space(), mark, space()]).collect()
        };
        let inserted = inserted.into_iter().map(|token| TokenWithSpan::new(token, span));
        tokens.splice(place..place, inserted);
    }
    tokens
}

/// Reads the exclusion that begins at a token and ends a window; returns its end.
fn exclusion(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, &'static str)> {
    EXCLUSIONS.iter().find_map(|(words, text)| {
        let mut reader = Reader { tokens, at: at + 1 };
        let read = reader.words(words) && reader.peek() == Some(&Token::RParen);
        read.then_some((reader.at, *text))
    })
}

/// Finds the position of a mark in the window that ends here, and whether it is split already.
fn window(before: &[TokenWithSpan]) -> Option<(usize, bool)> {
    let last = before.iter().rev().find(|token| !is_space(&token.token))?;
    if !["preceding", "following", "row"].iter().any(|word| is_word(&last.token, word)) {
        return None;
    }
    let mut depth = 0_usize;
    let mut frame = None;
    let mut order = None;
    for (at, token) in before.iter().enumerate().rev() {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => break,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            word if frame.is_none() => {
                if ["rows", "range", "groups"].iter().any(|unit| is_word(word, unit)) {
                    frame = Some(at);
                }
            }
            _ => {
                let mut reader = Reader { tokens: before, at };
                if reader.words(&["partition", "by"]) {
                    return Some((reader.at, true));
                }
                if reader.words(&["order", "by"]) {
                    order = Some(at);
                }
            }
        }
    }
    frame.map(|frame| (order.unwrap_or(frame), false))
}

pub fn write_call(function: &mut Function) {
    if let Some(WindowType::WindowSpec(spec)) = &mut function.over {
        write(spec);
    }
}

pub fn write_named(select: &mut Select) {
    for definition in &mut select.named_window {
        if let NamedWindowExpr::WindowSpec(spec) = &mut definition.1 {
            write(spec);
        }
    }
}

/// Replaces a marked window by its text, which every check has seen, and the exclusion.
fn write(spec: &mut WindowSpec) {
    let text = match spec.partition_by.first() {
        Some(Expr::Value(value)) => match &value.value {
            Value::SingleQuotedString(text) => text.strip_prefix(MARK),
            _ => None,
        },
        _ => None,
    };
    let known = EXCLUSIONS.iter().find(|(_, known)| text == Some(known));
    let Some((_, exclusion)) = known.filter(|_| spec.window_frame.is_some()) else { return };
    spec.partition_by.remove(0);
    *spec = WindowSpec {
        window_name: Some(Ident::new(format!("{spec} {exclusion}"))),
        partition_by: Vec::new(),
        order_by: Vec::new(),
        window_frame: None,
    };
}
