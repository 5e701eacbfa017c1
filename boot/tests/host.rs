//! An application as a program of the host's own: what it says when it can never end.

use std::future::pending;
use std::process::Command;

use magpie_boot::host;

/// Set for the process in which the application runs: the kernel's state is in statics, and the program ends with it.
const INSIDE: &str = "MAGPIE_TEST_INSIDE";

#[test]
fn whoever_waits_for_ever_says_so_and_fails() {
    if std::env::var_os(INSIDE).is_some() {
        host::run("waiting", pending::<()>());
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "whoever_waits_for_ever_says_so_and_fails", "--nocapture"]).env(INSIDE, "1");
    let said = command.output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(text.contains("every process waits for another"), "{text}");
    assert_eq!(said.status.code(), Some(1), "{text}");
}
