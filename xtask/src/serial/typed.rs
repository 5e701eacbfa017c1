//! What is typed here for the other end of a serial line, a line at a time: the terminal edits it, and echoes it.

use std::io::{self, BufRead};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// Lines from standard input, with their ends, as they come; none any more after its end.
pub fn lines() -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    // It waits in a read when this tool ends, and ends with it.
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    // The last one may lack it.
                    if !line.ends_with(b"\n") {
                        line.push(b'\n');
                    }
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            }
        }
    });
    receiver
}

/// No line ever.
pub fn nothing() -> Receiver<Vec<u8>> {
    mpsc::channel().1
}
