//! The port mapper: tells others at which port this node is, and asks that of other hosts. A node is its own mapper, because the usual one takes no
//! registrations from other machines.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use magpie::time;
use magpie_dist::epmd::{self, Answered, Entry, EpmdError};
use magpie_net::{Network, TcpStream};

use crate::error::Error;
use crate::shared::Shared;

pub use magpie_dist::epmd::PORT;

/// So long it may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// So long a request or an answer may be.
const MOST_BYTES: usize = 1024;

/// Answers one request.
pub async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    // Who says nothing is not waited for.
    let _ = time::timeout(PATIENCE, answer(&shared, stream)).await;
}

async fn answer(shared: &Shared, mut stream: TcpStream) -> Result<(), Error> {
    let entries = [Entry { name: &shared.alive, port: shared.port }];
    let (mut request, mut piece, mut out) = (Vec::new(), [0; 256], Vec::new());
    loop {
        let count = stream.read(&mut piece).await?;
        if count == 0 || request.len() + count > MOST_BYTES {
            return Ok(());
        }
        request.try_reserve(count).map_err(|_| Error::OutOfMemory)?;
        request.extend_from_slice(&piece[..count]);
        match epmd::answer(&request, &entries, &mut out).map_err(|_| Error::OutOfMemory)? {
            Answered::Incomplete => {}
            Answered::Done => {
                stream.write_all(&out).await?;
                return Ok(stream.close().await?);
            }
            Answered::Refused => return Ok(()),
        }
    }
}

/// At which port a node is.
pub async fn find(network: &Network, host: SocketAddrV4, alive: &str) -> Result<u16, Error> {
    let asked = async {
        let mut stream = network.connect(host).await?;
        let (mut answer, mut piece, mut out) = (Vec::new(), [0; 256], Vec::new());
        epmd::find(alive, &mut out).map_err(|_| Error::OutOfMemory)?;
        stream.write_all(&out).await?;
        loop {
            match epmd::found(&answer) {
                Ok(Some(found)) => return Ok(found.port),
                Err(EpmdError::NotFound) => return Err(Error::NotFound),
                Err(_) => return Err(Error::NotFound),
                Ok(None) => {}
            }
            let count = stream.read(&mut piece).await?;
            if count == 0 || answer.len() + count > MOST_BYTES {
                return Err(Error::NotFound);
            }
            answer.try_reserve(count).map_err(|_| Error::OutOfMemory)?;
            answer.extend_from_slice(&piece[..count]);
        }
    };
    time::timeout(PATIENCE, asked).await.unwrap_or(Err(Error::TimedOut))
}
