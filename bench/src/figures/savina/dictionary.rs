//! Dictionary: clients read from and write to one actor that owns a map, each a request at a time.
//!
//! One operation is one request with its reply. A value that is read must be the one that belongs to its key, and the
//! dictionary must have had as many requests as the clients have made.
//!
//! Parameters: clients, requests of each, how many in a hundred are writes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use crate::driver::drive;
use crate::failed::Failed;
use crate::figures::Go;
use crate::random::Random;
use crate::{stopwatch, verdict};

/// Keys are below this.
const KEYS: usize = 4096;

/// The only value that is ever written under a key.
fn value_of(key: u32) -> u32 {
    key.wrapping_mul(2_654_435_761)
}

struct Read {
    key: u32,
    client: Addr<Client>,
}
struct Write {
    key: u32,
    value: u32,
    client: Addr<Client>,
}
struct Reply {
    key: u32,
    value: Option<u32>,
}
/// A client has made all its requests.
struct Leave;
struct Start;

struct Dictionary {
    entries: BTreeMap<u32, u32>,
    requests: u64,
    expected: u64,
    clients: u64,
}

impl Actor for Dictionary {}

impl Receive<Read> for Dictionary {
    type Reply = ();

    fn receive(&mut self, Read { key, client }: Read, _: &mut Context<Self>) {
        self.requests += 1;
        let _ = client.send(Reply { key, value: self.entries.get(&key).copied() });
    }
}

impl Receive<Write> for Dictionary {
    type Reply = ();

    fn receive(&mut self, Write { key, value, client }: Write, _: &mut Context<Self>) {
        self.requests += 1;
        self.entries.insert(key, value);
        let _ = client.send(Reply { key, value: Some(value) });
    }
}

impl Receive<Leave> for Dictionary {
    type Reply = ();

    fn receive(&mut self, _: Leave, context: &mut Context<Self>) {
        self.clients -= 1;
        if self.clients > 0 {
            return;
        }
        stopwatch::done();
        verdict::expect_equal("requests", self.requests, self.expected);
        context.end();
    }
}

struct Client {
    dictionary: Addr<Dictionary>,
    random: Random,
    left: u64,
    /// In a hundred.
    writes: usize,
}

impl Actor for Client {}

impl Client {
    fn request(&mut self, context: &mut Context<Self>) {
        if self.left == 0 {
            let _ = self.dictionary.send(Leave);
            return context.end();
        }
        self.left -= 1;
        let client = context.address();
        let key = self.random.below(KEYS) as u32;
        if self.random.below(100) < self.writes {
            let _ = self.dictionary.send(Write { key, value: value_of(key), client });
        } else {
            let _ = self.dictionary.send(Read { key, client });
        }
    }
}

impl Receive<Start> for Client {
    type Reply = ();

    fn receive(&mut self, _: Start, context: &mut Context<Self>) {
        self.request(context);
    }
}

impl Receive<Reply> for Client {
    type Reply = ();

    fn receive(&mut self, Reply { key, value }: Reply, context: &mut Context<Self>) {
        if value.is_some_and(|value| value != value_of(key)) {
            verdict::wrong(format!("key {key} has the value {value:?}"));
        }
        self.request(context);
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (count, requests, writes) = (parameters[0], parameters[1], parameters[2]);
    if count == 0 || writes > 100 {
        return Err(Failed::Parameters("at least 1 client, and at most 100 writes in a hundred"));
    }
    let dictionary = handle.spawn(Dictionary {
        entries: BTreeMap::new(),
        requests: 0,
        expected: count * requests,
        clients: count,
    })?;
    let mut clients = Vec::new();
    for number in 1..=count as u32 {
        let random = Random::new(number.wrapping_mul(7919));
        clients.push(handle.spawn(Client { dictionary, random, left: requests, writes: writes as usize })?);
    }
    let handle = handle.clone();
    Ok(Box::new(move || {
        drive(&handle, move || {
            stopwatch::begin(1);
            for client in clients {
                let _ = client.send(Start);
            }
        })?;
        Ok(count * requests)
    }))
}
