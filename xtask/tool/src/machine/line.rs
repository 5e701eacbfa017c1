//! A guest's second serial port, whose other end is this tool: a pair of sockets, of which QEMU is handed one.

use super::Net;
use crate::serial_line::{Gateway, run};
use anyhow::{Context, Result};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

/// This tool's end, and QEMU's until it has it.
pub struct Line {
    gateway: Gateway,
    end: UnixStream,
    _others: OwnedFd,
}

impl Line {
    /// A line on which that network is, for a QEMU that is about to be started by this command.
    pub fn of(net: &Net, command: &mut Command) -> Result<Self> {
        let gateway = Gateway::new(&net.forwards)?;
        let (end, others) = UnixStream::pair().context("a line to QEMU cannot be made")?;
        end.set_nonblocking(true).context("a line to QEMU cannot be made")?;
        let others = OwnedFd::from(others);
        // It is the second port because it is named second.
        command.arg("-chardev").arg(format!("socket,id=line,fd={}", others.as_raw_fd()));
        command.args(["-serial", "chardev:line"]);
        let kept = others.as_raw_fd();
        let keep = move || {
            // SAFETY: the command is started while this is there, and with it the end.
            let others = unsafe { BorrowedFd::borrow_raw(kept) };
            fcntl(others, FcntlArg::F_SETFD(FdFlag::empty()))?;
            Ok(())
        };
        // SAFETY: between fork and exec only functions may be called that are safe in a signal handler. This is one system call, which does not allocate.
        unsafe { command.pre_exec(keep) };
        Ok(Self { gateway, end, _others: others })
    }

    /// Carries what goes over it, in a thread of its own, until QEMU has ended.
    pub fn carry(self) {
        let Self { mut gateway, mut end, _others: others } = self;
        // QEMU has it now, and its end is to be noticed.
        drop(others);
        thread::spawn(move || {
            let ending = run(&mut end, &mut gateway, |notice| eprintln!("xtask: {notice}"), || false);
            if let Err(error) = ending {
                eprintln!("xtask: the line to the guest has failed: {error}");
            }
        });
    }
}
