//! Somebody on another node.

use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::channel::ProcessAddr;
use magpie::mem::Counted;
use magpie::message::SendError;
use magpie::time;
use magpie_dist::term::{FromAnyTerm, TermBuf, ToTerm};

use crate::desk::Orders;
use crate::error::Error;
use crate::line::{Order, Place, RemoteDown, Token};
use crate::lines::copy;
use crate::node::Node;
use crate::watched::Watched;

/// Somebody on another node, who takes messages of type `M`: the remote twin of [`Recipient`](magpie::actor::Recipient). Whether they are of a type that is expected there
/// no compiler can know.
///
/// Messages of one sender to one recipient come in the order that they were sent in, as long as the connection lasts. After that what was under way is lost, and
/// the next use connects anew.
pub struct RemoteRecipient<M> {
    node: Node,
    line: Orders,
    peer: Counted<String>,
    place: Place,
    types: PhantomData<fn(M)>,
}

/// A name that several may have.
pub fn shared(name: &str) -> Result<Counted<String>, Error> {
    Counted::new(copy(name)?).map_err(|(error, _)| error.into())
}

/// Numbers of calls and monitors.
static TOKENS: AtomicU64 = AtomicU64::new(1);

fn token() -> Token {
    // Relaxed: a number for each who asks, and nothing else.
    Token(TOKENS.fetch_add(1, Ordering::Relaxed))
}

impl<M: ToTerm> RemoteRecipient<M> {
    pub(crate) fn new(node: Node, line: Orders, peer: &str, place: Place) -> Result<Self, Error> {
        Ok(Self { node, line, peer: shared(peer)?, place, types: PhantomData })
    }

    /// The node that it is on.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Sends a message, as Erlang's `!`: whether somebody is there is not said. Waits until it is under way.
    ///
    /// # Errors
    /// When it cannot be sent: it has no term, or one that is too long, or there is no connection.
    pub async fn send(&self, message: &M) -> Result<(), Error> {
        let message = TermBuf::of(message, self.node.longest())?;
        self.order(Order::Send { to: self.place.clone(), message }).await.map(drop)
    }

    /// Sends a message as `gen_server:cast` does.
    ///
    /// # Errors
    /// As for [`RemoteRecipient::send`].
    pub async fn cast(&self, message: &M) -> Result<(), Error> {
        let message = TermBuf::of(message, self.node.longest())?;
        self.order(Order::Cast { to: self.place.clone(), message }).await.map(drop)
    }

    /// Asks, as `gen_server:call` does, and waits for the answer no longer than `limit`.
    ///
    /// # Errors
    /// As for [`RemoteRecipient::send`], and when nobody is there, whoever was asked has ended, the connection has, or the answer is no `R`.
    pub async fn call<R: FromAnyTerm>(&self, message: &M, limit: Duration) -> Result<R, Error> {
        let message = TermBuf::of(message, self.node.longest())?;
        let token = token();
        let asked = self.order(Order::Call { token, to: self.place.clone(), message });
        match time::timeout(limit, asked).await {
            Ok(answer) => Ok(answer?.ok_or(Error::Disconnected)?.as_term().decode()?),
            Err(_) => {
                // If this is not taken, it is found when there are too many.
                let _ = self.line.try_ask(Order::GiveUp(token)).map(drop);
                Err(Error::TimedOut)
            }
        }
    }

    /// Has `watcher` told once, by a [`RemoteDown`] with this number: when whoever is there ends, at once if nobody is, or when the connection ends.
    ///
    /// # Errors
    /// As for [`RemoteRecipient::send`].
    pub async fn monitor(&self, watcher: &ProcessAddr<RemoteDown>) -> Result<u64, Error> {
        let watched = Watched::new(token(), watcher.clone())?;
        // First the desk, which tells if the line cannot any more.
        let line = match self.node.watch(&self.peer, &watched).await {
            Err(Error::Disconnected) => {
                self.node.line(&self.peer).await?;
                self.node.watch(&self.peer, &watched).await?
            }
            line => line?,
        };
        let ordered = line.ask(Order::Monitor { to: self.place.clone(), watched: watched.clone() }).await;
        match ordered.unwrap_or(Err(Error::Disconnected)) {
            Ok(_) => Ok(watched.token.0),
            Err(error) => {
                watched.forget();
                Err(error)
            }
        }
    }

    /// Takes a monitor back: what it has told already stays told.
    ///
    /// # Errors
    /// When the connection has ended, and the monitor with it.
    pub async fn demonitor(&self, monitor: u64) -> Result<(), Error> {
        self.order(Order::Demonitor(Token(monitor))).await.map(drop)
    }

    /// Gives an order to the line; to another one, if that has ended.
    async fn order(&self, order: Order) -> Result<Option<TermBuf>, Error> {
        let order = match self.line.try_ask(order) {
            Ok(answer) => return answer.await.unwrap_or(Err(Error::Disconnected)),
            Err(SendError::Ended(order)) => order,
            Err(SendError::OutOfMemory(_)) => return Err(Error::OutOfMemory),
            Err(_) => return Err(Error::Busy),
        };
        let line = self.node.line(&self.peer).await?;
        line.ask(order).await.unwrap_or(Err(Error::Disconnected))
    }
}

impl<M> Clone for RemoteRecipient<M> {
    fn clone(&self) -> Self {
        Self {
            node: self.node.clone(),
            line: self.line.clone(),
            peer: self.peer.clone(),
            place: self.place.clone(),
            types: PhantomData,
        }
    }
}

impl<M> fmt::Debug for RemoteRecipient<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteRecipient({:?} on {})", self.place, self.peer.as_str())
    }
}
