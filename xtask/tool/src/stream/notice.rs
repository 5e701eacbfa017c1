//! Reads the lines for the host tool, which begin with `@` (docs/architecture.md). That a line is one, the splitter knows.

use std::time::Duration;

/// One such line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The first line: which build runs, where.
    Boot {
        /// The build's id, to be compared with the ELF's.
        build: u64,
        /// The application's name.
        app: String,
        /// The board's name.
        board: String,
        /// How many cores the kernel found.
        cores: u32,
    },
    /// A test begins.
    TestStart(String),
    /// It is about to stop the kernel, with a panic that contains this.
    TestPanics(String),
    /// It passed.
    TestOk(String, Duration),
    /// It failed, with the reason.
    TestFail(String, String),
    /// It cannot run here, with the reason.
    TestSkip(String, String),
    /// All tests were run: passed, failed, skipped.
    TestDone(u32, u32, u32),
    /// One figure: the benchmark's name and its `key=value` words.
    Bench(String, String),
    /// The kernel stops with failure.
    Panic(String),
}

impl Notice {
    /// Reads a line; `None` when it is ordinary text (or was damaged on the way).
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.trim_end();
        let (kind, rest) = line.split_once(' ')?;
        let rest = rest.trim_start();
        match kind {
            "@magpie" => boot(rest),
            "@test" => test(rest),
            "@bench" => {
                let (name, figures) = rest.split_once(' ')?;
                Some(Self::Bench(name.to_owned(), figures.to_owned()))
            }
            "@panic" => Some(Self::Panic(rest.to_owned())),
            _ => None,
        }
    }
}

fn boot(words: &str) -> Option<Notice> {
    let value = |key: &str| {
        words
            .split_whitespace()
            .find_map(|word| word.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')))
    };
    Some(Notice::Boot {
        build: u64::from_str_radix(value("build")?, 16).ok()?,
        app: value("app")?.to_owned(),
        board: value("board")?.to_owned(),
        cores: value("cores")?.parse().ok()?,
    })
}

fn test(rest: &str) -> Option<Notice> {
    let (what, rest) = rest.split_once(' ')?;
    let named_reason = || {
        // A name may itself contain `::`, so the reason begins behind the first colon and blank.
        let (name, reason) = rest.split_once(": ").unwrap_or((rest, ""));
        (name.trim().to_owned(), reason.trim().to_owned())
    };
    match what {
        "start" => Some(Notice::TestStart(rest.trim().to_owned())),
        "panics" => Some(Notice::TestPanics(rest.trim().to_owned())),
        "ok" => {
            let (name, millis) = rest.trim().rsplit_once(' ')?;
            Some(Notice::TestOk(name.to_owned(), Duration::from_millis(millis.parse().ok()?)))
        }
        "fail" => {
            let (name, reason) = named_reason();
            Some(Notice::TestFail(name, reason))
        }
        "skip" => {
            let (name, reason) = named_reason();
            Some(Notice::TestSkip(name, reason))
        }
        "done" => {
            let mut numbers = rest.split_whitespace().map(str::parse);
            let mut next = || numbers.next()?.ok();
            Some(Notice::TestDone(next()?, next()?, next()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Notice;
    use std::time::Duration;

    fn parse(line: &str) -> Option<Notice> {
        Notice::parse(line.as_bytes())
    }

    #[test]
    fn reads_the_first_line() {
        assert_eq!(
            parse("@magpie build=00c0ffee00c0ffee app=wordcount board=qemu-virt cores=4\r"),
            Some(Notice::Boot {
                build: 0x00c0_ffee_00c0_ffee,
                app: "wordcount".into(),
                board: "qemu-virt".into(),
                cores: 4
            })
        );
    }

    #[test]
    fn reads_every_test_line() {
        assert_eq!(parse("@test start sched::steal"), Some(Notice::TestStart("sched::steal".into())));
        assert_eq!(parse("@test panics two words"), Some(Notice::TestPanics("two words".into())));
        assert_eq!(
            parse("@test ok sched::steal 12"),
            Some(Notice::TestOk("sched::steal".into(), Duration::from_millis(12)))
        );
        assert_eq!(
            parse("@test fail sched::steal: lost 1 process: number 7"),
            Some(Notice::TestFail("sched::steal".into(), "lost 1 process: number 7".into()))
        );
        assert_eq!(
            parse("@test skip sched::steal: needs 2 cores"),
            Some(Notice::TestSkip("sched::steal".into(), "needs 2 cores".into()))
        );
        assert_eq!(parse("@test done 3 1 2"), Some(Notice::TestDone(3, 1, 2)));
    }

    #[test]
    fn reads_panics_and_figures() {
        assert_eq!(parse("@panic out of stacks"), Some(Notice::Panic("out of stacks".into())));
        assert_eq!(
            parse("@bench ping-pong instructions=212 messages=1000"),
            Some(Notice::Bench("ping-pong".into(), "instructions=212 messages=1000".into()))
        );
    }

    #[test]
    fn damaged_or_ordinary_lines_are_not_notices() {
        for line in [
            "",
            "@",
            "@test",
            "@test ok steal",
            "@test done 1 2",
            "@test ok steal 1x",
            "@magpie build=zz app=a board=b cores=1",
            "@magpie app=a board=b cores=1",
            "words: 12",
            " @panic no",
        ] {
            assert_eq!(parse(line), None, "{line:?}");
        }
    }
}
