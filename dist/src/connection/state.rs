//! The connection itself: frames out of bytes, the handshake, events, ticks.

use alloc::sync::Arc;

use super::buffers::Input;
use super::error::{Closed, SendError};
use super::event::{Admission, Event, Lost};
use super::greeting::{Greeting, Phase};
use super::identity::{Chance, Identity, Limits, NameError, node_name};
use super::peer::{Peer, Step};
use crate::handshake::LONGEST;

/// A connection to another node. Moments are milliseconds of any clock that does not go back.
///
/// ```
/// use std::sync::Arc;
/// use magpie_dist::connection::{Admission, Chance, Connection, Event, Identity, Limits, LocalPid, To};
///
/// let a = Arc::new(Identity::new("a@host", "secret", 4)?);
/// let b = Arc::new(Identity::new("b@host", "secret", 5)?);
/// let chance = |number| Chance { challenge: number, salt: number };
/// let mut ours = Connection::connect(a, "b@host", Limits::default(), chance(1), 0)?;
/// let mut theirs = Connection::accept(b, Limits::default(), chance(2), 0)?;
///
/// /// Carries what one says to the other.
/// fn carry(from: &mut Connection, to: &mut Connection) {
///     let count = to.feed(from.output(), 0);
///     from.sent(count, 0);
/// }
/// let mut heard = None;
/// while heard.is_none() {
///     carry(&mut ours, &mut theirs);
///     while let Some((event, peer)) = theirs.event()? {
///         match event {
///             Event::Named { name } => {
///                 assert_eq!(name, "a@host");
///                 theirs.admit(Admission::Accepted);
///             }
///             Event::Up => peer.send(LocalPid::new(1, 0), To::Name("shell"), &"hello")?,
///             _ => {}
///         }
///     }
///     carry(&mut theirs, &mut ours);
///     while let Some((event, _)) = ours.event()? {
///         if let Event::Message { message, .. } = event {
///             heard = Some(message.decode::<String>()?);
///         }
///     }
/// }
/// assert_eq!(heard.as_deref(), Some("hello"));
/// assert_eq!(ours.peer().name(), "b@host");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    input: Input,
    /// So much of the input is the last event's.
    taken: usize,
    /// Whether that changed nothing but what was counted.
    is_message: bool,
    /// What is in the input waits: for room in the output, or because it was put back.
    is_stalled: bool,
    greeting: Greeting,
    peer: Peer,
    closed: Option<Closed>,
    began: u64,
    heard: u64,
    said: u64,
}

impl Connection {
    fn new(limits: Limits, greeting: Greeting, peer: Peer, now: u64) -> Self {
        Self {
            limits,
            input: Input::new(),
            taken: 0,
            is_message: false,
            is_stalled: false,
            greeting,
            peer,
            closed: None,
            began: now,
            heard: now,
            said: now,
        }
    }

    /// One that came from elsewhere.
    ///
    /// # Errors
    /// Without memory.
    pub fn accept(
        identity: Arc<Identity>,
        limits: Limits,
        chance: Chance,
        now: u64,
    ) -> Result<Self, SendError> {
        let peer = Peer::new(identity, &limits, chance)?;
        Ok(Self::new(limits, Greeting::accept(chance.challenge), peer, now))
    }

    /// One to the node of this name, which the network has just connected to.
    ///
    /// # Errors
    /// When that is no node's name, and without memory.
    pub fn connect(
        identity: Arc<Identity>,
        other: &str,
        limits: Limits,
        chance: Chance,
        now: u64,
    ) -> Result<Self, NameError> {
        let other = node_name(other)?;
        let mut peer = Peer::new(identity, &limits, chance).map_err(|_| NameError::OutOfMemory)?;
        let greeting =
            Greeting::connect(chance.challenge, other, &mut peer).map_err(|_| NameError::OutOfMemory)?;
        Ok(Self::new(limits, greeting, peer, now))
    }

    /// Where the next bytes from the network belong; empty as long as nothing should be read.
    ///
    /// ```
    /// use magpie_dist::connection::Connection;
    /// /// Reads once, without waiting; whether something came.
    /// fn read(stream: &mut impl std::io::Read, connection: &mut Connection, now: u64) -> std::io::Result<bool> {
    ///     let space = connection.space();
    ///     if space.is_empty() {
    ///         return Ok(false);
    ///     }
    ///     let count = stream.read(space)?;
    ///     connection.received(count, now);
    ///     Ok(count > 0)
    /// }
    /// ```
    pub fn space(&mut self) -> &mut [u8] {
        if self.is_stalled || self.closed.is_some() {
            return &mut [];
        }
        self.drop_taken();
        let is_up = self.is_up();
        // What the next frame needs, as far as that is known.
        let frame = match self.header() {
            Some((header, length)) => header.saturating_add(length.min(self.frame_limit())),
            None => 4,
        };
        if self.input.reserve(frame, is_up).is_err() {
            self.closed = Some(Closed::OutOfMemory);
            return &mut [];
        }
        let end = self.input.end;
        &mut self.input.bytes[end..]
    }

