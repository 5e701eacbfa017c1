//! A card (Physical Layer Simplified Specification 3.01): how it is found and begun, how large it is, and reading and writing it.

use core::time::Duration;

use magpie::time;

use super::host::{Answers, Blocks, Failed, Host};
use crate::DriverError;
use crate::block::SECTOR_BYTES;

/// The most that one command moves: a driver that has been killed leaves no more half done.
const MOST_BYTES: usize = 128 * SECTOR_BYTES;
/// Kilohertz that any card can do.
const KILOHERTZ: u32 = 25_000;
/// How often a card is asked whether it is ready, which takes a second at most.
const ASKS: u32 = 200;
const BETWEEN: Duration = Duration::from_millis(5);
/// The lowest byte comes back, and the voltages are 2.7 to 3.6.
const CHECK: u32 = 0x1aa;
const VOLTAGES: u32 = 0x00ff_8000;
const HIGH_CAPACITY: u32 = 1 << 30;
const IS_READY: u32 = 1 << 31;

pub(super) struct Card {
    host: Host,
    sectors: u64,
    /// Its addresses count sectors, not bytes.
    counts_sectors: bool,
}

impl Card {
    pub(super) async fn open() -> Result<Self, DriverError> {
        let mut card = Self { host: Host::open()?, sectors: 0, counts_sectors: false };
        card.begin().await?;
        Ok(card)
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Begins anew with the card that is in the slot.
    pub(super) async fn begin(&mut self) -> Result<(), DriverError> {
        self.try_begin().await.map_err(|Failed| DriverError::NoDevice("card in the slot"))
    }

    async fn try_begin(&mut self) -> Result<(), Failed> {
        let host = &mut self.host;
        host.reset().await?;
        host.command((0, 0), Answers::Nothing, Blocks::None).await?;
        // Cards of before 2006 do not know this command; they have no high capacity either.
        let is_later = match host.command((8, CHECK), Answers::Usual, Blocks::None).await {
            Ok([answer, ..]) if answer & 0xfff == CHECK => HIGH_CAPACITY,
            Ok(_) => return Err(Failed),
            Err(Failed) => 0,
        };
        let mut conditions = 0;
        for _ in 0..ASKS {
            host.command((55, 0), Answers::Usual, Blocks::None).await?;
            [conditions, ..] = host.command((41, is_later | VOLTAGES), Answers::Bare, Blocks::None).await?;
            if conditions & IS_READY != 0 {
                break;
            }
            time::sleep(BETWEEN).await;
        }
        if conditions & IS_READY == 0 {
            return Err(Failed);
        }
        self.counts_sectors = conditions & HIGH_CAPACITY != 0;
        host.command((2, 0), Answers::Long, Blocks::None).await?;
        let [address, ..] = host.command((3, 0), Answers::Usual, Blocks::None).await?;
        let address = address & 0xffff_0000;
        let described = host.command((9, address), Answers::Long, Blocks::None).await?;
        self.sectors = capacity(described);
        host.command((7, address), Answers::Busy, Blocks::None).await?;
        host.set_clock(KILOHERTZ).await?;
        host.command((55, address), Answers::Usual, Blocks::None).await?;
        host.command((6, 0b10), Answers::Usual, Blocks::None).await?;
        host.use_four_lines();
        host.command((16, SECTOR_BYTES as u32), Answers::Usual, Blocks::None).await?;
        Ok(())
    }

    /// Where a sector is, as the card counts. It has no more than fit.
    fn address(&self, sector: u64) -> u32 {
        if self.counts_sectors { sector as u32 } else { (sector * SECTOR_BYTES as u64) as u32 }
    }

    /// Reads whole sectors that there are.
    pub(super) async fn read(&mut self, sector: u64, bytes: &mut [u8]) -> Result<(), Failed> {
        let sectors = (sector..).step_by(MOST_BYTES / SECTOR_BYTES);
        for (sector, piece) in sectors.zip(bytes.chunks_mut(MOST_BYTES)) {
            let number = if piece.len() > SECTOR_BYTES { 18 } else { 17 };
            let order = (number, self.address(sector));
            self.host.command(order, Answers::Usual, Blocks::In(piece)).await?;
        }
        Ok(())
    }

    /// Writes whole sectors that there are, and waits until the card has them.
    pub(super) async fn write(&mut self, sector: u64, bytes: &[u8]) -> Result<(), Failed> {
        let sectors = (sector..).step_by(MOST_BYTES / SECTOR_BYTES);
        for (sector, piece) in sectors.zip(bytes.chunks(MOST_BYTES)) {
            let number = if piece.len() > SECTOR_BYTES { 25 } else { 24 };
            let order = (number, self.address(sector));
            self.host.command(order, Answers::Usual, Blocks::Out(piece)).await?;
        }
        Ok(())
    }
}

/// How many sectors a card has that describes itself so, without the checksum in the lowest byte.
fn capacity(described: [u32; 4]) -> u64 {
    let all = described.iter().rev().fold(0, |all: u128, word| all << 32 | u128::from(*word)) << 8;
    let bits = |first: u32, count: u32| (all >> first) as u64 & ((1 << count) - 1);
    if bits(126, 2) == 0 {
        // Of the first kind: blocks, of which it says the length.
        let exponent = bits(47, 3) + 2 + bits(80, 4);
        ((bits(62, 12) + 1) << exponent) / SECTOR_BYTES as u64
    } else {
        (bits(48, 22) + 1) * 1024
    }
}

#[cfg(test)]
mod tests {
    use super::capacity;

    fn described(bits: u128) -> [u32; 4] {
        [0, 32, 64, 96].map(|first| (bits >> 8 >> first) as u32)
    }

    #[test]
    fn a_card_says_how_large_it_is() {
        // 64 MiB, of the first kind: 2048 times 64 blocks of 512 bytes.
        assert_eq!(capacity(described(2047 << 62 | 4 << 47 | 9 << 80)), 131_072);
        // 2 GiB, in blocks of 1024 bytes.
        assert_eq!(capacity(described(4095 << 62 | 7 << 47 | 10 << 80)), 4_194_304);
        // 32 GiB, of the second.
        assert_eq!(capacity(described(1 << 126 | 65_535 << 48)), 67_108_864);
        // Nothing sensible, and all ones: no overflow.
        assert_eq!(capacity([0; 4]), 0);
        assert_eq!(capacity([u32::MAX; 4]), 4_194_304 * 1024);
    }
}
