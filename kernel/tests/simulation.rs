//! Deterministic simulation: the real scheduler and executor on shuttle's threads, every choice decided by a seed.
//!
//!     RUSTFLAGS="--cfg shuttle" cargo test -p magpie --release --features checks --test simulation --target-dir target/shuttle
//!
//! Arguments: `--seeds N` (200 unless told), `--seed FIRST` (1). Each seed is a process of its own, for the scheduler keeps
//! its state in statics. A seed that fails is printed with what it said; the same seed fails again, in the same way:
//! `--seed N --seeds 1`. `MAGPIE_MUTANT` breaks a step, as for the models; then a seed has to fail, and the first that
//! does is printed. Time is simulated, so a seed does not depend on the machine.

#[cfg(not(shuttle))]
fn main() -> std::process::ExitCode {
    eprintln!("no simulation: build with RUSTFLAGS=\"--cfg shuttle\"");
    std::process::ExitCode::from(2)
}

#[cfg(shuttle)]
mod scenarios;

#[cfg(shuttle)]
fn main() -> std::process::ExitCode {
    parent_or_child::main()
}

#[cfg(shuttle)]
mod parent_or_child {
    use std::process::{Command, ExitCode, Stdio};
    use std::time::{Duration, Instant};

    /// One seed may take so long; a system that stops doing anything is found by then.
    const TIME_LIMIT: Duration = Duration::from_secs(60);
    const CHILD: &str = "--child";

    pub fn main() -> ExitCode {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let value = |name: &str, usual: u64| {
            let place = arguments.iter().position(|argument| argument == name);
            place.and_then(|place| arguments.get(place + 1)?.parse().ok()).unwrap_or(usual)
        };
        if arguments.iter().any(|argument| argument == CHILD) {
            super::scenarios::run(value(CHILD, 1));
            return ExitCode::SUCCESS;
        }
        let (first, count) = (value("--seed", 1), value("--seeds", 200));
        let mutant = std::env::var("MAGPIE_MUTANT").unwrap_or_default();
        let (mut passed, mut failed) = (0_u64, 0_u64);
        for seed in first..first + count {
            match one(seed) {
                Ok(()) => passed += 1,
                Err(said) => {
                    failed += 1;
                    let name = super::scenarios::name(seed);
                    if !mutant.is_empty() {
                        println!("  mutant {mutant} rejected by seed {seed}, {name}: {said}");
                        println!("1 passed, 0 failed");
                        return ExitCode::SUCCESS;
                    }
                    println!("! seed {seed}, {name}: {said}");
                }
            }
        }
        if !mutant.is_empty() {
            println!("! mutant {mutant} was not noticed in {count} seeds");
            println!("0 passed, 1 failed");
            return ExitCode::FAILURE;
        }
        println!("{passed} passed, {failed} failed");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn one(seed: u64) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args([CHILD, &seed.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let began = Instant::now();
        let stderr = child.stderr.take();
        let reader = std::thread::spawn(move || {
            let mut said = String::new();
            if let Some(mut stderr) = stderr {
                let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
            }
            said
        });
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if began.elapsed() > TIME_LIMIT => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break None;
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error.to_string()),
            }
        };
        let said = reader.join().unwrap_or_default();
        match status {
            Some(status) if status.success() => Ok(()),
            None => Err(format!("no end within {} s", TIME_LIMIT.as_secs())),
            Some(_) => {
                let first = said.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
                Err(first.unwrap_or("it ended badly and said nothing").to_owned())
            }
        }
    }
}
