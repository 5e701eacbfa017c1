//! Tests for checks that also run elsewhere, one test each.

use alloc::string::String;
use magpie::actor::checks::Check;

use crate::{Failure, Outcome};

/// Runs the check of that name with so much work.
pub async fn run(checks: &[Check], name: &str, work: u64) -> Outcome {
    let Some(check) = checks.iter().find(|check| check.name == name) else {
        return Err(Failure(alloc::format!("there is no check {name}")));
    };
    (check.start)(work).await.map_err(Failure)
}

/// What is left out of a suite, or there once too often; for its last test.
pub fn compare(names: &[&str], checks: &[Check]) -> Outcome {
    let missing: String =
        checks.iter().filter(|check| !names.contains(&check.name)).map(|check| check.name).collect();
    crate::ensure!(missing.is_empty(), "checks without a test: {missing}");
    crate::ensure_eq!(names.len(), checks.len(), "tests, for so many checks");
    Ok(())
}

/// `everywhere!(checks, run, [module::name, ...])`: a test for each check of the list `checks`, which `run` starts by its
/// name, and one that says whether any is left out.
#[macro_export]
macro_rules! everywhere {
    ($checks:path, $run:path, [$($module:ident::$name:ident),* $(,)?]) => {
        $(mod $name {
            $crate::kernel_test! {
                async fn check() -> Outcome {
                    $run(concat!(stringify!($module), "::", stringify!($name))).await
                }
            }
        })*

        $crate::kernel_test! {
            /// No check is left out here.
            async fn every_check_has_its_test() -> Outcome {
                $crate::everywhere::compare(&[$(concat!(stringify!($module), "::", stringify!($name))),*], $checks)
            }
        }
    };
}
