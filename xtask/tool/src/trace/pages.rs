//! The pages of `cargo xtask top` that the kernel's commands fill: processes, actors, supervisors, settings, and one of the first three by itself. No
//! terminal is named here, as in `view`.
//!
//! The command of the page that is seen is sent now and then. What the kernel says behind its echo, up to the next echo, is the answer: of a table those
//! lines that look like its rows, so that what an application prints meanwhile is not taken for one. What a page is, and what its rows look like, is in
//! `page`.

mod page;

pub use page::Page;

use super::dump::Dump;
use super::view::View;

/// What is asked for when a key was pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// An arrow.
    Up,
    /// The other one.
    Down,
    /// The one that opens, or says that a value is whole.
    Enter,
    /// The one that leads back.
    Escape,
    /// Takes back a character.
    Backspace,
}

/// What is to be done after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Nothing but to draw.
    Draw,
    /// This goes to the kernel.
    Send(String),
    /// It ends.
    Quit,
}

/// All pages.
#[derive(Debug, Default)]
pub struct Pages {
    /// The first.
    pub view: View,
    /// The one that is seen.
    page: Page,
    /// Whether the kernel can be asked.
    can_ask: bool,
    /// What it has said at the end, in place of a kernel: the first page is its text.
    dump: Option<Dump>,
    /// The answer that arrives.
    coming: Vec<String>,
    /// Whose it is.
    of: Option<Page>,
    /// The last whole one.
    rows: Vec<String>,
    rows_of: Page,
    chosen: usize,
    /// The column by which rows are sorted, the greatest first; 0: as the kernel has them.
    sort: usize,
    /// One by itself, by the first word of its line.
    opened: Option<String>,
    /// A value that is typed for the chosen setting.
    typed: Option<String>,
    /// What the kernel said about the last change.
    answer: String,
    awaits_answer: bool,
}

impl Pages {
    /// `can_ask`: whether there is a kernel that takes commands.
    pub fn new(can_ask: bool) -> Self {
        Self { can_ask, ..Self::default() }
    }

    /// Of a dump.
    pub fn of_dump(dump: Dump) -> Self {
        let mut pages = Self { rows: dump.text.clone(), ..Self::default() };
        pages.dump = Some(dump);
        pages
    }

