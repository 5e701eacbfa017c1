//! The loop of a line.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::future::{Future, Pending, pending, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;

use futures_util::Stream;
use magpie::channel::{ProcessMailbox, Request};
use magpie::sched::ProcessRef;
use magpie::time::{self, Instant};
use magpie::watch::Ended;
use magpie_dist::connection::{Admission, Closed, Connection, Limits, Lost};
use magpie_dist::term::TermBuf;
use magpie_net::{ReadHalf, TcpStream, WriteHalf};

use super::duty::Duty;
use super::hear::{Heard, Hearing};
use super::order::{Order, Ordered};
use crate::desk::{DeskAddr, Wish};
use crate::shared::Shared;

/// So long a line waits until it tries a full mailbox again.
const AGAIN_AFTER: Duration = Duration::from_millis(1);
/// So long a line tries to say why it ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// So many answers may be awaited; then nothing more is heard.
const MOST_ANSWERS: usize = 1024;
/// But not for longer than this: then whoever wants another one is refused, for those that are awaited may never come.
const PATIENCE: Duration = Duration::from_secs(1);
/// And so many duties, which wait for the other side to take what was said before. As long as that is not reached, nor [`Line::most_behind`], this
/// side hears: the other may have as much to say, and would take nothing before that was heard.
const MOST_DUTIES: usize = 1024;
/// Orders that may wait.
pub const MOST_ORDERS: usize = 1024;

/// Why a line has ended.
pub enum End {
    Closed(Closed),
    Network(magpie_net::Error),
    /// The other side has closed the connection.
    Gone,
    /// It was told to; or its node has ended.
    Told,
}

/// A sleep that is no work.
type Background = Pin<Box<time::Timeout<Pending<()>>>>;

struct Line {
    // First, because it is dropped first: who waits for an answer hears of the end of a line that was killed, though it may be cut short if
    // dropping takes long.
    hearing: Hearing,
    number: u64,
    connection: Connection,
    read: ReadHalf,
    write: WriteHalf,
    orders: ProcessMailbox<Request<Order, Ordered>>,
    ends: ProcessMailbox<Ended>,
    desk: DeskAddr,
    /// Of the node's own process.
    node: Option<u64>,
    admission: Option<Pin<Box<dyn Future<Output = Admission> + Send>>>,
    /// Not work: a node that waits for others keeps no system from being out of it.
    sleep: Option<(u64, Background)>,
    tries_again_at: Option<u64>,
    /// Since when as many answers are awaited as may be.
    full_since: Option<u64>,
    /// Bytes that were heard, and are to be answered, since a duty waits for room in the output.
    behind: usize,
}

/// Milliseconds since the machine was started.
pub fn now() -> u64 {
    magpie::time::of_ticks(Instant::now().ticks()).as_millis() as u64
}

/// Carries a connection until it ends; then tells all who waited for something from it.
pub async fn drive(
    shared: &Arc<Shared>,
    desk: DeskAddr,
    node: &ProcessRef,
    number: u64,
    stream: TcpStream,
    connection: Connection,
    orders: ProcessMailbox<Request<Order, Ordered>>,
) -> End {
    // What is told by urgent messages is never refused: see `watch`.
    let Ok(ends) = ProcessMailbox::new(1) else { return End::Told };
    let node = node.watch(&ends.address()).ok();
    let (read, write) = stream.split();
    let mut line = Line {
        number,
        connection,
        read,
        write,
        orders,
        hearing: Hearing::new(shared.clone(), ends.address()),
        ends,
        desk,
        node: node.map(|watch| watch.id().number()),
        admission: None,
        sleep: None,
        tries_again_at: None,
        full_since: None,
        behind: 0,
    };
    let end = poll_fn(|context| line.poll(context)).await;
    // First the desk, then those who send orders: so whoever hears of the end and tries again gets another line.
    let peer: String = line.connection.peer().name().into();
    let _ = line.desk.ask(Wish::Gone { peer, number }).await;
    let Line { orders, mut connection, mut hearing, mut write, .. } = line;
    drop(orders);
    tell_of_end(&mut connection, &mut hearing);
    if let End::Closed(_) = end {
        // What the other side is to hear last.
        let _ = time::timeout(FAREWELL, flush(&mut connection, &mut write)).await;
    }
    end
}

