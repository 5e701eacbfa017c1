//! A node over std TCP, as small as can be: it drives connections, and has one process, the counter.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use magpie_dist::connection::{
    Admission, Body, Chance, Class, Closed, Connection, Destination, Event, Identity, Limits, LocalPid, Lost,
    Peer, RemotePid, To,
};
use magpie_dist::epmd::{Answered, Entry, answer, find, found};
use magpie_dist::term::{AtomBuf, Pid, Term, TermBuf};

pub const COUNTER: LocalPid = LocalPid::new(1, 0);
pub const BYSTANDER: LocalPid = LocalPid::new(2, 7);

/// What a driver has seen.
#[derive(Default, Debug)]
pub struct Seen {
    pub count: i64,
    /// What happened that no reply shows, as text.
    pub log: Vec<String>,
    /// Whom to say `done` when a call of ours ended, and how.
    pub calls: BTreeMap<u64, RemotePid>,
}

/// The same in each test, whatever others do meanwhile.
fn number() -> u32 {
    thread_local!(static NUMBER: Cell<u32> = const { Cell::new(7) });
    NUMBER.replace(NUMBER.get() + 1)
}

pub fn chance() -> Chance {
    Chance { challenge: number().wrapping_mul(0x9e37_79b9), salt: number() }
}

