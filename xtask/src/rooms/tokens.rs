//! Paths and names in what a macro is given, which no parser knows the grammar of.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

/// What was found.
#[derive(Default)]
pub struct Found {
    /// Paths of two segments or more, and the first's place. What ends in a star ends in `*` here.
    pub paths: Vec<(Vec<String>, Span)>,
    /// Macros called by name alone.
    pub calls: Vec<(String, Span)>,
    /// Every identifier.
    pub idents: Vec<String>,
    /// What items would be called that stand there as they are.
    pub items: Vec<String>,
}

/// The words that a name of an item follows.
const BEFORE_ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "static", "const", "type"];

impl Found {
    /// Looks through tokens, and into their groups.
    pub fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    self.scan(group.stream());
                    at += 1;
                }
                TokenTree::Ident(ident) => {
                    let name = ident.to_string();
                    if let (true, Some(TokenTree::Ident(item))) =
                        (BEFORE_ITEMS.contains(&name.as_str()), tokens.get(at + 1))
                    {
                        self.items.push(item.to_string());
                    }
                    // What a macro's own argument begins is not known: `$name::...`.
                    let is_argument = at > 0 && is_punct(&tokens[at - 1], '$') && name != "crate";
                    at = self.path(&tokens, at, Vec::new(), !is_argument);
                }
                _ => at += 1,
            }
        }
    }

    /// Reads on from an identifier or a star, and says where the path ends.
    fn path(&mut self, tokens: &[TokenTree], start: usize, mut path: Vec<String>, is_known: bool) -> usize {
        let mut at = start;
        loop {
            match &tokens[at] {
                TokenTree::Ident(ident) => {
                    self.idents.push(ident.to_string());
                    path.push(ident.to_string());
                }
                TokenTree::Punct(punct) if punct.as_char() == '*' => path.push("*".into()),
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    self.group(group.stream(), &path, is_known);
                    return at + 1;
                }
                _ => break,
            }
            at += 1;
            if !(at + 2 < tokens.len() && is_punct(&tokens[at], ':') && is_punct(&tokens[at + 1], ':')) {
                break;
            }
            at += 2;
        }
        let span = tokens[start].span();
        if path.len() > 1 && is_known {
            self.paths.push((path, span));
        } else if path.len() == 1 && is_known && tokens.get(at).is_some_and(|next| is_punct(next, '!')) {
            self.calls.extend(path.pop().map(|name| (name, span)));
        }
        at
    }

    /// Reads the branches of `path::{...}`.
    fn group(&mut self, branches: TokenStream, path: &[String], is_known: bool) {
        let tokens: Vec<TokenTree> = branches.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.path(&tokens, at, path.to_vec(), is_known).max(at + 1);
            while at < tokens.len() && !is_punct(&tokens[at], ',') {
                at += 1;
            }
            at += 1;
        }
    }
}

fn is_punct(token: &TokenTree, expected: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == expected)
}
