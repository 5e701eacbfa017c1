//! The gateway against a machine that is another smoltcp, over a line that loses and garbles bytes, in virtual time; its connections are real ones of this machine's.

use super::carried;
use super::gateway::{Gateway, HERE, THERE};
use super::notice::Notice;
use super::run::{Ending, run};
use super::wire::Wire;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;

const STEP: Duration = Duration::from_millis(1);
/// Real time, for what this machine does: it decides nothing but that a test ends.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// What becomes of bytes on their way: each lost, or garbled, in so many of a hundred thousand.
struct Noise {
    lost: u64,
    garbled: u64,
    state: u64,
}

impl Noise {
    fn draw(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % 100_000
    }

    fn carry(&mut self, bytes: impl Iterator<Item = u8>) -> Vec<u8> {
        let mut come = Vec::new();
        for byte in bytes {
            match self.draw() {
                draw if draw < self.lost => {}
                // Into any other byte: two that are changed in the same bit may pass the sums of TCP and IP.
                draw if draw < self.lost + self.garbled => come.push(byte ^ (self.draw() % 255 + 1) as u8),
                _ => come.push(byte),
            }
        }
        come
    }
}

/// Both ends of a line.
struct Bench {
    gateway: Gateway,
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    noise: Noise,
    /// So many bytes go in a millisecond, each way.
    rate: usize,
    /// So many have gone.
    gone: usize,
    now: Instant,
}

fn free_address() -> SocketAddrV4 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, free.port())
}

impl Bench {
    fn new(forwards: &[(SocketAddrV4, u16)], lost: u64, garbled: u64) -> Self {
        let mut wire = Wire::new();
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|addresses| addresses.push(IpCidr::new(THERE.into(), 24)).unwrap());
        Self {
            gateway: Gateway::new(forwards).unwrap(),
            wire,
            interface,
            sockets: SocketSet::new(Vec::new()),
            noise: Noise { lost, garbled, state: 0x5eed },
            rate: usize::MAX,
            gone: 0,
            now: Instant::ZERO,
        }
    }

    fn listen(&mut self, port: u16) -> SocketHandle {
        let mut socket = carried::socket();
        socket.listen(port).unwrap();
        self.sockets.add(socket)
    }

    /// A millisecond of it.
    fn step(&mut self) {
        self.now += STEP;
        self.gateway.turn(self.now);
        let count = self.gateway.out().len().min(self.rate);
        self.gone += count;
        let there = self.noise.carry(self.gateway.out().drain(..count));
        for byte in there {
            if let Some(packet) = self.wire.hear(byte) {
                self.wire.put(packet, false);
            }
        }
        self.interface.poll(self.now, &mut self.wire, &mut self.sockets);
        let count = self.wire.out().len().min(self.rate);
        self.gone += count;
        let here = self.noise.carry(self.wire.out().drain(..count));
        self.gateway.hear(&here, self.now);
    }

    fn socket(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Goes on until it is so.
    fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        let begin = std::time::Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < PATIENCE, "it does not come to that");
            self.step();
        }
    }

    /// What the machine hears on that socket, to its end.
    fn hear_all(&mut self, handle: SocketHandle) -> Vec<u8> {
        let mut heard = Vec::new();
        self.until(|bench| {
            let socket = bench.socket(handle);
            while let Ok(1..) = socket.recv(|bytes| {
                heard.extend_from_slice(bytes);
                (bytes.len(), bytes.len())
            }) {}
            socket.state() == State::CloseWait && !socket.can_recv()
        });
        heard
    }

    /// The machine says that, and no more.
    fn say_all(&mut self, handle: SocketHandle, bytes: &[u8]) {
        let mut said = 0;
        self.until(|bench| {
            let socket = bench.socket(handle);
            if said < bytes.len() && socket.can_send() {
                said += socket.send_slice(&bytes[said..]).unwrap();
            }
            said == bytes.len()
        });
        self.socket(handle).close();
    }
}

fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut noise = Noise { lost: 0, garbled: 0, state: seed | 1 };
    (0..count).map(|_| noise.draw() as u8).collect()
}

/// Says that on a connection, and hears the answer to its end.
fn exchange(to: SocketAddrV4, said: Vec<u8>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(&said).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        heard
    })
}

fn there_and_back(lost: u64, garbled: u64, count: usize) {
    let host = free_address();
    let mut bench = Bench::new(&[(host, 7)], lost, garbled);
    let handle = bench.listen(7);
    let (question, answer) = (bytes(1, count), bytes(2, count));
    let asks = exchange(host, question.clone());
    let heard = bench.hear_all(handle);
    assert!(heard == question, "what the machine hears");
    bench.say_all(handle, &answer);
    bench.until(|_| asks.is_finished());
    assert!(asks.join().unwrap() == answer, "what the machine says");
}

