//! A grammar of statements that try to be read in two ways.

/// A small generator of numbers, so that a seed makes a statement again.
pub struct Draw(pub u64);

impl Draw {
    /// Returns a number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// Returns one of a list.
    pub fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// Names that are words of Postgres, tables of ours, or both.
const NAMES: &[&str] = &[
    "only",
    "lateral",
    "rows",
    "current_user",
    "values",
    "table",
    "orders",
    "\"Orders\"",
    "secret",
    "visible",
    "o",
    "f",
    "x",
    "\"only\"",
    "user",
    "unnest",
    "public",
    "orders",
    "orders",
    "open",
    "hushed",
    "part",
    "secret",
    "papers",
];
const COLUMNS: &[&str] = &[
    "customer",
    "total",
    "x",
    "id",
    "pg_sleep",
    "ts_stat",
    "query_to_xml",
    "tenant",
    "q",
    "count",
];

fn name(draw: &mut Draw) -> &'static str {
    draw.of(NAMES)
}

fn expression(draw: &mut Draw, depth: usize) -> String {
    match draw.below(if depth == 0 { 4 } else { 11 }) {
        0 => "1".into(),
        1 => "'SELECT x FROM secret'".into(),
        2 => draw.of(COLUMNS).into(),
        3 => format!("{}.{}", name(draw), draw.of(COLUMNS)),
        4 => format!("({}).{}", name(draw), draw.of(COLUMNS)),
        5 => format!("public.{}.{}", name(draw), draw.of(COLUMNS)),
        6 => format!("(SELECT {} FROM {})", expression(draw, depth - 1), from(draw, depth - 1)),
        7 => format!("count({})", expression(draw, depth - 1)),
        8 => format!("coalesce({}::text, 'a')", expression(draw, depth - 1)),
        9 => format!("ARRAY[{}::text]", expression(draw, depth - 1)),
        _ => {
            let by = expression(draw, depth - 1);
            let bound = expression(draw, 0);
            let end = draw.of(&["CURRENT ROW", "1 FOLLOWING", "(SELECT 1) FOLLOWING"]);
            let exclude = draw.of(&["TIES", "GROUP", "CURRENT ROW", "NO OTHERS", "secret"]);
            format!(
                "count(*) OVER (ORDER BY {by} ROWS BETWEEN {bound} PRECEDING AND {end} EXCLUDE {exclude})"
            )
        }
    }
}

fn from(draw: &mut Draw, depth: usize) -> String {
    let alias = match draw.below(4) {
        0 => String::new(),
        1 => format!(" {}", name(draw)),
        2 => format!(" AS {}", name(draw)),
        _ => format!(" AS {}({})", name(draw), draw.of(COLUMNS)),
    };
    match draw.below(if depth == 0 { 3 } else { 7 }) {
        0 => format!("{}{alias}", name(draw)),
        1 => format!("ONLY {}{alias}", name(draw)),
        2 => format!("public.{}{alias}", name(draw)),
        3 => format!("({}){alias}", query(draw, depth - 1)),
        4 => format!("LATERAL ({}){alias}", query(draw, depth - 1)),
        5 => format!(
            "{} JOIN {} ON {} IS NOT NULL",
            from(draw, depth - 1),
            from(draw, depth - 1),
            expression(draw, depth - 1)
        ),
        _ => format!("{}, {}", from(draw, depth - 1), from(draw, depth - 1)),
    }
}

fn query(draw: &mut Draw, depth: usize) -> String {
    let alias =
        if draw.below(2) == 0 { format!(" AS {}", draw.of(COLUMNS)) } else { String::new() };
    let select = match draw.below(8) {
        0 => format!("TABLE {}", name(draw)),
        1 => format!("SELECT {}{alias}", expression(draw, depth)),
        2 => format!("SELECT * FROM {}", from(draw, depth)),
        3 => format!("SELECT {}.* FROM {}", name(draw), from(draw, depth)),
        _ => format!("SELECT {}{alias} FROM {}", expression(draw, depth), from(draw, depth)),
    };
    let tail = match draw.below(6) {
        0 => format!(" ORDER BY {}", expression(draw, 0)),
        1 => format!(" WHERE {} IS NOT NULL", expression(draw, 0)),
        2 if depth > 0 => format!(" UNION ALL {}", query(draw, depth - 1)),
        _ => String::new(),
    };
    let with = if depth > 0 && draw.below(3) == 0 {
        let recursive = if draw.below(2) == 0 { "RECURSIVE " } else { "" };
        let clause = match draw.below(6) {
            0 => format!("SEARCH DEPTH FIRST BY {} SET {} ", draw.of(COLUMNS), name(draw)),
            1 => {
                let of = draw.of(COLUMNS);
                let mark = draw.of(COLUMNS);
                format!("CYCLE {of} SET {mark} USING {} ", name(draw))
            }
            _ => String::new(),
        };
        format!("WITH {recursive}{} AS ({}) {clause}", name(draw), query(draw, depth - 1))
    } else {
        String::new()
    };
    format!("{with}{select}{tail}")
}

/// Returns the statement of a seed.
pub fn statement(seed: u64) -> String {
    let mut draw = Draw(seed);
    let depth = 1 + draw.below(3);
    query(&mut draw, depth)
}
