//! The list of tests, collected by the linker.

use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;

use crate::Outcome;

/// The body of a test, as the runner starts it.
pub type Body = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// One test.
pub struct Test {
    /// Its name, `module::promise`.
    pub name: &'static str,
    /// The least number of cores it makes sense on; with fewer it is skipped.
    pub cores: usize,
    /// What it needs that the host's threads do not have, if anything; there it is skipped.
    pub machine: Option<&'static str>,
    /// Makes its body.
    pub start: fn() -> Body,
}

/// Every test of the image; the linker puts them in any order.
#[linkme::distributed_slice]
pub static TESTS: [Test];

/// Declares a test: an async function, named for the promise it checks, that returns an [`Outcome`].
///
/// `#[cores(N)]` before it skips the test on fewer than `N` cores, `#[machine("why")]` where the suite runs as a program
/// on the host.
#[macro_export]
macro_rules! kernel_test {
    ($(#[doc = $doc:literal])* $(#[cores($cores:literal)])? $(#[machine($why:literal)])?
        async fn $name:ident() -> Outcome $body:block) => {
        $(#[doc = $doc])*
        async fn $name() -> $crate::Outcome $body

        const _: () = {
            #[$crate::linkme::distributed_slice($crate::TESTS)]
            #[linkme(crate = $crate::linkme)]
            static TEST: $crate::Test = $crate::Test {
                name: concat!(module_path!(), "::", stringify!($name)),
                cores: {
                    #[allow(unused_mut, unused_assignments, reason = "only some tests name a number of cores")]
                    {
                        let mut cores = 1;
                        $(cores = $cores;)?
                        cores
                    }
                },
                machine: {
                    #[allow(unused_mut, unused_assignments, reason = "only some tests need the machine")]
                    {
                        let mut machine = None;
                        $(machine = Some($why);)?
                        machine
                    }
                },
                start: || $crate::registry::boxed($name()),
            };
        };
    };
}

/// Boxes a test's future; for the macro.
pub fn boxed(body: impl Future<Output = Outcome> + Send + 'static) -> Body {
    Box::pin(body)
}