    /// Says that so many bytes came into that space.
    pub fn received(&mut self, count: usize, now: u64) {
        self.input.end = (self.input.end + count).min(self.input.bytes.len());
        if count > 0 {
            self.heard = now;
        }
    }

    /// Both in one, for bytes that lie elsewhere: how many were taken.
    ///
    /// ```
    /// use magpie_dist::connection::Connection;
    /// fn said_by(connection: &mut Connection, bytes: &[u8]) -> bool {
    ///     connection.feed(bytes, 0) == bytes.len()
    /// }
    /// ```
    pub fn feed(&mut self, bytes: &[u8], now: u64) -> usize {
        let mut count = 0;
        while count < bytes.len() {
            let space = self.space();
            let part = space.len().min(bytes.len() - count);
            if part == 0 {
                break;
            }
            space[..part].copy_from_slice(&bytes[count..count + part]);
            self.received(part, now);
            count += part;
        }
        count
    }

    /// What has happened next, with the other side, to which something can be said to that. `None`: more has to come in, or some of the
    /// output has to go out; so it is to be asked after each of both.
    ///
    /// # Errors
    /// Why the connection is no more. What is left of the output should be sent all the same, then the network's connection closed;
    /// [`lost`](Self::lost) says who has to be told.
    pub fn event(&mut self) -> Result<Option<(Event<'_>, &mut Peer)>, Closed> {
        self.drop_taken();
        self.is_stalled = false;
        let limit = self.frame_limit();
        let bytes = &self.input.bytes;
        let step = loop {
            if let Some(closed) = self.closed {
                return Err(closed);
            }
            if self.greeting.phase == Phase::Admission {
                break Ok(None);
            }
            let is_up = self.greeting.phase == Phase::Up;
            let waiting = &bytes[self.input.start..self.input.end];
            let Some((header, length)) = header(waiting, is_up) else { break Ok(None) };
            if length > if is_up { limit } else { LONGEST } {
                break Err(Closed::TooLong(length as u32));
            }
            let Some(frame) = waiting.get(header..header + length) else { break Ok(None) };
            if is_up && length == 0 {
                // A tick.
                self.input.start += header;
                continue;
            }
            let step = if is_up {
                self.peer.take_in(frame)
            } else {
                let event = self.greeting.take_in(frame, &mut self.peer);
                event.map(|event| event.map_or(Step::Nothing, Step::Event))
            };
            match step {
                Ok(Step::Nothing) => self.input.start += header + length,
                Ok(Step::Event(event)) => {
                    self.taken = header + length;
                    self.is_message = matches!(event, Event::Message { .. });
                    break Ok(Some(event));
                }
                Ok(Step::Stalled) => {
                    self.is_stalled = true;
                    break Ok(None);
                }
                Err(closed) => break Err(closed),
            }
        };
        match step {
            Ok(event) => Ok(event.map(|event| (event, &mut self.peer))),
            Err(closed) => {
                self.closed = Some(closed);
                Err(closed)
            }
        }
    }

    /// How many bytes the frame of the last event had, until the next one is asked for.
    ///
    /// ```
    /// use magpie_dist::connection::{Closed, Connection};
    /// /// Goes on until so many bytes of events have come.
    /// fn hear(connection: &mut Connection, most: usize) -> Result<usize, Closed> {
    ///     let mut bytes = 0;
    ///     while bytes < most && connection.event()?.is_some() {
    ///         bytes += connection.event_bytes();
    ///     }
    ///     Ok(bytes)
    /// }
    /// ```
    pub const fn event_bytes(&self) -> usize {
        self.taken
    }

    /// Puts the last event back, if it was a message: it is the next one, too. For when there is no room for it where it should go. Until it is taken
    /// again, nothing is read.
    ///
    /// ```
    /// use magpie_dist::connection::{Closed, Connection, Event};
    /// fn deliver(connection: &mut Connection, has_room: bool) -> Result<bool, Closed> {
    ///     if let Some((Event::Message { .. }, _)) = connection.event()? && !has_room {
    ///         connection.put_back();
    ///         return Ok(false);
    ///     }
    ///     Ok(true)
    /// }
    /// ```
    pub const fn put_back(&mut self) {
        if self.taken > 0 && self.is_message {
            self.taken = 0;
            self.peer.statistics.received -= 1;
            self.is_stalled = true;
        }
    }

