//! What a node is to be like.

use alloc::string::String;

use magpie::actor::{Actor, Answers};
use magpie::machine;
use magpie::message::Message;
use magpie_dist::connection::Limits;
use magpie_dist::term::{FromAnyTerm, ToTerm};

use crate::epmd;
use crate::exports::{Arguments, Exports, Function};

/// The port of nodes, unless another is given: EPMD tells it to others.
const PORT: u16 = 9100;

/// So much may wait to be sent: an answer as long as a frame may be, and others.
const OUTPUT_BYTES: usize = 2 << 20;

/// What a node is to be like: its name and cookie, what others may reach, and limits for each connection.
///
/// ```
/// use magpie::prelude::*;
/// use magpie_node::Config;
///
/// struct Counter(u64);
/// impl Actor for Counter {}
/// enum Request { Add(u64), Read }
/// magpie_node::term! { enum Request { Add(number) as "add", Read as "read" } }
/// impl Receive<Request> for Counter {
///     type Reply = u64;
///
///     fn receive(&mut self, request: Request, _: &mut Context<Self>) -> u64 {
///         if let Request::Add(number) = request {
///             self.0 += number;
///         }
///         self.0
///     }
/// }
/// let config = Config::new("magpie", "secret")
///     .actor::<Counter, Request, _>("counter")
///     .function("numbers", "double", |(number,): (u64,)| 2 * number);
/// assert_eq!(config.port, 9100);
/// ```
pub struct Config {
    /// What stands before the `@`, or a whole name. Without a host the address of the network's interface is taken.
    pub name: String,
    /// Nodes with another one are refused. It is no security: nothing is encrypted, and whoever listens can forge what comes.
    pub cookie: String,
    /// Where the node is to be reached.
    pub port: u16,
    /// Where this node's port mapper is to be reached, and that of others: 4369, unless a whole cluster has another one (Erlang: `ERL_EPMD_PORT`).
    pub mapper_port: u16,
    /// Limits for each connection.
    pub limits: Limits,
    /// How many connections there may be. Memory for their places is taken at the start.
    pub connections: usize,
    pub(crate) exports: Exports,
}

impl Config {
    /// With this name and cookie. The module `magpie` with its functions that look (`load`, `crashes`, `settings`, `processes`) is exported, and nothing else.
    pub fn new(name: &str, cookie: &str) -> Self {
        let mut exports = Exports::default();
        exports.add_built_in();
        Self {
            name: name.into(),
            cookie: cookie.into(),
            port: PORT,
            mapper_port: epmd::PORT,
            limits: Limits { output: OUTPUT_BYTES, ..Limits::default() },
            connections: 32,
            exports,
        }
    }

    /// The same, changed by the boot arguments `node=NAME`, `cookie=TEXT`, `nodeport=N` and `epmd=N`, where there are some.
    pub fn with_arguments(mut self) -> Self {
        if let Some(name) = machine::argument("node") {
            self.name = name.into();
        }
        if let Some(cookie) = machine::argument("cookie") {
            self.cookie = cookie.into();
        }
        for (argument, port) in [("nodeport", &mut self.port), ("epmd", &mut self.mapper_port)] {
            if let Some(given) = machine::argument(argument).and_then(|text| text.parse().ok()) {
                *port = given;
            }
        }
        self
    }

    /// Exports the actor that has this name in the registry, whoever that is when a message comes: under the same name, for messages of type `M`. Its
    /// answers go to whoever calls; a message that was cast, or just sent, has none.
    pub fn actor<A, M, K>(mut self, name: &str) -> Self
    where
        A: Actor + Answers<M, K, Reply: ToTerm>,
        M: Message + FromAnyTerm,
        K: 'static,
    {
        self.exports.add_actor::<A, M, K>(name.into(), false);
        self
    }

    /// As [`Config::actor`]; it is killed when another node asks for that (`exit/2`), or when one ends with a failure that is linked to it.
    pub fn actor_that_may_be_ended<A, M, K>(mut self, name: &str) -> Self
    where
        A: Actor + Answers<M, K, Reply: ToTerm>,
        M: Message + FromAnyTerm,
        K: 'static,
    {
        self.exports.add_actor::<A, M, K>(name.into(), true);
        self
    }

    /// Exports a function, as `module:name`, for `rpc:call`. It takes a tuple of up to four arguments, and runs in a process of its own.
    pub fn function<T: Arguments, R: ToTerm>(
        mut self,
        module: &str,
        name: &str,
        body: impl Fn(T) -> R + Send + Sync + 'static,
    ) -> Self {
        self.exports.add_function(Function::new(module, name, body));
        self
    }
}
