//! A link, seen from what carries the frames: a driver, or a cable of the tests.
//!
//! All goes by message, and in frames that there is a fixed number of: those for sending are given to the network when the link is attached, and come back as they
//! have gone; those for receiving are given up by the link with what has come, and come back as they have been read. So neither side can flood the
//! other, nobody waits in a loop for room, and nothing is allocated on the way. A link that crashes takes frames with it, and no more: the next one brings its own.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::channel::{ProcessAddr, ProcessMailbox, SendError};
use magpie::mem::OutOfMemory;
use magpie::time;

use crate::error::Error;
use crate::frame::Frame;

/// After so long it tries again what there was no memory for.
const AGAIN_AFTER: Duration = Duration::from_millis(1);

/// The next link's number.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// What a link tells the network's process.
#[derive(Debug)]
pub enum Feed {
    /// `kept` is empty, and has room for all that the link receives into.
    Attach {
        link: u64,
        to: ProcessAddr<LinkEvent>,
        mac: [u8; 6],
        frames: Vec<Frame>,
        kept: Vec<Frame>,
    },
    Received {
        link: u64,
        frame: Frame,
    },
    Sent {
        link: u64,
        frame: Frame,
    },
}

/// What the network tells a link.
#[derive(Debug)]
pub enum LinkEvent {
    /// To be sent. The frame is then given back by [`Link::sent`].
    Send(Frame),
    /// One that was [received](Link::received) was read: it may be filled again.
    Again(Frame),
}

/// A link's end, for who carries the frames.
///
/// ```
/// use magpie_net::{Config, Link, LinkEvent, Network};
/// /// A link that loses everything.
/// async fn hole(network: Network) -> magpie::Result {
///     let (mut link, _receive) = Link::attach(&network, [2, 0, 0, 0, 0, 1], 16, 16)?;
///     while let Some(event) = link.next().await {
///         if let LinkEvent::Send(frame) = event {
///             link.sent(frame)?;
///         }
///     }
///     Ok(())
/// }
/// # magpie::sched::run_on_threads(2, 1, async {
/// let network = Network::start(Config::dhcp())?;
/// magpie::sched::spawn(hole(network.clone()))?;
/// drop(network);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug)]
pub struct Link {
    inbox: ProcessMailbox<LinkEvent>,
    network: ProcessAddr<Feed>,
    number: u64,
    /// What there was no memory for to tell it. There is room for every frame that there is.
    kept: VecDeque<Feed>,
}

impl Link {
    /// Becomes a network's link, in place of the one that it had. `mac` is the card's address. Of the frames that are made, `sending` go to the network; `receiving`
    /// are handed out here, for what will come.
    ///
    /// # Errors
    /// Without memory, and when the network has ended.
    pub fn attach(
        network: &crate::Network,
        mac: [u8; 6],
        receiving: usize,
        sending: usize,
    ) -> Result<(Self, Vec<Frame>), Error> {
        let mut inbox = ProcessMailbox::new(receiving + sending)?;
        // Who this is: its crash ends the mailbox, which the network then finds.
        let _nothing = inbox.try_receive();
        let frames = Frame::several(sending)?;
        let received = Frame::several(receiving)?;
        let (mut kept, mut kept_there) = (VecDeque::new(), Vec::new());
        kept.try_reserve_exact(receiving + sending).map_err(|_| OutOfMemory)?;
        kept_there.try_reserve_exact(receiving).map_err(|_| OutOfMemory)?;
        let to = inbox.address();
        let network = network.feed().clone();
        // Only that no two are equal counts.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let attach = Feed::Attach { link: number, to, mac, frames, kept: kept_there };
        network.send(attach).map_err(|error| match error {
            SendError::OutOfMemory(_) => Error::OutOfMemory,
            _ => Error::Stopped,
        })?;
        Ok((Self { inbox, network, number, kept }, received))
    }

    /// What there is to do next; `None` when the network has another link, or has ended.
    pub async fn next(&mut self) -> Option<LinkEvent> {
        let Self { inbox, network, kept, .. } = self;
        let mut receive = pin!(inbox.receive());
        loop {
            // If the network has ended, the inbox says so.
            let _ = hand_over(network, kept);
            if kept.is_empty() {
                return receive.await;
            }
            // That there is memory again nobody says.
            if let Ok(event) = time::timeout(AGAIN_AFTER, receive.as_mut()).await {
                return event;
            }
        }
    }

    /// The same, if there is something.
    pub fn try_next(&mut self) -> Option<LinkEvent> {
        // If the network has ended, nothing comes.
        let _ = hand_over(&self.network, &mut self.kept);
        self.inbox.try_receive()
    }

    /// A frame has come. It is given back by [`LinkEvent::Again`]. While there is no memory it is kept, and handed over when something is done with the link next, or waited for.
    ///
    /// # Errors
    /// When the network has ended, or this is one frame more than there are.
    pub fn received(&mut self, frame: Frame) -> Result<(), Error> {
        self.tell(Feed::Received { link: self.number, frame })
    }

    /// A frame has gone, or was lost.
    ///
    /// # Errors
    /// As for [`Link::received`].
    pub fn sent(&mut self, mut frame: Frame) -> Result<(), Error> {
        frame.set_length(0);
        self.tell(Feed::Sent { link: self.number, frame })
    }

    fn tell(&mut self, feed: Feed) -> Result<(), Error> {
        hand_over(&self.network, &mut self.kept)?;
        let feed = match self.kept.is_empty() {
            true => match self.network.send(feed) {
                Ok(_) => return Ok(()),
                Err(SendError::OutOfMemory(feed)) => feed,
                Err(_) => return Err(Error::Stopped),
            },
            // In the order in which they came.
            false => feed,
        };
        if self.kept.len() == self.kept.capacity() {
            return Err(Error::OutOfMemory);
        }
        self.kept.push_back(feed);
        Ok(())
    }
}

/// Tells the network what was kept, as far as there is memory.
fn hand_over(network: &ProcessAddr<Feed>, kept: &mut VecDeque<Feed>) -> Result<(), Error> {
    while let Some(feed) = kept.pop_front() {
        match network.send(feed) {
            Ok(_) => {}
            Err(SendError::OutOfMemory(feed)) => {
                kept.push_front(feed);
                break;
            }
            Err(_) => return Err(Error::Stopped),
        }
    }
    Ok(())
}
