//! Size classes: which blocks the caches keep, and which class a layout falls into.
//!
//! Up to 128 bytes the classes are 16 bytes apart, above that there are four to each doubling, up to 2 KiB. So
//! at most a fifth of a block above 128 bytes is wasted. Every power of two in that range is a class; blocks
//! of those are aligned to their size, which serves layouts that ask for more than 16 bytes of alignment.

use core::alloc::Layout;
use core::hint;

/// The largest block that a cache keeps, in bytes.
const LARGEST_BYTES: usize = 2048;
/// Blocks of every class are aligned to at least this.
const LEAST_ALIGNMENT: usize = 16;
/// Up to here the classes are `LEAST_ALIGNMENT` apart.
const FINE_BYTES: usize = 128;
const FINE_CLASSES: usize = FINE_BYTES / LEAST_ALIGNMENT;
const DOUBLINGS: usize = (LARGEST_BYTES / FINE_BYTES).ilog2() as usize;

/// Roughly this many bytes are moved at a time between a cache and what all cores share.
const BATCH_BYTES: usize = 4096;

/// The number of a size class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SizeClass(u8);

/// What every block that is taken or given back asks of its class.
#[derive(Clone, Copy)]
struct Size {
    bytes: u16,
    batch: u16,
}

/// By how often the least alignment fits into the bytes, rounded up: to look here, and below, is a third of the work of finding it out.
static CLASSES: [SizeClass; LARGEST_BYTES / LEAST_ALIGNMENT + 1] = {
    let mut classes = [SizeClass(0); LARGEST_BYTES / LEAST_ALIGNMENT + 1];
    let mut index = 0;
    while index < classes.len() {
        classes[index] = SizeClass::of_bytes(index * LEAST_ALIGNMENT);
        index += 1;
    }
    classes
};

/// By the number of the class.
static SIZES: [Size; SizeClass::COUNT] = {
    let mut sizes = [Size { bytes: 0, batch: 0 }; SizeClass::COUNT];
    let mut index = 0;
    while index < SizeClass::COUNT {
        sizes[index] = SizeClass::ALL[index].size();
        index += 1;
    }
    sizes
};

impl SizeClass {
    /// How many there are.
    pub(super) const COUNT: usize = FINE_CLASSES + 4 * DOUBLINGS;

    /// All of them, the smallest first.
    pub(super) const ALL: [Self; Self::COUNT] = {
        let mut all = [Self(0); Self::COUNT];
        let mut index = 0;
        while index < Self::COUNT {
            all[index] = Self(index as u8);
            index += 1;
        }
        all
    };

    /// The class whose blocks fit the layout, if it is small enough.
    #[inline(always)]
    pub(super) fn of(layout: Layout) -> Option<Self> {
        let bytes = if layout.align() <= LEAST_ALIGNMENT {
            layout.size()
        } else {
            layout.size().max(layout.align()).next_power_of_two()
        };
        if bytes > LARGEST_BYTES {
            return None;
        }
        Some(CLASSES[bytes.div_ceil(LEAST_ALIGNMENT)])
    }

    /// The class of so many bytes, which are not too many.
    const fn of_bytes(bytes: usize) -> Self {
        let last = if bytes == 0 { 0 } else { bytes - 1 };
        if last < FINE_BYTES {
            return Self((last / LEAST_ALIGNMENT) as u8);
        }
        let doubling = last.ilog2() as usize;
        let quarter = (last >> (doubling - 2)) & 3;
        Self((FINE_CLASSES + 4 * (doubling - FINE_BYTES.ilog2() as usize) + quarter) as u8)
    }

    #[inline(always)]
    pub(super) fn index(self) -> usize {
        let index = usize::from(self.0);
        // SAFETY: there are no others than in `CLASSES` and `ALL`.
        unsafe { hint::assert_unchecked(index < Self::COUNT) };
        index
    }

    /// Bytes of its blocks.
    #[inline(always)]
    pub(super) fn block_bytes(self) -> usize {
        usize::from(SIZES[self.index()].bytes)
    }

    /// How many blocks move at a time.
    #[inline(always)]
    pub(super) fn batch(self) -> usize {
        usize::from(SIZES[self.index()].batch)
    }

    const fn size(self) -> Size {
        let index = self.0 as usize;
        let bytes = if index < FINE_CLASSES {
            (index + 1) * LEAST_ALIGNMENT
        } else {
            let base = FINE_BYTES << ((index - FINE_CLASSES) / 4);
            base + ((index - FINE_CLASSES) % 4 + 1) * base / 4
        };
        let batch = match BATCH_BYTES / bytes {
            blocks @ 4..=64 => blocks,
            0..4 => 4,
            _ => 64,
        };
        Size { bytes: bytes as u16, batch: batch as u16 }
    }

    /// The layout of one block.
    pub(super) fn block_layout(self) -> Layout {
        let bytes = self.block_bytes();
        let alignment = if bytes.is_power_of_two() { bytes } else { LEAST_ALIGNMENT };
        // SAFETY: the alignment is a power of two, and a few KiB do not overflow when rounded up.
        unsafe { Layout::from_size_align_unchecked(bytes, alignment) }
    }
}

#[cfg(test)]
mod tests {
    use super::SizeClass;
    use core::alloc::Layout;

    #[test]
    fn every_small_layout_fits_its_class_and_no_smaller_one() {
        for bits in 0..=11 {
            for size in 1..=2048 {
                let layout = Layout::from_size_align(size, 1 << bits).expect("valid");
                let class = SizeClass::of(layout).expect("small");
                assert!(class.block_bytes() >= size);
                assert!(class.index() < SizeClass::COUNT);
                assert!(class.block_layout().align() >= layout.align());
                assert!(class.block_bytes().is_multiple_of(class.block_layout().align()));
                if layout.align() <= 16 && class.index() > 0 {
                    assert!(SizeClass(class.0 - 1).block_bytes() < size);
                }
            }
        }
        assert_eq!(SizeClass::of(Layout::new::<[u8; 2049]>()), None);
        assert_eq!(SizeClass::of(Layout::from_size_align(8, 4096).expect("valid")), None);
    }
}
