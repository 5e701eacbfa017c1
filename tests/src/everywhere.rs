//! Tests for checks that also run elsewhere, one test each.

use magpie::actor::checks::Check;

use crate::{Failure, Outcome, amount};

/// Runs the check of that name with as much work as the boot argument `work` says, and `usual_work` unless it is given.
pub async fn run(checks: &[Check], name: &str, usual_work: u64) -> Outcome {
    let Some(check) = checks.iter().find(|check| check.name == name) else {
        return Err(Failure(alloc::format!("there is no check {name}")));
    };
    (check.start)(amount("work", usual_work)).await.map_err(Failure)
}

/// `everywhere!([module::check, ...], run)`: a test for each check, which `run` starts by its name. The list comes from
/// `magpie::actor_checks` or its like, so that none is left out.
#[macro_export]
macro_rules! everywhere {
    ([$($module:ident::$name:ident),* $(,)?], $run:path) => {
        $(mod $name {
            $crate::kernel_test! {
                async fn check() -> Outcome {
                    $run(concat!(stringify!($module), "::", stringify!($name))).await
                }
            }
        })*
    };
}
