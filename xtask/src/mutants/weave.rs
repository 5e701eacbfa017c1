//! Puts the mutants of a source file into it, each as a choice that is made at run time.
//!
//! `if crate::mutant::is("name") { BROKEN } else { SOUND }` stands where the sound code stood. A mutant within another's
//! code is a choice within the outer one's sound side; of two that break the same code, the second is within the first.
//! Every line keeps its number.

use super::code::Code;
use super::entry::{Mutant, Subject};
use std::cmp::Reverse;
use std::ops::Range;

struct Place<'a> {
    span: Range<usize>,
    mutant: &'a Mutant,
}

/// The source with all its mutants; or what is wrong with them, a line for each.
pub fn weave(subject: &Subject, source: &str) -> Result<String, Vec<String>> {
    let code = Code::new(source);
    let mut complaints = Vec::new();
    let mut places = Vec::new();
    for mutant in &subject.mutants {
        match place(&code, mutant) {
            Ok(span) => places.push(Place { span, mutant }),
            Err(why) => complaints.push(complaint(subject, mutant, &why)),
        }
    }
    // From outside to inside; of two at the same place the order of the list remains.
    places.sort_by_key(|place| (place.span.start, Reverse(place.span.end)));
    for (inner, place) in places.iter().enumerate() {
        let outer = places[..inner]
            .iter()
            .find(|outer| outer.span.end > place.span.start && outer.span.end < place.span.end);
        if let Some(outer) = outer {
            let why = format!("its code overlaps that of {} in part", outer.mutant.name);
            complaints.push(complaint(subject, place.mutant, &why));
        }
    }
    if complaints.is_empty() { Ok(render(source, 0..source.len(), &places)) } else { Err(complaints) }
}

fn complaint(subject: &Subject, mutant: &Mutant, why: &str) -> String {
    format!("{}: mutant {}: {why} ({})", subject.list.display(), mutant.name, subject.file)
}

/// Where a mutant's code is.
fn place(code: &Code, mutant: &Mutant) -> Result<Range<usize>, String> {
    let part = match &mutant.function {
        None => code.whole(),
        Some(name) => only(code.functions(name), &format!("there are N functions {name}"))?,
    };
    only(code.find(&mutant.find, part), "its code is there N times")
}

fn only(mut found: Vec<Range<usize>>, otherwise: &str) -> Result<Range<usize>, String> {
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(otherwise.replace('N', "0")),
        (Some(_), others) => Err(otherwise.replace('N', &(others + 1).to_string())),
    }
}

/// A part of the source with the mutants that lie in it.
fn render(source: &str, part: Range<usize>, places: &[Place]) -> String {
    let mut woven = String::new();
    let mut at = part.start;
    let mut rest = places;
    while let [outer, others @ ..] = rest {
        let within = others.iter().take_while(|inner| inner.span.start < outer.span.end).count();
        let (inner, after) = others.split_at(within);
        woven.push_str(&source[at..outer.span.start]);
        woven.push_str(&choice(outer.mutant, &render(source, outer.span.clone(), inner)));
        at = outer.span.end;
        rest = after;
    }
    woven + &source[at..part.end]
}

fn choice(mutant: &Mutant, sound: &str) -> String {
    let Mutant { name, find, put, .. } = mutant;
    let broken = if put.is_empty() { "{}".to_owned() } else { format!("{{ {put} }}") };
    let choice = format!("if crate::mutant::is(\"{name}\") {broken} else {{ {sound} }}");
    if find.ends_with([';', '}']) { choice } else { format!("({choice})") }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Mutant, Subject};
    use super::weave;

    const SOURCE: &str = "fn a() {\n    // b(1);\n    b(1);\n    c(b(2), 3);\n}\n\nfn d() {\n    b(1);\n}\n";

    fn mutant(name: &str, function: Option<&str>, find: &str, put: &str) -> Mutant {
        let function = function.map(str::to_owned);
        Mutant { name: name.into(), function, find: find.into(), put: put.into() }
    }

    fn woven(mutants: Vec<Mutant>) -> Result<String, Vec<String>> {
        weave(&Subject { list: "l.toml".into(), file: "f.rs".into(), mutants }, SOURCE)
    }

    #[test]
    fn statements_and_expressions_become_choices_and_keep_their_lines() {
        let code = woven(vec![mutant("s", Some("d"), "b(1);", ""), mutant("e", None, "b(2)", "x")]).unwrap();
        assert!(code.contains("    if crate::mutant::is(\"s\") {} else { b(1); }\n"), "{code}");
        assert!(code.contains("c((if crate::mutant::is(\"e\") { x } else { b(2) }), 3);"), "{code}");
        assert_eq!(code.lines().count(), SOURCE.lines().count());
    }

    #[test]
    fn one_may_lie_within_another() {
        let code = woven(vec![
            mutant("number", None, "3", "4"),
            mutant("same", None, "3", "5"),
            mutant("all", None, "c(b(2), 3)", "x"),
        ]);
        let inner = "(if crate::mutant::is(\"same\") { 5 } else { 3 })";
        let number = format!("(if crate::mutant::is(\"number\") {{ 4 }} else {{ {inner} }})");
        let all = format!("(if crate::mutant::is(\"all\") {{ x }} else {{ c(b(2), {number}) }});\n}}");
        assert!(code.unwrap().contains(&all));
    }

    #[test]
    fn what_does_not_fit_is_named_all_of_it() {
        let complaints = woven(vec![
            mutant("twice", None, "b(1);", ""),
            mutant("gone", Some("a"), "b(3);", ""),
            mutant("nowhere", Some("e"), "b(1);", ""),
        ]);
        assert_eq!(
            complaints.unwrap_err(),
            [
                "l.toml: mutant twice: its code is there 2 times (f.rs)",
                "l.toml: mutant gone: its code is there 0 times (f.rs)",
                "l.toml: mutant nowhere: there are 0 functions e (f.rs)",
            ]
        );
        let overlap = woven(vec![mutant("x", None, "c(b(2)", "y"), mutant("z", None, "b(2), 3", "y")]);
        assert_eq!(overlap.unwrap_err(), ["l.toml: mutant z: its code overlaps that of x in part (f.rs)"]);
    }
}
