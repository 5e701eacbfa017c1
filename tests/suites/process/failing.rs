//! What a test that fails says: what was found, and where in the test that is.

use magpie_tests::{Outcome, ensure, ensure_eq, kernel_test};

fn differs() -> (u32, Outcome) {
    let fails = || {
        ensure_eq!(1 + 1, 3, "the sum");
        Ok(())
    };
    (line!() - 3, fails())
}

fn does_not_hold() -> (u32, Outcome) {
    let fails = || {
        ensure!(core::hint::black_box(1) > 2, "one is {}", "small");
        Ok(())
    };
    (line!() - 3, fails())
}

fn an_error() -> (u32, Outcome) {
    let fails = || {
        Err::<(), _>("no paper")?;
        Ok(())
    };
    (line!() - 3, fails())
}

kernel_test! {
    async fn it_says_where() -> Outcome {
        let cases = [
            (differs(), "the sum: found 2, expected 3"),
            (does_not_hold(), "one is small"),
            (an_error(), "no paper"),
        ];
        for ((line, outcome), what) in cases {
            let said = outcome.map_or_else(|failure| failure.0, |()| "nothing".into());
            let place = alloc::format!("{what} ({}:{line}", file!());
            ensure!(said.starts_with(&place), "{said}, and not {place}");
        }
        Ok(())
    }
}
