//! The handshake: who says what when, and what comes of it.

use super::error::Closed;
use super::event::{Admission, Event};
use super::identity::node_name;
use super::peer::Peer;
use crate::flags;
use crate::handshake::{Expected, Hello, digest};
use crate::term::AtomBuf;

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Acceptor: the other side's name.
    Name,
    /// Acceptor: what the node says to that.
    Admission,
    /// Acceptor: whether the other side wants to go on although there is a connection already.
    Alive,
    /// Acceptor: the answer to the challenge.
    Reply,
    /// Initiator: whether the other side wants to.
    Status,
    /// Initiator: the challenge.
    Challenge,
    /// Initiator: the answer to its own challenge.
    Ack,
    /// Nothing: the nodes are connected.
    Up,
}

/// What was learnt, and what was said.
#[derive(Debug)]
pub struct Greeting {
    pub phase: Phase,
    /// What the other side has to prove its cookie with.
    challenge: u32,
}

impl Greeting {
    pub const fn accept(challenge: u32) -> Self {
        Self { phase: Phase::Name, challenge }
    }

    /// Begins one with the node of this name.
    pub fn connect(challenge: u32, other: AtomBuf, peer: &mut Peer) -> Result<Self, Closed> {
        peer.names.other = other;
        let own = &peer.names.own;
        let hello = Hello::Name { flags: flags::OWN, creation: own.creation, name: own.name.as_str() };
        peer.wire.say(hello)?;
        Ok(Self { phase: Phase::Status, challenge })
    }

    /// Takes in one message, without its length.
    pub fn take_in<'a>(&mut self, message: &'a [u8], peer: &mut Peer) -> Result<Option<Event<'a>>, Closed> {
        let expected = match self.phase {
            Phase::Name => Expected::Name,
            Phase::Alive | Phase::Status => Expected::Status,
            Phase::Reply => Expected::Reply,
            Phase::Challenge => Expected::Challenge,
            Phase::Ack => Expected::Ack,
            Phase::Admission | Phase::Up => return Err(Closed::Handshake),
        };
        match Hello::read(message, expected).ok_or(Closed::Handshake)? {
            Hello::Name { flags, creation, name } => {
                peer.names.other = node_name(name).map_err(|_| Closed::WrongName)?;
                peer.names.other_creation = creation;
                peer.agree(flags)?;
                self.phase = Phase::Admission;
                return Ok(Some(Event::Named { name }));
            }
            Hello::Status(status) if self.phase == Phase::Alive => match status {
                "true" => self.challenge(peer)?,
                _ => return Err(Closed::AlreadyConnected),
            },
            Hello::Status(status) => {
                match status {
                    "ok" | "ok_simultaneous" => {}
                    // Nobody begins one who knows of another.
                    "alive" => peer.wire.say(Hello::Status("true"))?,
                    "nok" => return Err(Closed::Refused),
                    "not_allowed" => return Err(Closed::NotAllowed),
                    _ => return Err(Closed::Handshake),
                }
                self.phase = Phase::Challenge;
            }
            Hello::Challenge { flags, challenge, creation, name } => {
                if name != peer.name() {
                    return Err(Closed::WrongName);
                }
                peer.names.other_creation = creation;
                peer.agree(flags)?;
                let digest = digest(&peer.names.own.cookie, challenge);
                peer.wire.say(Hello::Reply { challenge: self.challenge, digest })?;
                self.phase = Phase::Ack;
            }
            Hello::Reply { challenge, digest: proof } => {
                let cookie = &peer.names.own.cookie;
                if proof != digest(cookie, self.challenge) {
                    return Err(Closed::Cookie);
                }
                let digest = digest(cookie, challenge);
                peer.wire.say(Hello::Ack { digest })?;
                return Ok(Some(self.up(peer)));
            }
            Hello::Ack { digest: proof } => {
                if proof != digest(&peer.names.own.cookie, self.challenge) {
                    return Err(Closed::Cookie);
                }
                return Ok(Some(self.up(peer)));
            }
        }
        Ok(None)
    }

    /// Answers the other side's name.
    pub fn admit(&mut self, admission: Admission, peer: &mut Peer) -> Result<(), Closed> {
        if self.phase != Phase::Admission {
            return Ok(());
        }
        let (status, end) = match admission {
            Admission::Accepted => ("ok", None),
            Admission::Simultaneous => ("ok_simultaneous", None),
            Admission::Refused => ("nok", Some(Closed::Refused)),
            Admission::NotAllowed => ("not_allowed", Some(Closed::NotAllowed)),
            Admission::Alive => {
                self.phase = Phase::Alive;
                return peer.wire.say(Hello::Status("alive"));
            }
        };
        peer.wire.say(Hello::Status(status))?;
        match end {
            Some(end) => Err(end),
            None => self.challenge(peer),
        }
    }

    fn challenge(&mut self, peer: &mut Peer) -> Result<(), Closed> {
        let own = &peer.names.own;
        let (creation, name) = (own.creation, own.name.as_str());
        let hello = Hello::Challenge { flags: flags::OWN, challenge: self.challenge, creation, name };
        peer.wire.say(hello)?;
        self.phase = Phase::Reply;
        Ok(())
    }

    const fn up<'a>(&mut self, peer: &mut Peer) -> Event<'a> {
        self.phase = Phase::Up;
        peer.wire.is_up = true;
        Event::Up
    }
}

impl Peer {
    /// Compares what the other side can with what is needed.
    const fn agree(&mut self, flags: u64) -> Result<(), Closed> {
        let flags = flags::expanded(flags);
        self.wire.flags = flags & flags::OWN;
        match flags::NEEDED & !flags {
            0 => Ok(()),
            missing => Err(Closed::Flags(missing)),
        }
    }
}
