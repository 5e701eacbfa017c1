//! Examples in doc comments, and what they call.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// What some docs show.
#[derive(Default, Debug)]
pub struct Shown {
    /// Whether there is any example.
    pub any: bool,
    /// Names that are called behind a dot.
    pub methods: BTreeSet<String>,
    /// Names that stand behind a path, with its last segment: `CoreId`, `new`.
    pub paths: BTreeSet<(String, String)>,
    /// Names that are called alone: of functions, or of macros.
    pub calls: BTreeSet<String>,
    /// Functions that an example writes.
    pub written: BTreeSet<String>,
}

impl Shown {
    /// What the docs among attributes show.
    pub fn of(attributes: &[Attribute]) -> Self {
        let mut shown = Self::default();
        for example in examples(&text(attributes)) {
            shown.any = true;
            // What is not even tokens the compiler of the example complains of.
            if let Ok(tokens) = example.parse() {
                shown.scan(tokens);
            }
        }
        shown
    }

    /// Adds what others show.
    pub fn add(&mut self, other: Self) {
        self.any |= other.any;
        self.methods.extend(other.methods);
        self.paths.extend(other.paths);
        self.calls.extend(other.calls);
        self.written.extend(other.written);
    }

    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.scan(group.stream()),
                TokenTree::Ident(name) => self.name(name.to_string(), &tokens[..at], &tokens[at + 1..]),
                _ => {}
            }
        }
    }

    /// Notes a name by what stands around it.
    fn name(&mut self, name: String, before: &[TokenTree], after: &[TokenTree]) {
        let is_called = match after {
            [TokenTree::Group(group), ..] => group.delimiter() == Delimiter::Parenthesis,
            // A macro, or a function whose types are said.
            [first, ..] if is_punct(first, '!') => true,
            [one, two, three, ..] => is_punct(one, ':') && is_punct(two, ':') && is_punct(three, '<'),
            _ => false,
        };
        match before {
            [.., TokenTree::Ident(word)] if word == "fn" => drop(self.written.insert(name)),
            [.., range, dot] if is_called && is_punct(range, '.') && is_punct(dot, '.') => {
                self.calls.insert(name);
            }
            [.., dot] if is_called && is_punct(dot, '.') => {
                self.methods.insert(name);
            }
            [outer @ .., one, two] if is_punct(one, ':') && is_punct(two, ':') => {
                if let Some(outer) = last_segment(outer) {
                    self.paths.insert((outer, name));
                }
            }
            _ if is_called => drop(self.calls.insert(name)),
            _ => {}
        }
    }
}

/// The last name of a path, without what stands between `<` and `>` behind it.
fn last_segment(tokens: &[TokenTree]) -> Option<String> {
    let mut depth = 0;
    for token in tokens.iter().rev() {
        match token {
            token if is_punct(token, '>') => depth += 1,
            token if is_punct(token, '<') => depth -= 1,
            TokenTree::Ident(name) if depth == 0 => return Some(name.to_string()),
            token if is_punct(token, ':') || depth > 0 => {}
            _ => return None,
        }
    }
    None
}

fn is_punct(token: &TokenTree, expected: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == expected)
}

/// The text of docs.
fn text(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &pair.value
        {
            text += &line.value();
            text.push('\n');
        }
    }
    text
}

/// The examples in a text: blocks that are compiled, and are meant to be.
fn examples(text: &str) -> Vec<String> {
    let mut examples = Vec::new();
    // What was read of a block, and whether it is an example.
    let mut block: Option<(String, bool)> = None;
    for line in text.lines().map(str::trim_start) {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(words)) => block = Some((String::new(), is_example(words))),
            (Some(_), Some(_)) => {
                if let Some((code, true)) = block.take() {
                    examples.push(code);
                }
                block = None;
            }
            (Some((code, _)), None) => {
                // A line that is compiled, but not shown, shows nothing.
                if line != "#" && !line.starts_with("# ") {
                    *code += line;
                    code.push('\n');
                }
            }
            (None, None) => {}
        }
    }
    examples
}

/// Whether the words behind a block's begin make it an example. What must not compile shows how not to do it.
fn is_example(words: &str) -> bool {
    words
        .split([',', ' '])
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .all(|word| matches!(word, "rust" | "no_run" | "should_panic"))
}
