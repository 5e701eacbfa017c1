//! Connections to a real Erlang node, over TCP: what it asks of this side, and what is asked of it.

mod common;

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use common::driver::{COUNTER, Seen, chance, drive, identity, limits, look_up, lost, serve_epmd};
use magpie_dist::connection::{Closed, Connection, Event, Limits, Lost, To};
use magpie_dist::term::AtomBuf;

/// Erlang's node has one name in all tests, and this side one address: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A program that is ended when this is dropped.
struct Running(Child);

impl Running {
    fn succeeds(&mut self) -> bool {
        self.0.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A machine for Erlang at 127.0.0.1 with an EPMD at a port that is no other's.
struct Cluster {
    epmd_port: u16,
    _epmd: Running,
}

impl Cluster {
    fn new() -> Self {
        // One that is free at both addresses.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let epmd_port = free.local_addr().unwrap().port();
        drop(free);
        let mut epmd = Command::new("epmd");
        epmd.args(["-address", "127.0.0.1", "-port", &epmd_port.to_string()]);
        let epmd =
            Running(epmd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("epmd does not start"));
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", epmd_port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "epmd does not listen");
            thread::sleep(Duration::from_millis(10));
        }
        Self { epmd_port, _epmd: epmd }
    }

    fn erlang(&self, what: &str) -> Running {
        let path = format!("{}/tests/erlang/cluster.escript", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new("escript");
        command.arg(path).arg(what).env("ERL_EPMD_PORT", self.epmd_port.to_string());
        Running(command.stdout(Stdio::piped()).spawn().expect("escript does not start"))
    }

    /// What this side listens at, which its own EPMD tells.
    fn listen(&self) -> TcpListener {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let epmd = TcpListener::bind(("127.0.0.2", self.epmd_port)).unwrap();
        serve_epmd(epmd, "magpie", listener.local_addr().unwrap().port());
        listener
    }
}

const NAME: &str = "magpie@127.0.0.2";

/// The next connection that comes; who waits for one that does not come would wait for ever.
fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let began = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                return stream;
            }
            Err(_) => assert!(began.elapsed() < Duration::from_secs(30), "nobody connects"),
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Accepts one connection, and drives it to its end.
fn serve(listener: &TcpListener, limits: Limits, seen: &mut Seen) -> (Option<Closed>, Connection) {
    let mut stream = accept(listener);
    let mut connection = Connection::accept(identity(NAME, "secret"), limits, chance(), 0).unwrap();
    (drive(&mut stream, &mut connection, seen), connection)
}

#[test]
#[ignore = "needs Erlang: `cargo xtask test --host` installs it"]
fn erlang_finds_calls_watches_and_links() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let cluster = Cluster::new();
    let listener = cluster.listen();
    let mut erlang = cluster.erlang("inward");
    let mut seen = Seen::default();
    let (closed, mut connection) = serve(&listener, limits(), &mut seen);
    // If the other side gave up, it has said why.
    assert_eq!(closed, None);
    assert_eq!(lost(&mut connection), [], "{seen:?}");
    let statistics = connection.peer().statistics();
    assert_eq!((statistics.unknown, statistics.spawns, statistics.refused), (0, 1, 0), "{statistics:?}");
    let (closed, _) = serve(&listener, limits(), &mut seen);
    assert_eq!(closed, None);
    assert!(erlang.succeeds(), "{seen:?}");
    let expected = [
        "up a@127.0.0.1",
        "nobody",
        "nobody",
        "unlinked",
        "exit asked of 1 please",
        "cast magpie:note [1]",
        "exit died",
        "exit noproc",
        "up a@127.0.0.1",
    ];
    assert_eq!(seen.log.len(), expected.len(), "{seen:?}");
    assert!(seen.log.iter().zip(expected).all(|(said, it)| said.starts_with(it)), "{seen:?}");
}

#[test]
#[ignore = "needs Erlang: `cargo xtask test --host` installs it"]
fn another_cookie_is_refused() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let cluster = Cluster::new();
    let listener = cluster.listen();
    let mut erlang = cluster.erlang("cookie");
    let mut seen = Seen::default();
    for cookie in ["other", "other"] {
        let mut stream = accept(&listener);
        let mut connection = Connection::accept(identity(NAME, cookie), limits(), chance(), 0).unwrap();
        let closed = drive(&mut stream, &mut connection, &mut seen);
        let is_first = seen.log.is_empty();
        assert_eq!(closed, is_first.then_some(Closed::Cookie));
    }
    assert_eq!(seen.log, ["up a@127.0.0.1"]);
    assert!(erlang.succeeds());
}

#[test]
#[ignore = "needs Erlang: `cargo xtask test --host` installs it"]
fn a_huge_frame_ends_the_connection() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let cluster = Cluster::new();
    let listener = cluster.listen();
    let mut erlang = cluster.erlang("huge");
    let mut seen = Seen::default();
    let (closed, connection) = serve(&listener, limits(), &mut seen);
    assert!(matches!(closed, Some(Closed::TooLong(length)) if length > 2_000_000), "{closed:?}");
    drop(connection);
    assert!(erlang.succeeds());
}

#[test]
#[ignore = "needs Erlang: `cargo xtask test --host` installs it"]
fn this_side_connects_and_calls() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let cluster = Cluster::new();
    let mut erlang = cluster.erlang("called");
    let mut line = String::new();
    BufReader::new(erlang.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let epmd = ("127.0.0.1", cluster.epmd_port);
    assert_eq!(look_up(epmd, "nobody"), None);
    let port = look_up(epmd, "a").unwrap();

    // Somebody else's name is seen.
    for (name, cookie, expected) in
        [("b@127.0.0.1", "secret", Closed::WrongName), ("a@127.0.0.1", "wrong", Closed::Cookie)]
    {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut connection =
            Connection::connect(identity(NAME, cookie), name, limits(), chance(), 0).unwrap();
        match drive(&mut stream, &mut connection, &mut Seen::default()) {
            // Who has the wrong cookie is hung up on.
            None => assert_eq!(expected, Closed::Cookie),
            closed => assert_eq!(closed, Some(expected)),
        }
        assert!(!connection.is_up());
    }

    use std::io::{Read as _, Write as _};
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut connection =
        Connection::connect(identity(NAME, "secret"), "a@127.0.0.1", limits(), chance(), 0).unwrap();
    let twice = (AtomBuf::new("twice").unwrap(), 21);
    let mut reply = None;
    while reply.is_none() {
        stream.write_all(connection.output()).unwrap();
        let count = connection.output().len();
        connection.sent(count, 0);
        let count = stream.read(connection.space()).unwrap();
        assert_ne!(count, 0);
        connection.received(count, 0);
        while let Some((event, peer)) = connection.event().unwrap() {
            match event {
                Event::Up => drop(peer.call(COUNTER, To::Name("shell"), &twice).unwrap()),
                Event::Replied { reply: term, local, .. } => {
                    reply = Some((term.decode::<u64>().unwrap(), local))
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(reply, Some((42, COUNTER)));
    // What is under way when the connection ends is told.
    let call = connection.peer().call(COUNTER, To::Name("shell"), &()).unwrap();
    let watch = connection.peer().monitor(COUNTER, To::Name("shell")).unwrap();
    connection.peer().send(COUNTER, To::Name("shell"), &AtomBuf::new("goodbye").unwrap()).unwrap();
    stream.write_all(connection.output()).unwrap();
    assert_eq!(lost(&mut connection), [Lost::Watch(watch, COUNTER), Lost::Call(call, COUNTER)]);
    assert_eq!(lost(&mut connection), []);
    assert!(erlang.succeeds());
}
