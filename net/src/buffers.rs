//! Memory of sockets: allocated by who opens the socket, so that it is charged to that one, and refused with a typed error.

use alloc::vec::Vec;

use magpie::mem::OutOfMemory;
use smoltcp::socket::udp;

/// So many zeros.
pub fn zeroed(bytes: usize) -> Result<Vec<u8>, OutOfMemory> {
    let mut zeroed = Vec::new();
    zeroed.try_reserve_exact(bytes).map_err(|_| OutOfMemory)?;
    zeroed.resize(bytes, 0);
    Ok(zeroed)
}

/// What one connection receives into and sends from.
pub struct Buffers {
    pub receive: Vec<u8>,
    pub send: Vec<u8>,
}

impl Buffers {
    pub fn new(bytes: (usize, usize)) -> Result<Self, OutOfMemory> {
        Ok(Self { receive: zeroed(bytes.0)?, send: zeroed(bytes.1)? })
    }

    pub fn several(count: usize, bytes: (usize, usize)) -> Result<Vec<Self>, OutOfMemory> {
        let mut several = Vec::new();
        several.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
        for _ in 0..count {
            several.push(Self::new(bytes)?);
        }
        Ok(several)
    }
}

/// What datagrams wait in, one way.
pub struct Datagrams {
    pub places: Vec<udp::PacketMetadata>,
    pub bytes: Vec<u8>,
}

impl Datagrams {
    pub fn new(most: usize, bytes: usize) -> Result<Self, OutOfMemory> {
        let mut places = Vec::new();
        places.try_reserve_exact(most).map_err(|_| OutOfMemory)?;
        places.resize(most, udp::PacketMetadata::EMPTY);
        Ok(Self { places, bytes: zeroed(bytes)? })
    }
}