    /// What the kernel is to be asked for the page that is seen.
    pub fn question(&self) -> Option<&'static str> {
        (self.can_ask && self.page != Page::Cores && !self.view.is_paused).then(|| self.page.command())
    }

    /// Takes a line that was said.
    pub fn hear(&mut self, line: &str) {
        if let Some(command) = line.strip_prefix("> ") {
            self.commit();
            self.awaits_answer = command.starts_with("set ") || command.starts_with("kill ");
            self.of =
                Page::ALL.into_iter().find(|page| !page.command().is_empty() && page.command() == command);
            return;
        }
        if self.awaits_answer {
            self.awaits_answer = false;
            self.answer = line.into();
            return;
        }
        match self.of {
            Some(page) if page.is_row(line) => self.coming.push(line.into()),
            // Headings, sums, and what the application says.
            Some(_) => {}
            None => self.view.said = line.into(),
        }
    }

    /// The answer is whole: it is shown from now on.
    fn commit(&mut self) {
        if let Some(page) = self.of.take() {
            self.rows = std::mem::take(&mut self.coming);
            self.rows_of = page;
            self.sort_rows();
            self.chosen = self.chosen.min(self.rows.len().saturating_sub(1));
        }
    }

    /// Nothing was said for a while: what has come is all.
    pub fn quiet(&mut self) {
        self.commit();
    }

    /// By numbers: what is none comes last. Rows that are alike stay in the kernel's order, and so does the tree.
    fn sort_rows(&mut self) {
        let column = self.sort;
        if column == 0 || !self.rows_of.is_sortable() {
            return;
        }
        let number =
            |row: &String| row.split_whitespace().nth(column).and_then(|word| word.parse::<u64>().ok());
        self.rows.sort_by_key(|row| std::cmp::Reverse(number(row)));
    }

    /// Another column, of those with numbers.
    fn sort_by_next(&mut self) {
        let columns = self.page.columns();
        let is_number = |column: &usize| columns[*column] != "state";
        // The last is a text.
        self.sort = (self.sort + 1..columns.len() - 1).find(is_number).unwrap_or(0);
        match &self.dump {
            // From the kernel's order, so that rows that are alike stay in it.
            Some(_) => self.take_from_dump(),
            None => self.sort_rows(),
        }
    }

    fn take_from_dump(&mut self) {
        let Some(dump) = &self.dump else { return };
        let page = self.page;
        let rows = dump.list(page.command()).iter().filter(|line| page.is_row(line));
        self.rows = if page == Page::Cores { dump.text.clone() } else { rows.cloned().collect() };
        self.rows_of = page;
        self.sort_rows();
    }

    fn go(&mut self, page: Page) {
        (self.page, self.chosen, self.opened, self.typed) = (page, 0, None, None);
        self.sort = 0;
        self.answer.clear();
        self.take_from_dump();
    }

    /// The first word of the chosen line.
    fn chosen(&self) -> Option<&str> {
        self.shown().get(self.chosen)?.split_whitespace().next()
    }

    fn shown(&self) -> &[String] {
        if self.rows_of == self.page { &self.rows } else { &[] }
    }

    /// A key was pressed.
    pub fn press(&mut self, key: Key) -> Act {
        if let Some(typed) = &mut self.typed {
            match key {
                Key::Char(digit) if digit.is_ascii_digit() => typed.push(digit),
                Key::Char(_) | Key::Up | Key::Down => {}
                Key::Backspace => drop(typed.pop()),
                Key::Escape => self.typed = None,
                Key::Enter => {
                    let value = self.typed.take().unwrap_or_default();
                    if let Some(name) = self.chosen().filter(|_| !value.is_empty()) {
                        return Act::Send(format!("set {name} {value}"));
                    }
                }
            }
            return Act::Draw;
        }
        match key {
            Key::Char('q') => return Act::Quit,
            Key::Escape if self.opened.take().is_none() && self.page == Page::Cores => return Act::Quit,
            Key::Char('p') => self.view.is_paused = !self.view.is_paused,
            Key::Char('s') if self.page.is_sortable() => self.sort_by_next(),
            Key::Char('s') => self.view.sort = self.view.sort.next(),
            Key::Char(digit @ '1'..='6') => {
                if let Some(page) = Page::ALL.get(digit as usize - '1' as usize) {
                    self.go(*page);
                }
            }
            Key::Up => self.chosen = self.chosen.saturating_sub(1),
            Key::Down => self.chosen = (self.chosen + 1).min(self.shown().len().saturating_sub(1)),
            Key::Enter if self.page == Page::Settings && !self.shown().is_empty() && self.can_ask => {
                self.typed = Some(String::new())
            }
            Key::Enter if matches!(self.page, Page::Cores | Page::Settings) => {}
            Key::Enter => self.opened = self.chosen().map(str::to_owned),
            Key::Escape | Key::Backspace | Key::Char(_) => {}
        }
        Act::Draw
    }

    /// What is shown in so many columns and rows, and which line of it is chosen.
    pub fn lines(&self, width: usize, height: usize) -> (Vec<String>, Option<usize>) {
        if self.page == Page::Cores && self.dump.is_none() {
            return (self.view.lines(width, height), None);
        }
        let (mut lines, mut mark) = match &self.opened {
            Some(number) => (self.one(number), None),
            None => self.table(height),
        };
        lines.resize(height.saturating_sub(1).max(1), String::new());
        lines.push(match (&self.typed, self.opened.is_some()) {
            (Some(typed), _) => {
                format!("{} is to be: {typed}_   Enter sends it, Esc does not", self.chosen().unwrap_or(""))
            }
            (None, true) => "q quits  Esc back  1 cores 2 ps 3 actors 4 tree 5 settings 6 mail".into(),
            (None, false) => {
                let enter = match self.page {
                    Page::Settings if self.can_ask => "arrows, Enter changes",
                    Page::Cores | Page::Settings => "arrows",
                    page if page.is_sortable() => "Enter opens  s sorts",
                    _ => "arrows, Enter opens",
                };
                format!("q quits  {enter}  1 cores 2 ps 3 actors 4 tree 5 settings 6 mail")
            }
        });
        lines.iter_mut().for_each(|line| *line = line.chars().take(width).collect());
        if mark.is_some_and(|mark| mark >= lines.len()) {
            mark = None;
        }
        (lines, mark)
    }

    fn table(&self, height: usize) -> (Vec<String>, Option<usize>) {
        let heading = self.page.heading();
        let state = match (self.can_ask, self.shown().len()) {
            (false, 0) if self.dump.is_some() => "the dump has none".into(),
            (false, count) if self.dump.is_some() => format!("{count} lines"),
            (false, _) => "a recording has none of this".into(),
            (true, 0) => "none yet".into(),
            (true, count) => format!("{count} lines{}", if self.view.is_paused { ", paused" } else { "" }),
        };
        let sorted = match self.page.columns().get(self.sort).filter(|_| self.sort > 0) {
            Some(column) => format!(", by {column}"),
            None => String::new(),
        };
        let of = match &self.dump {
            Some(dump) if dump.is_whole => dump.of.clone(),
            Some(dump) => format!("cut off or damaged: {}", dump.of),
            None => self.answer.clone(),
        };
        let mut lines =
            vec![format!("Magpie: {:?}, {state}{sorted}  {of}", self.page), String::new(), heading.into()];
        let room = height.saturating_sub(lines.len() + 1).max(1);
        // The chosen one is always seen.
        let from = self.chosen.saturating_sub(room - 1);
        lines.extend(self.shown().iter().skip(from).take(room).map(|row| self.page.shortened(row)));
        let mark = (!self.shown().is_empty()).then(|| 3 + self.chosen - from);
        (lines, mark)
    }

    /// One by itself: each column on a line.
    fn one(&self, number: &str) -> Vec<String> {
        let columns = self.page.columns();
        let row = self.shown().iter().find(|row| row.split_whitespace().next() == Some(number));
        let mut lines = vec![format!("Magpie: one of {:?}", self.page), String::new()];
        let Some(row) = row else {
            lines.push(format!("{number} has ended"));
            return lines;
        };
        let mut words = row.split_whitespace();
        for (index, column) in columns.iter().enumerate() {
            let value = if index + 1 == columns.len() {
                words.by_ref().collect::<Vec<_>>().join(" ")
            } else {
                words.next().unwrap_or("").to_owned()
            };
            lines.push(format!("{column:>12}  {value}"));
        }
        if let Some((microseconds, turns)) =
            u64::from_str_radix(number, 16).ok().and_then(|subject| self.view.turns_of(subject))
        {
            lines.push(format!("{:>12}  {microseconds} us in {turns} turns, in the last second", "ran"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{Act, Dump, Key, Page, Pages};

    fn hear(pages: &mut Pages, text: &str) {
        text.lines().for_each(|line| pages.hear(line));
    }

    const PS: &str = "> ps\n    number state     core waiting reductions moved    age ms type, name
  4033a410 waiting      0       0          0     0        20 app::run<u8>::{{closure}} printer
hello from the application
  40332400 running      1       0         20     3        53 app::main::{{closure}}
2 in all, and 0 that have not had a turn yet\n";

    #[test]
    fn what_is_asked_is_shown() {
        let mut pages = Pages::new(true);
        assert_eq!(pages.question(), None);
        assert_eq!(pages.press(Key::Char('2')), Act::Draw);
        assert_eq!(pages.question(), Some("ps"));
        hear(&mut pages, PS);
        pages.quiet();
        let (lines, mark) = pages.lines(80, 24);
        assert_eq!((lines.len(), mark), (24, Some(3)));
        assert!(lines[0].starts_with("Magpie: Processes, 2 lines"), "{lines:?}");
        assert!(lines[3].ends_with(" 20 app::run printer"), "{lines:?}");
        assert!(lines[3].contains("4033a410") && lines[4].contains("40332400"), "{lines:?}");
        pages.press(Key::Down);
        pages.press(Key::Down);
        assert_eq!(pages.lines(80, 24).1, Some(4));
        pages.press(Key::Enter);
        let one = pages.lines(80, 24).0.join("\n");
        assert!(
            one.contains("       moved  3\n") && one.contains("  type, name  app::main::{{closure}}"),
            "{one}"
        );
        // It ends, and the page says so.
        hear(&mut pages, "> ps\n  4033a410 waiting      0       0          0     0        20 app::run\n> ps");
        assert!(pages.lines(80, 24).0.join("\n").contains("40332400 has ended"));
        assert_eq!(pages.press(Key::Escape), Act::Draw);
        assert_eq!((pages.lines(80, 24).1, pages.press(Key::Char('q'))), (Some(3), Act::Quit));
    }

    #[test]
    fn a_setting_is_changed() {
        let mut pages = Pages::new(true);
        pages.press(Key::Char('5'));
        hear(&mut pages, "> settings\nsched.slice_us 1000\nsched.thieves 1\nnot this 1\n");
        pages.quiet();
        [Key::Down, Key::Enter, Key::Char('x'), Key::Char('7'), Key::Backspace, Key::Char('2')]
            .into_iter()
            .for_each(|key| drop(pages.press(key)));
        assert!(pages.lines(80, 24).0[23].starts_with("sched.thieves is to be: 2_"));
        assert_eq!(pages.press(Key::Enter), Act::Send("set sched.thieves 2".into()));
        hear(
            &mut pages,
            "> set sched.thieves 2\nsched.thieves is 2 now\n> settings\nsched.slice_us 1000\nsched.thieves 2",
        );
        pages.quiet();
        let (lines, mark) = pages.lines(80, 24);
        assert!(lines[0].ends_with("sched.thieves is 2 now") && lines[4] == "sched.thieves 2", "{lines:?}");
        assert_eq!(mark, Some(4));
        // Nothing typed changes nothing.
        pages.press(Key::Enter);
        assert_eq!(pages.press(Key::Enter), Act::Draw);
    }

    #[test]
    fn rows_are_sorted_by_a_column() {
        let mut pages = Pages::new(true);
        pages.press(Key::Char('6'));
        assert_eq!(pages.question(), Some("mailboxes"));
        let said = "> mailboxes\n    number core waiting    most      bound      taken moved     bytes, and what is special
         0    0       0       9       none          7     0      1024
         1    1       5       9          8          3     2      1024 pinned
         2    1       6       6       none          3     0      1024\nthree mailboxes wait\n> ps";
        hear(&mut pages, said);
        let first =
            |pages: &Pages| pages.lines(100, 24).0[3].split_whitespace().next().unwrap_or("").to_owned();
        let head = |pages: &Pages| pages.lines(100, 24).0[0].clone();
        assert!(pages.lines(80, 24).0[23].ends_with(" 6 mail"), "the keys have no room");
        assert!(head(&pages).starts_with("Magpie: Mailboxes, 3 lines "), "{}", head(&pages));
        let mut found = Vec::new();
        for _ in 0..7 {
            pages.press(Key::Char('s'));
            found.push(first(&pages));
            if found.len() == 2 {
                assert!(head(&pages).contains("3 lines, by waiting"), "{}", head(&pages));
            }
        }
        // By core, waiting, most, bound, taken, moved; then as the kernel has them, when it is asked again.
        assert_eq!(found[..6], ["1", "2", "1", "1", "0", "1"]);
        assert!(!head(&pages).contains(", by "));
    }

    #[test]
    fn rows_are_the_kernel_s() {
        let tree = "  40332400 running      0         20        53        2   square";
        assert!(Page::Tree.is_row(tree) && !Page::Tree.is_row("injected by the application now"));
        let actor = "  4033a410 ready        2      17       0          4     1 app::Digger ";
        assert!(Page::Actors.is_row(actor) && !Page::Actors.is_row("3 in all"));
    }

    #[test]
    fn a_dump_has_all_pages() {
        let path = std::env::temp_dir().join(format!("magpie-pages-{}", std::process::id()));
        let text =
            format!("Magpie dump 1: app on virt\ncore 0 looks round\n{PS}> settings\nsched.thieves 1\n");
        std::fs::write(&path, text).unwrap();
        let dump = Dump::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut pages = Pages::of_dump(dump);
        let (lines, mark) = pages.lines(80, 24);
        assert!(
            lines[0] == "Magpie: Cores, 1 lines  cut off or damaged: app on virt"
                && lines[3] == "core 0 looks round",
            "{lines:?}"
        );
        assert_eq!(mark, Some(3));
        pages.press(Key::Char('2'));
        assert!(pages.lines(80, 24).0[4].contains("40332400"));
        pages.press(Key::Enter);
        assert!(pages.lines(80, 24).0.join("\n").contains("  type, name  app::run"));
        pages.press(Key::Char('5'));
        // Nothing can be changed.
        assert_eq!(pages.press(Key::Enter), Act::Draw);
        assert_eq!((pages.lines(80, 24).0[3].as_str(), pages.question()), ("sched.thieves 1", None));
        pages.press(Key::Char('4'));
        assert!(pages.lines(80, 24).0[0].contains("the dump has none"));
    }

    #[test]
    fn any_size_will_do_and_a_recording_has_no_pages() {
        let mut pages = Pages::new(false);
        pages.press(Key::Char('4'));
        assert_eq!(pages.question(), None);
        for (width, height) in [(1, 1), (20, 5), (80, 24), (200, 60)] {
            let (lines, _) = pages.lines(width, height);
            assert!(lines.iter().all(|line| line.chars().count() <= width));
        }
        assert!(pages.lines(80, 24).0[0].contains("a recording has none of this"));
    }
}
