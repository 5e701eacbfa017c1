//! A node that tests of nodes talk to. Its actor `echo` sends back whatever it is asked, `slow` lets a caller wait, `crasher` crashes when it is asked to, and may be ended from
//! outside. With the boot argument `to=NAME@HOST` it calls, sends to and monitors `there` on that node, and says what comes of it; with `flood=N`, too, it sends that so many messages. `tick=N`
//! is the time without a word, in milliseconds, after which a connection is given up; `frame=N` how many bytes a message from another node may have.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use magpie::actor::{Bound, Hook, WhenFull};
use magpie::prelude::*;
use magpie_drivers::uplink::Uplink;
use magpie_net::Network;
use magpie_node::term::{AtomBuf, BinaryBuf, TermBuf};
use magpie_node::{Config as NodeConfig, Error, Node, RemoteDown, RemoteRecipient};

magpie::entry!(peer);

/// Sends back what it gets.
struct Echo;

impl Actor for Echo {
    fn started() -> Option<Hook<Self>> {
        Some(|_, context| _ = registry::register("echo", context.address()))
    }
}

impl Receive<TermBuf> for Echo {
    type Reply = TermBuf;

    fn receive(&mut self, term: TermBuf, _: &mut Context<Self>) -> TermBuf {
        term
    }
}

/// However long it is asked to take.
const LONGEST_US: u64 = 10_000;

/// Takes a while for each, and counts.
struct Slow(u64);

impl Actor for Slow {
    fn started() -> Option<Hook<Self>> {
        Some(|_, context| _ = registry::register("slow", context.address()))
    }
}

impl Receive<u64> for Slow {
    type Reply = u64;

    fn receive(&mut self, microseconds: u64, _: &mut Context<Self>) -> u64 {
        let began = time::Instant::now();
        while began.elapsed() < Duration::from_micros(microseconds.min(LONGEST_US)) {
            core::hint::spin_loop();
        }
        self.0 += 1;
        self.0
    }
}

/// Crashes on demand.
struct Crasher;

enum Deed {
    Crash(String),
    Nothing,
}
magpie_node::term! { enum Deed { Crash(why) as "crash", Nothing as "nothing" } }

impl Actor for Crasher {
    fn started() -> Option<Hook<Self>> {
        Some(|_, context| _ = registry::register("crasher", context.address()))
    }
}

impl Receive<Deed> for Crasher {
    type Reply = ();

    fn receive(&mut self, deed: Deed, _: &mut Context<Self>) {
        if let Deed::Crash(why) = deed {
            panic!("{why}");
        }
    }
}

/// What somebody on another node is asked.
enum Question {
    /// Send it back.
    Echo(Vec<i64>, f64, BinaryBuf),
    /// End, for that reason.
    End(AtomBuf),
    /// Keep it.
    Keep(u64),
    /// Give what was kept.
    Kept,
    /// Do not answer.
    Silence,
    /// Count this.
    Pad(BinaryBuf),
    /// How many were counted.
    Padded,
}
magpie_node::term! {
    enum Question {
        Echo(numbers, fraction, bytes) as "echo",
        End(reason) as "end",
        Keep(number) as "keep",
        Kept as "kept",
        Silence as "silence",
        Pad(bytes) as "pad",
        Padded as "padded",
    }
}