impl Line {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        loop {
            let mut has_moved = match self.hear(context) {
                Ok(has_moved) => has_moved,
                Err(end) => return Poll::Ready(end),
            };
            for step in [Self::tell, Self::take, Self::write, Self::read] {
                match step(self, context) {
                    Ok(moved) => has_moved |= moved,
                    Err(end) => return Poll::Ready(end),
                }
            }
            if has_moved {
                continue;
            }
            match self.sleep(context) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(end) => return Poll::Ready(end),
            }
        }
    }

    /// Events, until one has to wait.
    fn hear(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let mut has_moved = false;
        if let Some(admission) = &mut self.admission {
            let Poll::Ready(admission) = admission.as_mut().poll(context) else { return Ok(false) };
            self.admission = None;
            self.connection.admit(admission);
            has_moved = true;
        }
        if self.tries_again_at.is_some_and(|moment| now() < moment) {
            return Ok(has_moved);
        }
        self.tries_again_at = None;
        while self.hearing.duties.len() < MOST_DUTIES && self.behind < self.most_behind() {
            let Some(refuses) = self.refuses() else { break };
            let (is_behind, owed) = (!self.hearing.duties.is_empty(), self.hearing.owed());
            let Some((event, peer)) = self.connection.event().map_err(End::Closed)? else { break };
            has_moved = true;
            match self.hearing.hear(event, peer, refuses) {
                Heard::Done if is_behind && self.hearing.owed() > owed => {
                    self.behind += self.connection.event_bytes();
                }
                Heard::Done => {}
                Heard::Again => {
                    self.connection.put_back();
                    self.tries_again_at = Some(now() + AGAIN_AFTER.as_millis() as u64);
                    self.hearing.shared.counted.full.add();
                    return Ok(false);
                }
                Heard::Named => {
                    let peer: String = self.connection.peer().name().into();
                    self.admission = Some(Box::pin(self.desk.clone().named(peer, self.number)));
                    return Ok(true);
                }
                Heard::Up => {
                    let peer: String = self.connection.peer().name().into();
                    let orders = self.orders.address();
                    // If it cannot be told those who wait for this line would do so for ever; so they hear of its end.
                    self.desk.tell(Wish::Up { peer, number: self.number, orders }).map_err(|_| End::Told)?;
                }
            }
        }
        Ok(has_moved)
    }

    /// How many bytes of what is to be answered are heard while a duty waits for room. While that is so no order is carried out, here as there; so
    /// what the other side has to say first is no more than its output, which is as long as this one's, and what is on the way.
    fn most_behind(&self) -> usize {
        let Limits { output, frame, .. } = self.hearing.shared.limits;
        output.saturating_add(frame).saturating_add(frame)
    }

    /// Whether one more answer is refused. `None` if that is to be seen, and meanwhile nothing is heard.
    fn refuses(&mut self) -> Option<bool> {
        if self.hearing.later.len() < MOST_ANSWERS {
            self.full_since = None;
            return Some(false);
        }
        let now = now();
        let since = *self.full_since.get_or_insert(now);
        (now >= since + PATIENCE.as_millis() as u64).then_some(true)
    }

    /// What there is to say: duties first, then answers that have come, and ends.
    fn tell(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let mut has_moved = false;
        loop {
            while let Some(duty) = self.hearing.duties.pop_front() {
                if let Err(duty) = duty.perform(self.connection.peer(), &mut self.hearing.waiting) {
                    self.hearing.duties.push_front(duty);
                    return Ok(has_moved);
                }
                has_moved = true;
            }
            self.behind = 0;
            if let Poll::Ready(ended) = pin!(self.ends.receive()).poll(context) {
                let Some(ended) = ended else { return Err(End::Told) };
                if Some(ended.watch().number()) == self.node {
                    return Err(End::Told);
                }
                self.hearing.ended(ended);
            } else if let Poll::Ready(Some(duty)) = Pin::new(&mut self.hearing.later).poll_next(context) {
                self.hearing.duties.push_back(duty);
            } else {
                return Ok(has_moved);
            }
        }
    }

    /// Orders, while there is room for what they have to say.
    fn take(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let mut has_moved = false;
        while self.connection.is_up() && self.hearing.duties.is_empty() {
            let Poll::Ready(request) = pin!(self.orders.receive()).poll(context) else { break };
            // This has an address of it, too, so it does not end.
            let Some(Request { message: order, reply }) = request else { break };
            has_moved = true;
            if matches!(order, Order::Close) {
                return Err(End::Told);
            }
            self.hearing.shared.counted.sent.add();
            let order = Duty::Order(order, reply);
            if let Err(order) = order.perform(self.connection.peer(), &mut self.hearing.waiting) {
                self.hearing.duties.push_back(order);
            }
        }
        Ok(has_moved)
    }

    fn write(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let mut has_moved = false;
        while !self.connection.output().is_empty() {
            match self.write.poll_write(context, self.connection.output()) {
                Poll::Ready(Ok(count)) => self.connection.sent(count, now()),
                Poll::Ready(Err(error)) => return Err(End::Network(error)),
                Poll::Pending => break,
            }
            has_moved = true;
        }
        Ok(has_moved)
    }

    fn read(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let space = self.connection.space();
        if space.is_empty() {
            return Ok(false);
        }
        match self.read.poll_read(context, space) {
            Poll::Ready(Ok(0)) => Err(End::Gone),
            Poll::Ready(Ok(count)) => {
                self.connection.received(count, now());
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(End::Network(error)),
            Poll::Pending => Ok(false),
        }
    }

    /// Waits for the clock. Returns whether it has moved anything.
    fn sleep(&mut self, context: &mut Context<'_>) -> Result<bool, End> {
        let now = now();
        let patience =
            self.full_since.map(|since| since + PATIENCE.as_millis() as u64).filter(|&at| at > now);
        let others = [self.tries_again_at, patience];
        let due = others.into_iter().flatten().fold(self.connection.deadline(), u64::min);
        if due <= now {
            self.connection.elapsed(now).map_err(End::Closed)?;
            return Ok(true);
        }
        // One that ends earlier than it need is left alone: most often what is due moves away with each message.
        if self.sleep.as_ref().is_none_or(|(armed, _)| *armed > due || *armed <= now) {
            let sleep = time::background_timeout(Duration::from_millis(due - now), pending());
            self.sleep = Some((due, Box::pin(sleep)));
        }
        let Some((_, sleep)) = &mut self.sleep else { return Ok(false) };
        if sleep.as_mut().poll(context).is_ready() {
            self.sleep = None;
            return Ok(true);
        }
        Ok(false)
    }
}

async fn flush(connection: &mut Connection, write: &mut WriteHalf) -> Result<(), magpie_net::Error> {
    while !connection.output().is_empty() {
        let count = write.write(connection.output()).await?;
        connection.sent(count, now());
    }
    write.shutdown().await
}

/// The connection has gone.
fn tell_of_end(connection: &mut Connection, hearing: &mut Hearing) {
    hearing.waiting.lose_calls();
    for lost in connection.lost() {
        match lost {
            Lost::Watch(watch, _) => {
                hearing.waiting.down(watch, TermBuf::NO_CONNECTION);
            }
            Lost::Link(pid, _) => hearing.end(pid),
            Lost::Call(..) | Lost::Monitor(_) => {}
        }
    }
}
