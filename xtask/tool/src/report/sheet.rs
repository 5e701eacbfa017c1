//! What every page has: its frame with a head and links to its sections, tables, and what is folded away.

use super::plot::escaped;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A part of a page.
pub struct Section {
    /// By what it is linked.
    pub id: &'static str,
    /// What stands above it.
    pub heading: &'static str,
    /// What is in it, as HTML.
    pub content: String,
}

/// The whole page: what it is about, what it is, a few sentences as HTML, and its sections.
pub fn sheet(title: &str, what: &str, summary: &str, sections: &[Section]) -> String {
    let title = escaped(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{title}: {what}</title>\n<style>\n{STYLE}</style></head>\n<body>\n<header><h1>{title}</h1>\n{summary}\n<nav>"
    );
    for Section { id, heading, .. } in sections {
        let _ = write!(page, "<a href=\"#{id}\">{heading}</a> ");
    }
    page.push_str("</nav></header>\n<main>\n");
    for Section { id, heading, content } in sections {
        let _ = write!(page, "<section id=\"{id}\"><h2>{heading}</h2>\n{content}</section>\n");
    }
    let _ = write!(page, "</main>\n<script>\n{SCRIPT}</script>\n</body></html>\n");
    page
}

/// A table of text.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |name: &str, cells: &mut dyn Iterator<Item = &str>| -> String {
        cells.map(|cell| format!("<{name}>{}</{name}>", escaped(cell))).collect()
    };
    let mut html =
        format!("<table><thead><tr>{}</tr></thead><tbody>", cells("th", &mut head.iter().copied()));
    for row in rows {
        let _ = write!(html, "<tr>{}</tr>", cells("td", &mut row.iter().map(String::as_str)));
    }
    html.push_str("</tbody></table>\n");
    html
}

/// What is seen when it is asked for.
pub fn details(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>{content}</details>\n", escaped(summary))
}
