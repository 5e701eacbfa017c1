//! Every link of the pages leads somewhere: to a file that is there, and to a heading that it has. Links to other sites are not followed.
//! And every page of the guide is in the book's list.

use crate::build::root;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The pages: those of the root, and all below `docs/`.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/decisions"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}

struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

fn read(text: &str) -> Page {
    let mut page = Page { links: Vec::new(), anchors: BTreeSet::new() };
    let mut heading: Option<String> = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => page.anchors.extend(heading.take().map(|text| anchor(&text))),
            _ => {}
        }
    }
    page
}

/// As GitHub and mdBook make it of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
    });
    kept.collect()
}

fn complaint(page: &Path, links: &Page, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, wanted) = link.split_once('#').map_or((link, None), |(file, wanted)| (file, Some(wanted)));
    let target = page.parent()?.join(file);
    let anchors = if file.is_empty() {
        links.anchors.clone()
    } else if !target.exists() {
        return Some(format!("{}: {link} is not there", page.display()));
    } else if wanted.is_some() {
        read(&fs::read_to_string(&target).ok()?).anchors
    } else {
        return None;
    };
    let missing = wanted.is_some_and(|wanted| !anchors.contains(wanted));
    missing.then(|| format!("{}: {link} has no such heading", page.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut complaints = Vec::new();
    let mut links = 0;
    for path in pages() {
        let page = read(&fs::read_to_string(&path).unwrap());
        links += page.links.len();
        complaints.extend(page.links.iter().filter_map(|link| complaint(&path, &page, link)));
    }
    assert!(links > 100, "only {links} links were found");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = read(
        "# A heading: `code`\n[a](#a-heading-code) [b](#none) [c](no-such.md) [d](https://example.org)\n",
    );
    let path = root().join("docs/x.md");
    let found: Vec<_> = page.links.iter().filter_map(|link| complaint(&path, &page, link)).collect();
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn every_page_is_in_the_book() {
    let folder = root().join("docs");
    let listed = read(&fs::read_to_string(folder.join("SUMMARY.md")).unwrap()).links;
    let listed: BTreeSet<_> = listed.iter().map(|link| folder.join(link)).collect();
    for page in pages().into_iter().filter(|page| page.starts_with(&folder) && !page.ends_with("SUMMARY.md"))
    {
        assert!(listed.contains(&page), "{} is not in docs/SUMMARY.md", page.display());
    }
}

/// A book has no pages but its own.
#[test]
fn a_page_of_the_book_links_to_nothing_outside_it() {
    let folder = root().join("docs");
    for path in pages().into_iter().filter(|page| page.starts_with(&folder)) {
        for link in read(&fs::read_to_string(&path).unwrap()).links {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || link.contains("://") {
                continue;
            }
            let target = path.parent().unwrap().join(file).canonicalize().unwrap();
            assert!(target.starts_with(folder.canonicalize().unwrap()), "{}: {link}", path.display());
        }
    }
}

/// The version of the compiler that builds all is the oldest that is promised, so that promise is tried by every test.
#[test]
fn the_oldest_compiler_is_the_one_that_is_used() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap().parse::<toml::Table>().unwrap();
    let promised = read("Cargo.toml")["workspace"]["package"]["rust-version"].as_str().unwrap().to_owned();
    let used = read("rust-toolchain.toml")["toolchain"]["channel"].as_str().unwrap().to_owned();
    assert_eq!(used, format!("{promised}.0"));
}