/// Talks with `there` on another node.
async fn talk(node: &Node, to: &str) -> Result<(), Error> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let there: RemoteRecipient<Question> = node.recipient(to, "there").await?;
    text!("connected to {}", there.peer());
    let question = Question::Echo([1, -2, i64::MAX].into(), 0.25, BinaryBuf([0, 255].into()));
    let (numbers, fraction, bytes): (Vec<i64>, f64, BinaryBuf) = there.call(&question, PATIENCE).await?;
    text!("echo {numbers:?} {fraction} {:?}", bytes.0);
    for number in [3, 4] {
        there.cast(&Question::Keep(number)).await?;
    }
    there.send(&Question::Keep(5)).await?;
    let kept: Vec<u64> = there.call(&Question::Kept, PATIENCE).await?;
    text!("kept {kept:?}");
    let silence = there.call::<u64>(&Question::Silence, Duration::from_millis(200)).await;
    text!("silence {silence:?}");

    let mut downs = ProcessMailbox::<RemoteDown>::new(4)?;
    let monitor = there.monitor(&downs.address()).await?;
    let ended =
        there.call::<u64>(&Question::End(AtomBuf::new("tired").map_err(Error::Encode)?), PATIENCE).await;
    text!("end {ended:?}");
    let down = downs.receive_within(PATIENCE).await.map_err(|_| Error::TimedOut)?;
    if let Some(down) = down {
        text!("down {} {}", down.monitor == monitor, down.reason.as_term());
    }
    let nobody: RemoteRecipient<Question> = node.recipient(to, "nobody").await?;
    let monitor = nobody.monitor(&downs.address()).await?;
    if let Ok(Some(down)) = downs.receive_within(PATIENCE).await {
        text!("nobody {} {}", down.monitor == monitor, down.reason.as_term());
    }
    // Until the other node goes.
    let left: RemoteRecipient<Question> = node.recipient(to, "left").await?;
    left.monitor(&downs.address()).await?;
    left.send(&Question::Kept).await?;
    let down = downs.receive().await;
    text!("left {:?}", down.map(|down| down.reason));
    Ok(())
}

/// Sends `there` so many messages of a kilobyte, as fast as they are taken.
async fn flood(node: &Node, to: &str, count: u64) -> Result<(), Error> {
    let there: RemoteRecipient<Question> = node.recipient(to, "there").await?;
    let pad = Question::Pad(BinaryBuf([7; 1000].into()));
    for number in 1..=count {
        there.cast(&pad).await?;
        if number.is_multiple_of(1000) {
            text!("flooded {number}");
        }
    }
    let counted: u64 = there.call(&Question::Padded, Duration::from_secs(60)).await?;
    text!("counted {counted}");
    Ok(())
}

async fn peer() -> magpie::Result {
    let uplink = Uplink::chosen();
    let network = Network::start(uplink.config())?;
    let carried = network.clone();
    let card = Child::process("card", move |_| uplink.drive("card", carried.clone())).within(Duration::ZERO);
    let _driver = Supervisor::one_for_one().child(card).start()?;
    let executor = Executor::start(&Config::default().bound(Bound::new(64, WhenFull::Refuse)))?;
    let handle = executor.handle();
    let _actors = Supervisor::one_for_one()
        .restarts(1000, Duration::from_secs(1))
        .child(Child::actor("echo", handle, || Echo))
        .child(Child::actor("slow", handle, || Slow(0)))
        .child(Child::actor("crasher", handle, || Crasher))
        .start()?;
    let mut config = NodeConfig::new("peer", "magpie")
        .with_arguments()
        .actor::<Echo, TermBuf, _>("echo")
        .actor::<Slow, u64, _>("slow")
        .actor_that_may_be_ended::<Crasher, Deed, _>("crasher")
        .function("test", "add", |(one, other): (i64, i64)| one + other)
        .function("test", "crash", |(why,): (String,)| -> () { panic!("{why}") });
    if let Some(bytes) = machine::argument("frame").and_then(|text| text.parse().ok()) {
        config.limits.frame = bytes;
    }
    if let Some(milliseconds) = machine::argument("tick").and_then(|text| text.parse().ok()) {
        config.limits.tick_ms = milliseconds;
    }
    let node = Node::start(&network, config).await?;
    text!("{} is up", node.name());
    if let Some(to) = machine::argument("to") {
        match machine::argument("flood").and_then(|text| text.parse().ok()) {
            Some(count) => text!("flood: {:?}", flood(&node, to, count).await),
            None => text!("talked: {:?}", talk(&node, to).await),
        }
    }
    while !node.process().is_done() {
        time::sleep(Duration::from_secs(1)).await;
        text!("{:?}", node.statistics());
    }
    Err("the node has ended".into())
}
