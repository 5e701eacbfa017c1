//! Listeners: each keeps some sockets in store, because smoltcp takes a connection by a socket that listens. Who accepts brings the next one's buffers.

use alloc::vec::Vec;

use magpie::channel::Reply;
use magpie::mem::OutOfMemory;
use magpie::sched::ProcessRef;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::time::Duration;

use super::run::{Stack, answer};
use super::slots::{Accepts, Kind, Listener, Stored, Tcp};
use super::tcp::{address_of, connection};
use crate::buffers::Buffers;
use crate::command::{Answer, Half, Id, Outcome, Token};
use crate::error::Error;

impl Stack {
    pub(super) fn listen(
        &mut self,
        port: u16,
        buffers: Vec<Buffers>,
        token: Token,
        by: Option<ProcessRef>,
        reply: Reply<Answer>,
    ) {
        if port == 0 {
            return answer(reply, Err(Error::NoSuchAddress));
        }
        if self.listener_at(port).is_some() {
            return answer(reply, Err(Error::PortInUse));
        }
        if !self.makes_room(buffers.len()) {
            return answer(reply, Err(Error::TooMany));
        }
        let mut store = Vec::new();
        if store.try_reserve_exact(buffers.len()).is_err() {
            return answer(reply, Err(OutOfMemory.into()));
        }
        for buffers in buffers {
            let handle = self.add_tcp(buffers);
            self.lets_listen(handle, port);
            store.push(Stored { handle, half_open: None, ready: None });
        }
        let listener = Listener { port, token, store, accepts: None };
        let Some(id) = self.slots.add(Kind::Listener(listener)) else {
            return answer(reply, Err(Error::TooMany));
        };
        let _ = self.slots.hold(id, Half::Read, by, &self.ends_address);
        answer(reply, Ok(Outcome::Socket { id, port }));
    }

    pub(super) fn listener_at(&self, port: u16) -> Option<&Listener> {
        self.slots.iter().find_map(|slot| match &slot.kind {
            Kind::Listener(listener) if listener.port == port => Some(listener),
            _ => None,
        })
    }

    fn lets_listen(&mut self, handle: SocketHandle, port: u16) {
        // It is closed, and the port is not zero.
        let _ = self.sockets.get_mut::<Socket<'_>>(handle).listen(port);
    }

    pub(super) fn accept(
        &mut self,
        id: Id,
        buffers: Buffers,
        tokens: (Token, Token),
        by: Option<ProcessRef>,
        reply: Reply<Answer>,
    ) {
        match self.slots.get(id).map(|slot| &mut slot.kind) {
            Some(Kind::Listener(listener)) => {
                listener.accepts = Some(Accepts { reply, buffers, tokens, by });
            }
            _ => answer(reply, Err(Error::Closed)),
        }
    }

    /// Looks what became of the sockets in store, and hands one out.
    pub(super) fn tend_listener(&mut self, id: Id) {
        let now = self.now();
        let half_open = Duration::from(self.config.half_open);
        let Some(Kind::Listener(listener)) = self.slots.get(id).map(|slot| &mut slot.kind) else {
            return;
        };
        let port = listener.port;
        for stored in &mut listener.store {
            let socket = self.sockets.get_mut::<Socket<'_>>(stored.handle);
            match socket.state() {
                State::Listen => (stored.half_open, stored.ready) = (None, None),
                State::SynReceived => {
                    let since = *stored.half_open.get_or_insert(now);
                    if now >= since + half_open {
                        self.statistics.half_open += 1;
                        // The other side is told when it comes again, if it is there.
                        socket.abort();
                        (stored.half_open, stored.ready) = (None, None);
                    }
                }
                State::Closed | State::TimeWait => {
                    // It has gone again before anybody accepted it.
                    (stored.half_open, stored.ready) = (None, None);
                    let _ = socket.listen(port);
                }
                _ if stored.ready.is_none() => {
                    stored.half_open = None;
                    self.established += 1;
                    stored.ready = Some(self.established);
                }
                _ => {}
            }
        }
        let first =
            listener.store.iter().enumerate().filter_map(|(at, stored)| Some((stored.ready?, at))).min();
        if let Some((_, at)) = first
            && let Some(accepts) = listener.accepts.take()
        {
            self.hand_out(id, at, accepts);
        }
    }

    /// Gives a connection to who accepts, and puts another socket into its place.
    fn hand_out(&mut self, id: Id, at: usize, Accepts { reply, buffers, tokens, by }: Accepts) {
        if !reply.is_wanted() {
            return;
        }
        if !self.makes_room(1) {
            return answer(reply, Err(Error::TooMany));
        }
        let fresh = self.add_tcp(buffers);
        let Some(Kind::Listener(listener)) = self.slots.get(id).map(|slot| &mut slot.kind) else {
            return;
        };
        let port = listener.port;
        let handle = core::mem::replace(
            &mut listener.store[at],
            Stored { handle: fresh, half_open: None, ready: None },
        )
        .handle;
        self.lets_listen(fresh, port);
        let socket = self.sockets.get::<Socket<'_>>(handle);
        let Some(remote) = socket.remote_endpoint().map(address_of) else {
            self.closing.push(handle);
            return answer(reply, Err(Error::Reset));
        };
        let tcp = Tcp::new(handle, remote, (tokens.0.clone(), tokens.1.clone()));
        let Some(id) = self.add_connection(tcp, by) else {
            self.sockets.get_mut::<Socket<'_>>(handle).abort();
            self.closing.push(handle);
            return answer(reply, Err(Error::TooMany));
        };
        let socket = self.sockets.get::<Socket<'_>>(handle);
        answer(reply, Ok(Outcome::Connection(connection(id, socket, remote, tokens))));
    }

    /// Nobody accepts any more: those that wait to be are reset.
    pub(super) fn close_listener(&mut self, id: Id) {
        let Some(mut slot) = self.slots.remove(id) else { return };
        let Kind::Listener(listener) = &mut slot.kind else { return };
        if let Some(accepts) = listener.accepts.take() {
            answer(accepts.reply, Err(Error::Closed));
        }
        for stored in &listener.store {
            self.sockets.get_mut::<Socket<'_>>(stored.handle).abort();
            self.closing.push(stored.handle);
        }
    }
}