/// Drives a connection until it ends; why it did.
pub fn drive(stream: &mut TcpStream, connection: &mut Connection, seen: &mut Seen) -> Option<Closed> {
    let began = Instant::now();
    let now = || began.elapsed().as_millis() as u64;
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    stream.set_nodelay(true).unwrap();
    loop {
        let closed = turn(connection, seen).err();
        while !connection.output().is_empty() {
            match stream.write(connection.output()) {
                Ok(count) => connection.sent(count, now()),
                Err(_) => return connection.closed(),
            }
        }
        if closed.is_some() {
            return closed;
        }
        let space = connection.space();
        if space.is_empty() {
            continue;
        }
        match stream.read(space) {
            Ok(0) => return None,
            Ok(count) => connection.received(count, now()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return None,
        }
        if now() >= connection.deadline()
            && let Err(closed) = connection.elapsed(now())
        {
            return Some(closed);
        }
    }
}

fn turn(connection: &mut Connection, seen: &mut Seen) -> Result<(), Closed> {
    while let Some((event, peer)) = connection.event()? {
        match event {
            Event::Named { .. } => connection.admit(Admission::Accepted),
            event => handle(event, peer, seen),
        }
    }
    Ok(())
}

fn word(name: &str) -> AtomBuf {
    AtomBuf::new(name).unwrap()
}

fn handle(event: Event<'_>, peer: &mut Peer, seen: &mut Seen) {
    match event {
        Event::Up => seen.log.push(format!("up {}", peer.name())),
        Event::Message { from, to, message } => match to {
            Destination::Name(name) if name.is("counter") => counter(from, message, peer, seen),
            Destination::Pid(COUNTER) => counter(from, message, peer, seen),
            _ => seen.log.push(format!("nobody {message}")),
        },
        Event::Monitored { monitor, target, .. } => match target {
            Destination::Name(name) if name.is("counter") => peer.resolve(monitor, COUNTER).unwrap(),
            Destination::Pid(COUNTER | BYSTANDER) => {}
            _ => peer.down(monitor, &word("noproc")).unwrap(),
        },
        Event::Linked { to, .. } if to != COUNTER => peer.exited(to, &word("noproc")).unwrap(),
        Event::Demonitored { .. } | Event::Linked { .. } => {}
        Event::Rpc { call, module, function, arguments } => {
            let arguments = arguments.decode::<Vec<TermBuf>>().unwrap();
            match (call, module.as_str(), function.as_str()) {
                (Some(call), Some("magpie"), Some("load")) => {
                    peer.returned(call, &(word("load"), arguments)).unwrap()
                }
                (Some(call), Some("magpie"), Some("throw")) => {
                    peer.raised(call, Class::Throw, &word("thrown")).unwrap()
                }
                (Some(call), ..) => peer.raised(call, Class::Error, &word("undef")).unwrap(),
                (None, ..) => seen.log.push(format!("cast {module}:{function} {arguments:?}")),
            }
        }
        Event::Replied { call, reply, .. } => {
            let to = seen.calls.remove(&call.number()).unwrap();
            peer.send(COUNTER, To::Pid(to), &(word("replied"), reply)).unwrap();
        }
        Event::CallFailed { call, reason, .. } => {
            let to = seen.calls.remove(&call.number()).unwrap();
            peer.send(COUNTER, To::Pid(to), &(word("failed"), reason)).unwrap();
        }
        Event::Down { reason, .. } => {
            peer.send(COUNTER, To::Name("shell"), &(word("heard_down"), reason)).unwrap();
        }
        Event::Exit { reason, .. } => {
            seen.log.push(format!("exit {reason}"));
            peer.send(COUNTER, To::Name("shell"), &(word("heard_exit"), reason)).unwrap();
        }
        Event::ExitAsked { to, reason, .. } => seen.log.push(format!("exit asked of {} {reason}", to.id())),
        Event::Unlinked { .. } => seen.log.push("unlinked".into()),
        _ => {}
    }
}

#[derive(Debug)]
enum Request {
    Add(i64),
    Where,
    Echo(TermBuf),
    Crash(TermBuf),
    /// Call this one with that, and say what came of it.
    Call(AtomBuf, TermBuf),
    Watch(TermBuf),
    Link(TermBuf),
    Unlink(TermBuf),
    Stop(TermBuf, TermBuf),
}

magpie_dist::term! {
    enum Request {
        Add(count) as "add", Where as "where", Echo(what) as "echo", Crash(why) as "crash",
        Call(whom, what) as "call", Watch(whom) as "watch", Link(whom) as "link", Unlink(whom) as "unlink",
        Stop(whom, why) as "stop",
    }
}

fn remote(pid: &TermBuf) -> RemotePid {
    let pid: Pid<'_> = pid.as_term().decode().unwrap();
    RemotePid { id: pid.id, serial: pid.serial, creation: pid.creation }
}

fn counter(from: Option<RemotePid>, message: Term<'_>, peer: &mut Peer, seen: &mut Seen) {
    match peer.body(message) {
        Body::Call { to, request } => match request.decode::<Request>() {
            Ok(Request::Add(count)) => {
                seen.count += count;
                peer.reply(&to, &seen.count).unwrap();
            }
            Ok(Request::Where) => {
                let own = peer.pid(COUNTER).to_buf().unwrap();
                peer.reply(&to, &own).unwrap();
            }
            Ok(Request::Echo(what)) => peer.reply(&to, &what).unwrap(),
            Ok(Request::Crash(why)) => peer.exited(COUNTER, &why).unwrap(),
            Ok(Request::Call(whom, what)) => {
                let call = peer.call(COUNTER, To::Name(whom.as_str()), &what).unwrap();
                seen.calls.insert(call.number(), from.unwrap());
                peer.reply(&to, &()).unwrap();
            }
            Ok(Request::Watch(whom)) => {
                peer.monitor(BYSTANDER, To::Pid(remote(&whom))).unwrap();
                peer.reply(&to, &()).unwrap();
            }
            Ok(Request::Link(whom)) => {
                peer.link(BYSTANDER, remote(&whom)).unwrap();
                peer.reply(&to, &()).unwrap();
            }
            Ok(Request::Unlink(whom)) => {
                peer.unlink(BYSTANDER, remote(&whom)).unwrap();
                peer.reply(&to, &()).unwrap();
            }
            Ok(Request::Stop(whom, why)) => {
                peer.exit_to(COUNTER, remote(&whom), &why).unwrap();
                peer.reply(&to, &()).unwrap();
            }
            Err(error) => peer.reply(&to, &Err::<(), _>(error.to_string())).unwrap(),
        },
        Body::Cast(request) => match request.decode::<Request>() {
            Ok(Request::Add(count)) => seen.count += count,
            other => seen.log.push(format!("{other:?}")),
        },
        Body::Other(message) => match from {
            Some(from) => peer.send(COUNTER, To::Pid(from), &(word("echo"), message)).unwrap(),
            None => seen.log.push(format!("from nobody {message}")),
        },
    }
}

/// Answers EPMD's requests for one node, each on a connection of its own, until the process ends.
pub fn serve_epmd(listener: TcpListener, name: &'static str, port: u16) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let (mut request, mut said, mut part) = (Vec::new(), Vec::new(), [0; 64]);
            while answer(&request, &[Entry { name, port }], &mut said) == Ok(Answered::Incomplete) {
                match stream.read(&mut part) {
                    Ok(count) if count > 0 => request.extend_from_slice(&part[..count]),
                    _ => break,
                }
            }
            let _ = stream.write_all(&said);
        }
    });
}

/// Where a node listens, by its machine's EPMD.
pub fn look_up(epmd: (&str, u16), name: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(epmd).ok()?;
    let (mut request, mut said) = (Vec::new(), Vec::new());
    find(name, &mut request).unwrap();
    stream.write_all(&request).unwrap();
    stream.read_to_end(&mut said).ok()?;
    found(&said).ok()?.map(|node| node.port)
}

pub fn identity(name: &str, cookie: &str) -> Arc<Identity> {
    Arc::new(Identity::new(name, cookie, number() | 1 << 20).unwrap())
}

/// All who had to be told of an end.
pub fn lost(connection: &mut Connection) -> Vec<Lost> {
    connection.lost().collect()
}

pub fn limits() -> Limits {
    Limits { tick_ms: 4000, output: 1 << 20, ..Limits::default() }
}
