//! What is typed on the serial line comes back, line by line, until somebody says `bye`. The driver is an actor: pinned to the core that takes
//! the port's interrupt, told by a message when bytes have come, and, because it is urgent, not delayed by other work.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use magpie::prelude::*;
use magpie::sched::ExternalSource;
use magpie::serial::{Arrived, Input};

magpie::entry!(serial_echo);

/// A longer line is cut.
const LONGEST: usize = 80;

#[derive(Default)]
struct Echo {
    input: Option<Input>,
    /// While bytes may come the system has work.
    expects: Option<ExternalSource>,
    line: String,
    lines: u32,
}

impl Actor for Echo {
    fn started() -> Option<Hook<Self>> {
        Some(|echo, context| match Input::take(context.address().recipient()) {
            Ok(input) => {
                (echo.input, echo.expects) = (Some(input), Some(ExternalSource::new()));
                text!("type something; bye ends");
            }
            Err(error) => {
                text!("no input: {error}");
                context.end();
            }
        })
    }
}

impl Receive<Arrived> for Echo {
    type Reply = ();

    fn receive(&mut self, _: Arrived, context: &mut Context<Self>) {
        while let Some(byte) = self.input.as_mut().and_then(Input::receive) {
            match byte {
                b'\r' | b'\n' if self.line.is_empty() => {}
                b'\r' | b'\n' if self.line == "bye" => {
                    text!("{} lines came back", self.lines);
                    return context.end();
                }
                b'\r' | b'\n' => {
                    self.lines += 1;
                    text!("you said: {}", self.line);
                    self.line.clear();
                }
                byte if self.line.len() < LONGEST => self.line.push(char::from(byte)),
                _ => {}
            }
        }
    }
}

async fn serial_echo() -> magpie::Result {
    let drivers = Executor::start(&Config::default().priority(Priority::High))?;
    drivers.handle().spawn_pinned(CoreId::BOOT, Echo::default())?;
    drivers.all_ended().await;
    Ok(())
}
