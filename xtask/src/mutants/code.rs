//! Finds a piece of code in a source file, whatever white space and comments are in it.
//!
//! It relies on what `cargo fmt` makes of a source file: a function ends at the first line that closes a brace at its own
//! indentation. Only comments that begin with `//` are known.

use std::ops::Range;

/// A source file, without its comments for whoever looks for code.
pub struct Code {
    /// As long as the source, with a space for each byte of a comment.
    bare: String,
}

impl Code {
    /// Of a source text.
    pub fn new(source: &str) -> Self {
        let mut bare = String::with_capacity(source.len());
        for line in source.split_inclusive('\n') {
            let end = line.trim_end_matches('\n').len();
            let code = line.find("//").map_or(end, |comment| comment.min(end));
            bare.push_str(&line[..code]);
            bare.extend(std::iter::repeat_n(' ', end - code));
            bare.push_str(&line[end..]);
        }
        Self { bare }
    }

    /// Everything.
    pub fn whole(&self) -> Range<usize> {
        0..self.bare.len()
    }

    /// Where the functions of a name are, each from the beginning of its line on.
    pub fn functions(&self, name: &str) -> Vec<Range<usize>> {
        let head = format!("fn {name}");
        let mut found = Vec::new();
        let mut start = 0;
        for line in self.bare.split_inclusive('\n') {
            let is_head = line.match_indices(&head).any(|(at, _)| {
                let after = line[at + head.len()..].chars().next();
                !line[..at].ends_with(is_in_name) && !after.is_some_and(is_in_name)
            });
            if is_head {
                found.push(start..self.end_of_function(start, line));
            }
            start += line.len();
        }
        found
    }

    fn end_of_function(&self, start: usize, head: &str) -> usize {
        if head.trim_end().ends_with(['}', ';']) {
            return start + head.len();
        }
        let indentation = &head[..head.len() - head.trim_start().len()];
        let mut end = start + head.len();
        for line in self.bare[end..].split_inclusive('\n') {
            end += line.len();
            if line.trim_end().strip_prefix(indentation) == Some("}") {
                break;
            }
        }
        end
    }

    /// Where a piece of code stands within a part of the file.
    pub fn find(&self, piece: &str, part: Range<usize>) -> Vec<Range<usize>> {
        let mut words = piece.split_whitespace();
        let Some(first) = words.next() else { return Vec::new() };
        let words: Vec<&str> = words.collect();
        let text = &self.bare[part.clone()];
        let starts = text.match_indices(first).map(|(start, _)| start);
        let spans = starts.filter_map(|start| {
            let end = words.iter().try_fold(start + first.len(), |end, word| {
                let rest = &text[end..];
                let space = rest.len() - rest.trim_start().len();
                (space > 0 && rest[space..].starts_with(word)).then(|| end + space + word.len())
            })?;
            Some(part.start + start..part.start + end)
        });
        spans.collect()
    }
}

fn is_in_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::Code;

    const SOURCE: &str = "\
/// fn one() is drawn: a ──▶ b
fn one(
    a: u8,
) -> u8 {
    if a == 1 {
        // call(a)
        call(
            // why
            a);
    }
    a
}

impl X {
    fn one_more(&self) { call(a) }
    const fn two(&self) -> u8 {
        call(a)
    }
}
";

    fn found<'a>(piece: &str, function: Option<&str>) -> Vec<&'a str> {
        let code = Code::new(SOURCE);
        let parts = function.map_or(vec![code.whole()], |name| code.functions(name));
        parts.into_iter().flat_map(|part| code.find(piece, part)).map(|span| &SOURCE[span]).collect()
    }

    #[test]
    fn comments_and_white_space_count_for_nothing() {
        assert_eq!(found("call( a);", None), ["call(\n            // why\n            a);"]);
        assert_eq!(found("call(a)", None).len(), 2);
        assert_eq!(found("if a ==\n1 {", None), ["if a == 1 {"]);
        assert!(found("drawn", None).is_empty());
    }

    #[test]
    fn a_function_is_told_by_its_whole_name_and_ends_at_its_brace() {
        assert_eq!(found("call(", Some("one")), ["call("]);
        assert_eq!(found("a", Some("one_more")).len(), 2);
        assert_eq!(found("call(a)", Some("two")), ["call(a)"]);
        let code = Code::new(SOURCE);
        assert!(SOURCE[code.functions("one")[0].clone()].ends_with("    a\n}\n"));
        assert!(code.functions("on").is_empty() && code.functions("three").is_empty());
    }
}
