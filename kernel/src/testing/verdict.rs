//! What a test says in the end.

use core::fmt::Debug;
use std::string::String;

/// What a test may return: nothing, or a `Result`, whose error makes it fail.
///
/// ```
/// use magpie::testing::Verdict;
/// assert_eq!(().failure(), None);
/// let failed: Result<(), _> = Err("no luck");
/// assert!(failed.failure().is_some_and(|why| why.contains("no luck")));
/// ```
#[diagnostic::on_unimplemented(
    message = "a test cannot return `{Self}`",
    label = "returns neither `()` nor `Result<(), E>`",
    note = "a test returns `()`, or `Result<(), E>` where `E: Debug`"
)]
pub trait Verdict: Send + 'static {
    /// Why the test has failed, if it has.
    fn failure(self) -> Option<String>;
}

impl Verdict for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Debug + Send + 'static> Verdict for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| std::format!("the test returned an error: {error:?}"))
    }
}