#[test]
fn what_is_forwarded_comes_byte_for_byte() {
    there_and_back(0, 0, 1_000_000);
}

#[test]
fn a_slow_line_carries_next_to_nothing_twice() {
    const BYTES: usize = 100_000;
    let host = free_address();
    let mut bench = Bench::new(&[(host, 7)], 0, 0);
    // 115,200 bits in a second are 11.52 bytes in a millisecond.
    bench.rate = 11;
    let handle = bench.listen(7);
    let (question, answer) = (bytes(1, BYTES), bytes(2, BYTES));
    let asks = exchange(host, question.clone());
    assert!(bench.hear_all(handle) == question);
    bench.say_all(handle, &answer);
    bench.until(|_| asks.is_finished());
    assert!(asks.join().unwrap() == answer);
    // Heads, acknowledgements, and the marks of SLIP.
    assert!(bench.gone < 2 * BYTES * 12 / 10, "{} bytes", bench.gone);
}

#[test]
fn several_connections_share_a_slow_line() {
    const MANY: usize = 4;
    const BYTES: usize = 50_000;
    let host = free_address();
    let mut bench = Bench::new(&[(host, 7)], 0, 0);
    bench.rate = 11;
    let handles: Vec<_> = (0..MANY).map(|_| bench.listen(7)).collect();
    let asks: Vec<_> = (0..MANY).map(|who| exchange(host, bytes(who as u64, BYTES))).collect();
    let mut heard: Vec<_> = handles.iter().map(|handle| bench.hear_all(*handle)).collect();
    handles.iter().for_each(|handle| bench.socket(*handle).close());
    bench.until(|_| asks.iter().all(thread::JoinHandle::is_finished));
    let mut said: Vec<_> = (0..MANY).map(|who| bytes(who as u64, BYTES)).collect();
    said.sort();
    heard.sort();
    assert!(said == heard);
    assert!(bench.gone < MANY * BYTES * 12 / 10, "{} bytes", bench.gone);
}

#[test]
fn what_is_lost_or_garbled_on_the_line_is_sent_again() {
    // Of the longest packets one byte is lost in every thirtieth, and one garbled in every sixteenth.
    there_and_back(2, 4, 200_000);
}

#[test]
fn many_connections_go_beside_each_other() {
    const MANY: usize = 20;
    let host = free_address();
    let mut bench = Bench::new(&[(host, 7)], 0, 0);
    let handles: Vec<_> = (0..MANY).map(|_| bench.listen(7)).collect();
    let asks: Vec<_> = (0..MANY).map(|who| exchange(host, bytes(who as u64, 3000))).collect();
    let mut heard: Vec<_> = handles.iter().map(|handle| bench.hear_all(*handle)).collect();
    for (handle, heard) in handles.iter().zip(&heard) {
        bench.say_all(*handle, &heard.iter().rev().copied().collect::<Vec<_>>());
    }
    bench.until(|_| asks.iter().all(thread::JoinHandle::is_finished));
    let mut said: Vec<_> = asks.into_iter().map(|asks| asks.join().unwrap()).collect();
    for said in &mut said {
        said.reverse();
    }
    said.sort();
    heard.sort();
    assert!(said == heard);
}

#[test]
fn what_the_machine_connects_to_is_this_machines_own() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let serves = thread::spawn(move || {
        let mut stream = server.accept().unwrap().0;
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        heard.reverse();
        stream.write_all(&heard).unwrap();
    });
    let mut bench = Bench::new(&[], 2, 4);
    let mut socket = carried::socket();
    socket.connect(bench.interface.context(), (HERE, port), 50_000).unwrap();
    let handle = bench.sockets.add(socket);
    bench.until(|bench| bench.socket(handle).state() == State::Established);
    let said = bytes(3, 50_000);
    bench.say_all(handle, &said);
    let mut heard = Vec::new();
    bench.until(|bench| {
        let socket = bench.socket(handle);
        while let Ok(1..) = socket.recv(|bytes| {
            heard.extend_from_slice(bytes);
            (bytes.len(), bytes.len())
        }) {}
        heard.len() == said.len()
    });
    heard.reverse();
    assert!(heard == said);
    serves.join().unwrap();
}

