//! The places of sockets, by number. What is there after it was closed has another number.

use alloc::vec::Vec;
use core::net::SocketAddrV4;

use magpie::channel::{ProcessAddr, Reply};
use magpie::mem::OutOfMemory;
use magpie::sched::ProcessRef;
use magpie::watch::{Ended, Watch, WatchId};
use smoltcp::iface::SocketHandle;
use smoltcp::time::Instant;

use crate::buffers::Buffers;
use crate::command::{Answer, Half, Id, Token};

/// A socket that somebody holds, or held.
pub struct Slot {
    pub kind: Kind,
    life: u64,
    /// By half; what is not in halves has the first.
    watches: [Option<Watch>; 2],
}

pub enum Kind {
    Tcp(Tcp),
    Listener(Listener),
    Udp(Udp),
}

/// A connection.
pub struct Tcp {
    pub handle: SocketHandle,
    pub remote: SocketAddrV4,
    /// Until their half was dropped.
    pub read: Option<Token>,
    pub write: Option<Token>,
    /// Who waits: for the connection, for bytes, for room, for the end.
    pub connect: Option<(Reply<Answer>, Token, Token)>,
    pub reads: Option<(Vec<u8>, Reply<Answer>)>,
    pub writes: Option<(Vec<u8>, usize, Reply<Answer>)>,
    pub ends: Option<Reply<Answer>>,
    /// All was written: FIN follows the last byte.
    pub is_shut: bool,
    /// The other side has said its last.
    pub has_heard_all: bool,
    /// So much was still to be read when the connection rested: smoltcp forgets it with the rest.
    pub unread: usize,
    /// When a connection that nobody holds is cut off.
    pub until: Option<Instant>,
}

/// Who waits for connections at a port.
pub struct Listener {
    pub port: u16,
    pub token: Token,
    pub store: Vec<Stored>,
    pub accepts: Option<Accepts>,
}

/// Who accepts: with buffers for the next socket in store, and tokens for the connection.
pub struct Accepts {
    pub reply: Reply<Answer>,
    pub buffers: Buffers,
    pub tokens: (Token, Token),
    pub by: Option<ProcessRef>,
}

/// A socket in a listener's store.
pub struct Stored {
    pub handle: SocketHandle,
    /// Since when it is not yet established.
    pub half_open: Option<Instant>,
    /// It is established, as the how manieth.
    pub ready: Option<u64>,
}

/// A socket for datagrams.
pub struct Udp {
    pub handle: SocketHandle,
    pub token: Token,
    pub sends: Option<(Vec<u8>, SocketAddrV4, Reply<Answer>)>,
    pub receives: Option<(Vec<u8>, Reply<Answer>)>,
    /// Since when none of the bytes that wait to be sent has gone, and how many they are.
    pub stuck: Option<(Instant, usize)>,
}

/// All places.
pub struct Slots {
    places: Vec<Option<Slot>>,
    /// All from here on are empty, so nobody looks there: whoever looks at all sockets does so for each frame.
    end: usize,
    next_life: u64,
}

impl Slots {
    pub fn new(most: usize) -> Result<Self, OutOfMemory> {
        let mut places = Vec::new();
        places.try_reserve_exact(most).map_err(|_| OutOfMemory)?;
        places.resize_with(most, || None);
        Ok(Self { places, end: 0, next_life: 0 })
    }

    /// Behind the last place that is taken.
    pub const fn end(&self) -> usize {
        self.end
    }

    pub fn has_room(&self) -> bool {
        self.places.iter().any(Option::is_none)
    }

    /// At the first place that is empty; `None` without one.
    pub fn add(&mut self, kind: Kind) -> Option<Id> {
        let place = self.places.iter().position(Option::is_none)?;
        self.end = self.end.max(place + 1);
        self.next_life += 1;
        self.places[place] = Some(Slot { kind, life: self.next_life, watches: [None, None] });
        Some(Id { place, life: self.next_life })
    }

    pub fn get(&mut self, id: Id) -> Option<&mut Slot> {
        self.places.get_mut(id.place)?.as_mut().filter(|slot| slot.life == id.life)
    }

    pub fn tcp(&mut self, id: Id) -> Option<&mut Tcp> {
        match &mut self.get(id)?.kind {
            Kind::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    pub fn at(&mut self, place: usize) -> Option<&mut Slot> {
        self.places[place].as_mut()
    }

    pub fn id_at(&self, place: usize) -> Option<Id> {
        self.places[place].as_ref().map(|slot| Id { place, life: slot.life })
    }

    pub fn remove(&mut self, id: Id) -> Option<Slot> {
        self.get(id)?;
        let slot = self.places[id.place].take()?;
        while self.end > 0 && self.places[self.end - 1].is_none() {
            self.end -= 1;
        }
        Some(slot)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.places[..self.end].iter().flatten()
    }

    /// Half of it is held by that process from now on.
    pub fn hold(
        &mut self,
        id: Id,
        half: Half,
        by: Option<ProcessRef>,
        ends: &ProcessAddr<Ended>,
    ) -> Result<(), OutOfMemory> {
        let Some(slot) = self.get(id) else { return Ok(()) };
        let watch = &mut slot.watches[half as usize];
        if let Some(before) = watch.take() {
            before.cancel();
        }
        *watch = by.map(|by| by.watch(ends)).transpose()?;
        Ok(())
    }

    /// Which half of what was held by who was watched so.
    pub fn held_under(&mut self, watch: WatchId) -> Option<(Id, Half)> {
        for place in 0..self.end {
            let Some(slot) = &self.places[place] else { continue };
            for half in [Half::Read, Half::Write] {
                if slot.watches[half as usize].as_ref().is_some_and(|known| known.id() == watch) {
                    return Some((Id { place, life: slot.life }, half));
                }
            }
        }
        None
    }
}

impl Slot {
    /// Nobody holds it any more: no end of anybody is of interest.
    pub fn forget(&mut self, half: Half) {
        if let Some(watch) = self.watches[half as usize].take() {
            watch.cancel();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.forget(Half::Read);
        self.forget(Half::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Slots, Udp};
    use crate::command::{Id, token};
    use smoltcp::iface::SocketHandle;

    fn add(slots: &mut Slots) -> Option<Id> {
        let handle = SocketHandle::default();
        slots.add(Kind::Udp(Udp {
            handle,
            token: token().unwrap(),
            sends: None,
            receives: None,
            stuck: None,
        }))
    }

    #[test]
    fn the_end_is_behind_the_last_place_that_is_taken() {
        let mut slots = Slots::new(4).unwrap();
        assert_eq!(slots.end(), 0);
        let ids: [Id; 4] = core::array::from_fn(|_| add(&mut slots).unwrap());
        assert_eq!(slots.end(), 4);
        assert!(!slots.has_room() && add(&mut slots).is_none());
        // A hole is within it, and is taken first.
        slots.remove(ids[1]);
        assert_eq!((slots.end(), slots.iter().count()), (4, 3));
        assert_eq!(add(&mut slots).unwrap().place, 1);
        slots.remove(ids[2]);
        slots.remove(ids[3]);
        assert_eq!((slots.end(), slots.iter().count()), (2, 2));
        slots.remove(ids[3]);
        assert_eq!(slots.end(), 2, "it was removed before");
        assert_eq!(add(&mut slots).unwrap().place, 2);
        assert_eq!(slots.end(), 3);
    }
}
