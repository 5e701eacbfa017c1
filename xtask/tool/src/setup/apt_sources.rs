//! Reads apt's configured sources, in both of its formats, and derives the backports suite from them.
//!
//! The formats are those of sources.list(5): stanzas of `Key: value` (`*.sources`), and one line per source
//! (`*.list`). Only what is needed to reach another suite of the same mirror is kept.

use std::fs;
use std::path::Path;

/// A source of binary packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Where the mirror is.
    uris: String,
    suites: Vec<String>,
    /// The key: a file, or the key itself over several lines, as it was written.
    signed_by: Option<String>,
}

/// Every enabled source below `folder` (`/etc/apt`).
pub fn read(folder: &Path) -> Vec<Source> {
    let mut paths = vec![folder.join("sources.list")];
    if let Ok(entries) = fs::read_dir(folder.join("sources.list.d")) {
        let mut found: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        found.sort();
        paths.extend(found);
    }
    let mut sources = Vec::new();
    for path in paths {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(text.lines().filter_map(parse_line)),
            Some("sources") => sources.extend(parse_stanzas(&text)),
            _ => {}
        }
    }
    sources
}

/// Whether a suite is configured already.
pub fn has_suite(sources: &[Source], suite: &str) -> bool {
    sources.iter().any(|source| source.suites.iter().any(|name| name == suite))
}

/// The stanza that adds `<codename>-backports` of the mirror that serves `<codename>`.
pub fn backports_stanza(sources: &[Source], codename: &str) -> Option<String> {
    let source = sources.iter().find(|source| source.suites.iter().any(|suite| suite == codename))?;
    let mut stanza =
        format!("Types: deb\nURIs: {}\nSuites: {codename}-backports\nComponents: main\n", source.uris);
    if let Some(key) = &source.signed_by {
        // An embedded key begins on the line below.
        let blank = if key.starts_with('\n') { "" } else { " " };
        stanza.push_str(&format!("Signed-By:{blank}{key}\n"));
    }
    Some(stanza)
}

/// Reads `deb [signed-by=/a/key arch=amd64] http://mirror/debian bookworm main`.
fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb")?;
    if !rest.starts_with([' ', '\t', '[']) {
        return None;
    }
    let rest = rest.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    Some(Source {
        uris: words.next()?.to_owned(),
        suites: vec![words.next()?.to_owned()],
        signed_by: signed_by.map(str::to_owned),
    })
}

/// Reads a file of stanzas.
fn parse_stanzas(text: &str) -> Vec<Source> {
    // A comment line is no part of a stanza and does not end one.
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.split(|line| line.trim().is_empty()).filter_map(parse_stanza).collect()
}

fn parse_stanza(lines: &[&str]) -> Option<Source> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        if line.starts_with([' ', '\t']) {
            let (_, value) = fields.last_mut()?;
            value.push('\n');
            value.push_str(line);
        } else {
            let (key, value) = line.split_once(':')?;
            fields.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    if field("enabled").is_some_and(|value| value.eq_ignore_ascii_case("no")) {
        return None;
    }
    if !field("types")?.split_whitespace().any(|kind| kind == "deb") {
        return None;
    }
    Some(Source {
        uris: field("uris")?.split_whitespace().collect::<Vec<_>>().join(" "),
        suites: field("suites")?.split_whitespace().map(str::to_owned).collect(),
        signed_by: field("signed-by").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::{backports_stanza, has_suite, parse_line, parse_stanzas};

    const DEBIAN: &str = "\
Types: deb
# http://snapshot.example/archive/debian/20250520T000000Z
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
";

    #[test]
    fn backports_come_from_the_mirror_that_serves_the_release() {
        let sources = parse_stanzas(DEBIAN);
        assert!(has_suite(&sources, "bookworm-security"));
        assert!(!has_suite(&sources, "bookworm-backports"));
        assert_eq!(
            backports_stanza(&sources, "bookworm").unwrap(),
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm-backports\nComponents: main\n\
             Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        );
        assert_eq!(backports_stanza(&sources, "trixie"), None);
    }

    #[test]
    fn reads_the_one_line_format() {
        let plain = parse_line("deb http://mirror.example/debian bookworm main contrib # ours").unwrap();
        assert_eq!(
            backports_stanza(&[plain], "bookworm").unwrap(),
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm-backports\nComponents: main\n"
        );
        let signed = parse_line("deb [ arch=amd64 signed-by=/k.gpg ] https://mirror.example/d bookworm main");
        assert!(backports_stanza(&[signed.unwrap()], "bookworm").unwrap().ends_with("Signed-By: /k.gpg\n"));
        for line in ["", "# deb http://a bookworm main", "deb-src http://a bookworm main", "deb http://a"] {
            assert_eq!(parse_line(line), None, "{line}");
        }
    }

    #[test]
    fn an_embedded_key_is_kept() {
        let text = "Types: deb\nURIs: http://a/d\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n";
        let stanza = backports_stanza(&parse_stanzas(text), "bookworm").unwrap();
        assert!(stanza.ends_with("Signed-By:\n -----BEGIN\n .\n abc\n"), "{stanza}");
    }

    #[test]
    fn disabled_and_source_only_stanzas_do_not_count() {
        let text = "Types: deb\nEnabled: no\nURIs: http://a/d\nSuites: bookworm\n\n\
                    Types: deb-src\nURIs: http://a/d\nSuites: bookworm\n\nnonsense\n";
        assert!(parse_stanzas(text).is_empty());
    }
}