#[test]
fn where_nobody_listens_either_side_is_told_so() {
    let host = free_address();
    let mut bench = Bench::new(&[(host, 7)], 0, 0);
    let mut socket = carried::socket();
    socket.connect(bench.interface.context(), (HERE, free_address().port()), 50_000).unwrap();
    let handle = bench.sockets.add(socket);
    bench.step();
    assert_eq!(bench.socket(handle).state(), State::SynSent);
    bench.until(|bench| bench.socket(handle).state() == State::Closed);
    let asks = thread::spawn(move || {
        let mut stream = TcpStream::connect(host).unwrap();
        stream.read(&mut [0]).map_err(|error| error.kind())
    });
    bench.until(|_| asks.is_finished());
    assert_eq!(asks.join().unwrap(), Err(ErrorKind::ConnectionReset));
}

#[test]
fn who_breaks_off_is_noticed_on_the_other_side() {
    let host = free_address();
    let mut bench = Bench::new(&[(host, 7)], 0, 0);
    for machine_does in [true, false] {
        let handle = bench.listen(7);
        let mut stream = TcpStream::connect(host).unwrap();
        bench.until(|bench| bench.socket(handle).state() == State::Established);
        if machine_does {
            bench.socket(handle).abort();
            let reads = thread::spawn(move || stream.read(&mut [0]).map_err(|error| error.kind()));
            bench.until(|_| reads.is_finished());
            assert_eq!(reads.join().unwrap(), Err(ErrorKind::ConnectionReset));
        } else {
            // Unread bytes make its end a reset.
            bench.socket(handle).send_slice(&[1, 2, 3]).unwrap();
            stream.set_nonblocking(true).unwrap();
            bench.until(|_| stream.peek(&mut [0; 4]).is_ok_and(|count| count == 3));
            drop(stream);
            bench.until(|bench| bench.socket(handle).state() == State::Closed);
        }
    }
}

#[test]
fn who_does_not_read_has_the_other_wait() {
    let host = free_address();
    let mut bench = Bench::new(&[(host, 7)], 0, 0);
    let handle = bench.listen(7);
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_nonblocking(true).unwrap();
    // The machine does not read: this side's buffers fill up, and then the line is quiet.
    let mut said: usize = 0;
    for _ in 0..20_000 {
        said += stream.write(&[7; 10_000]).unwrap_or(0);
        bench.step();
    }
    assert!(stream.write(&[7; 10_000]).is_err(), "it takes everything");
    let waits = bench.socket(handle).recv_queue();
    assert!(waits <= bench.socket(handle).recv_capacity());
    assert!(bench.gateway.out().len() < 4000, "{}", bench.gateway.out().len());
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(bench.hear_all(handle).len(), said);
}

#[test]
fn silence_is_said_once_and_its_end_too() {
    let host = free_address();
    let mut bench = Bench::new(&[(host, 7)], 100_000, 0);
    let _stream = TcpStream::connect(host).unwrap();
    let mut notices = Vec::new();
    for step in 0..40_000 {
        if step == 20_000 {
            bench.noise.lost = 0;
        }
        bench.step();
        notices.extend(bench.gateway.notice());
    }
    assert_eq!(notices, [Notice::Silent, Notice::Answers]);
}

#[test]
fn garbage_harms_nothing() {
    let host = free_address();
    let mut bench = Bench::new(&[(host, 7)], 0, 0);
    for round in 0..200 {
        let mut garbage = bytes(round, 1000);
        // Whole packets of something, too.
        garbage.iter_mut().step_by(37).for_each(|byte| *byte = 0xc0);
        bench.gateway.hear(&garbage, bench.now);
        bench.step();
    }
    let handle = bench.listen(7);
    let asks = exchange(host, b"still there?".to_vec());
    assert_eq!(bench.hear_all(handle), b"still there?");
    bench.say_all(handle, b"yes");
    bench.until(|_| asks.is_finished());
    assert_eq!(asks.join().unwrap(), b"yes");
}

#[test]
fn a_line_that_is_gone_ends_it_and_so_does_who_says_so() {
    let mut gateway = Gateway::new(&[]).unwrap();
    let (mut line, other) = UnixStream::pair().unwrap();
    line.set_nonblocking(true).unwrap();
    let glances = Cell::new(0);
    let stop = || glances.replace(glances.get() + 1) > 3;
    assert_eq!(run(&mut line, &mut gateway, |_| (), stop).unwrap(), Ending::Stopped);
    drop(other);
    assert_eq!(run(&mut line, &mut gateway, |_| (), || false).unwrap(), Ending::Gone);
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, taken.local_addr().unwrap().port());
    let refused = Gateway::new(&[(address, 7)]).err().unwrap();
    assert!(refused.to_string().contains("cannot be taken"), "{refused}");
}