    /// Answers [`Event::Named`].
    pub fn admit(&mut self, admission: Admission) {
        self.drop_taken();
        if let Err(closed) = self.greeting.admit(admission, &mut self.peer) {
            self.closed = Some(closed);
        }
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        self.peer.wire.output.waiting()
    }

    /// Says that so many bytes of the output were sent.
    pub fn sent(&mut self, count: usize, now: u64) {
        self.peer.wire.output.sent(count);
        if count > 0 {
            self.said = now;
        }
    }

    /// When [`elapsed`](Self::elapsed) has something to do next, unless something is sent or comes before.
    ///
    /// ```
    /// use magpie_dist::connection::{Closed, Connection};
    /// fn wake(connection: &mut Connection, now: u64) -> Result<u64, Closed> {
    ///     if now >= connection.deadline() {
    ///         connection.elapsed(now)?;
    ///     }
    ///     Ok(connection.deadline())
    /// }
    /// ```
    pub const fn deadline(&self) -> u64 {
        if !self.is_up() {
            return self.began.saturating_add(self.limits.handshake_ms);
        }
        let silence = self.heard.saturating_add(self.limits.tick_ms);
        let tick = self.said.saturating_add(self.limits.tick_ms / 4);
        if self.peer.wire.output.count() > 0 || silence < tick { silence } else { tick }
    }

    /// Looks at the clock: says to the other side that this one is there, if nothing else was said for long.
    ///
    /// # Errors
    /// When the other side has not been heard of for too long, or the handshake takes too long.
    pub fn elapsed(&mut self, now: u64) -> Result<(), Closed> {
        if let Some(closed) = self.closed {
            return Err(closed);
        }
        let result = self.look_at_the_clock(now);
        if let Err(closed) = result {
            self.closed = Some(closed);
        }
        result
    }

    fn look_at_the_clock(&mut self, now: u64) -> Result<(), Closed> {
        if !self.is_up() {
            return if now >= self.deadline() { Err(Closed::Timeout) } else { Ok(()) };
        }
        if self.is_put_back() {
            // It is this side that does not listen.
            self.heard = now;
        }
        if now >= self.heard.saturating_add(self.limits.tick_ms) {
            return Err(Closed::Ticks);
        }
        if self.peer.wire.output.count() == 0 && now >= self.said.saturating_add(self.limits.tick_ms / 4) {
            self.peer.wire.tick()?;
            self.said = now;
        }
        Ok(())
    }

    /// Whether a message waits for its receiver.
    const fn is_put_back(&self) -> bool {
        self.is_stalled && self.peer.wire.has_room()
    }

    /// Whether the nodes are connected.
    ///
    /// ```
    /// use magpie_dist::connection::Connection;
    /// fn can_be_used(connection: &Connection) -> bool { connection.is_up() && connection.closed().is_none() }
    /// ```
    pub const fn is_up(&self) -> bool {
        matches!(self.greeting.phase, Phase::Up)
    }

    /// Why the connection is no more, if it is.
    pub const fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// The other side.
    pub const fn peer(&mut self) -> &mut Peer {
        &mut self.peer
    }

    /// Who has to be told that the connection is no more, each once. What it knew is forgotten then.
    ///
    /// ```
    /// use magpie_dist::connection::{Connection, LocalPid, Lost};
    /// fn tell_all(connection: &mut Connection, tell: impl Fn(LocalPid)) {
    ///     for lost in connection.lost() {
    ///         match lost {
    ///             Lost::Watch(_, local) | Lost::Link(local, _) | Lost::Call(_, local) => tell(local),
    ///             Lost::Monitor(_) => {}
    ///         }
    ///     }
    /// }
    /// ```
    pub fn lost(&mut self) -> impl Iterator<Item = Lost> + '_ {
        core::iter::from_fn(|| self.peer.pop_lost())
    }

    fn drop_taken(&mut self) {
        self.input.start += core::mem::take(&mut self.taken);
    }

    fn frame_limit(&self) -> usize {
        if self.is_up() { self.limits.frame } else { LONGEST }
    }

    /// Of what is next in the input.
    fn header(&self) -> Option<(usize, usize)> {
        header(self.input.filled(), self.is_up())
    }
}

/// How long a frame's length is, and what it says.
fn header(bytes: &[u8], is_up: bool) -> Option<(usize, usize)> {
    if is_up {
        let length = u32::from_be_bytes(*bytes.first_chunk()?);
        Some((4, usize::try_from(length).unwrap_or(usize::MAX)))
    } else {
        Some((2, u16::from_be_bytes(*bytes.first_chunk()?).into()))
    }
}
