//! Formulas of office documents as LaTeX, so that their words and numbers can be searched.

use roxmltree::Node;

use super::xml;

/// Depth of nested formulas beyond which the rest is plain text.
const DEEPEST: usize = 60;

pub(super) fn latex(node: Node<'_, '_>) -> String {
    within(node, 0).trim().to_owned()
}

fn within(node: Node<'_, '_>, depth: usize) -> String {
    node.children().filter(|child| child.is_element()).map(|child| one(child, depth + 1)).collect()
}

fn part(node: Node<'_, '_>, name: &str, depth: usize) -> String {
    xml::child(node, name).map(|part| within(part, depth)).unwrap_or_default()
}

fn one(node: Node<'_, '_>, depth: usize) -> String {
    if depth > DEEPEST {
        return node.descendants().filter_map(|node| node.text()).collect();
    }
    let part = |name: &str| part(node, name, depth);
    let property = |path: &[&str]| xml::value(node, path);
    match node.tag_name().name() {
        "r" => xml::children(node, "t").filter_map(|text| text.text()).map(symbols).collect(),
        "f" => match property(&["fPr", "type"]) {
            Some("lin") => format!("{}/{}", part("num"), part("den")),
            Some("noBar") => {
                format!("\\genfrac{{}}{{}}{{0pt}}{{}}{{{}}}{{{}}}", part("num"), part("den"))
            }
            _ => format!("\\frac{{{}}}{{{}}}", part("num"), part("den")),
        },
        "sSup" => format!("{}^{{{}}}", part("e"), part("sup")),
        "sSub" => format!("{}_{{{}}}", part("e"), part("sub")),
        "sSubSup" => format!("{}_{{{}}}^{{{}}}", part("e"), part("sub"), part("sup")),
        "sPre" => format!("{{}}_{{{}}}^{{{}}}{}", part("sub"), part("sup"), part("e")),
        "rad" => match part("deg") {
            degree if degree.trim().is_empty() => format!("\\sqrt{{{}}}", part("e")),
            degree => format!("\\sqrt[{degree}]{{{}}}", part("e")),
        },
        "nary" => {
            let sign = property(&["naryPr", "chr"]).unwrap_or("∫");
            let name = name(OPERATORS, sign);
            let sign = name.map_or_else(|| sign.to_owned(), |name| format!("\\{name}"));
            format!("{sign}_{{{}}}^{{{}}}{}", part("sub"), part("sup"), part("e"))
        }
        "d" => {
            let open = property(&["dPr", "begChr"]).unwrap_or("(");
            let close = property(&["dPr", "endChr"]).unwrap_or(")");
            let items: Vec<String> =
                xml::children(node, "e").map(|item| within(item, depth)).collect();
            format!("\\left{}{}\\right{}", fence(open), items.join("|"), fence(close))
        }
        "func" => {
            let name = part("fName");
            let known = ["sin", "cos", "tan", "log", "ln", "exp", "lim", "max", "min", "det"];
            let name =
                if known.contains(&name.trim()) { format!("\\{}", name.trim()) } else { name };
            format!("{name}({})", part("e"))
        }
        "limLow" => format!("{}_{{{}}}", part("e"), part("lim")),
        "limUpp" => format!("{}^{{{}}}", part("e"), part("lim")),
        "acc" => format!("\\hat{{{}}}", part("e")),
        "bar" => format!("\\overline{{{}}}", part("e")),
        "groupChr" => format!("\\underbrace{{{}}}", part("e")),
        "m" => {
            let rows = xml::children(node, "mr").map(|row| {
                let cells = xml::children(row, "e").map(|cell| within(cell, depth));
                cells.collect::<Vec<_>>().join(" & ")
            });
            format!("\\begin{{matrix}}{}\\end{{matrix}}", rows.collect::<Vec<_>>().join(" \\\\ "))
        }
        "eqArr" => {
            let rows = xml::children(node, "e").map(|row| within(row, depth));
            rows.collect::<Vec<_>>().join(" \\\\ ")
        }
        name if name.ends_with("Pr") => String::new(),
        _ => within(node, depth),
    }
}

fn fence(sign: &str) -> String {
    match sign {
        "" => ".".to_owned(),
        "{" | "}" => format!("\\{sign}"),
        sign => sign.to_owned(),
    }
}

/// Signs of large operators, each with its name.
const OPERATORS: &str = "∑ sum ∏ prod ∐ coprod ∫ int ∬ iint ∭ iiint ∮ oint ∯ oiint ∰ oiiint ⋃ bigcup ⋂ bigcap ⋀ bigwedge ⋁ bigvee";

/// Letters and other signs, each with its name.
const SYMBOLS: &str = "α alpha 𝛼 alpha β beta 𝛽 beta γ gamma 𝛾 gamma δ delta 𝛿 delta ε epsilon 𝜀 epsilon θ theta 𝜃 theta \
    λ lambda 𝜆 lambda μ mu 𝜇 mu π pi 𝜋 pi ρ rho 𝜌 rho σ sigma 𝜎 sigma τ tau 𝜏 tau φ varphi 𝜑 varphi ω omega \
    𝜔 omega Δ Delta Σ Sigma Ω Omega ∞ infty × times ± pm · cdot ⋅ cdot ≤ leq ≥ geq ≠ neq ≈ approx \
    → rightarrow ∈ in ∂ partial ∩ cap ∪ cup";

/// Returns the name of a sign in a list.
fn name(list: &'static str, sign: &str) -> Option<&'static str> {
    let mut words = list.split(' ');
    while let Some(known) = words.next() {
        let name = words.next();
        if known == sign {
            return name;
        }
    }
    None
}

fn symbols(text: &str) -> String {
    let mut latex = String::new();
    for c in text.chars() {
        match name(SYMBOLS, c.encode_utf8(&mut [0; 4])) {
            Some(name) => latex.push_str(&format!(" \\{name} ")),
            None => latex.push(c),
        }
    }
    latex
}
