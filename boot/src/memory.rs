//! Dividing up the memory: what is left when the image, the device tree and the input are taken out.

/// The most separate ranges that are kept; further ones are not used.
pub const MOST_RANGES: usize = 16;

/// A range of addresses, `start` inclusive, `end` exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// First address.
    pub start: usize,
    /// First address after it.
    pub end: usize,
}

impl Range {
    /// Bytes in it.
    pub fn bytes(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// The smallest range of whole pages of `align` bytes that contains it.
    pub fn outward(self, align: usize) -> Self {
        Self { start: self.start / align * align, end: self.end.div_ceil(align) * align }
    }

    /// The largest range of whole pages of `align` bytes inside it.
    pub fn inward(self, align: usize) -> Self {
        let start = self.start.div_ceil(align) * align;
        Self { start, end: (self.end / align * align).max(start) }
    }
}

/// Free memory: a set of ranges that do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Free {
    ranges: [Range; MOST_RANGES],
    count: usize,
}

impl Free {
    /// No memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a range; it must not overlap another. If it continues another, as memory nodes often do, the two become
    /// one.
    pub fn add(&mut self, range: Range) {
        if range.bytes() == 0 {
            return;
        }
        if let Some(before) = self.ranges[..self.count].iter_mut().find(|before| before.end == range.start) {
            before.end = range.end;
        } else if self.count < MOST_RANGES {
            self.ranges[self.count] = range;
            self.count += 1;
        }
    }

    /// Takes a range out, wherever it overlaps.
    pub fn remove(&mut self, taken: Range) {
        let before = core::mem::take(self);
        for range in before.iter() {
            self.add(Range { start: range.start, end: range.end.min(taken.start) });
            self.add(Range { start: range.start.max(taken.end), end: range.end });
        }
    }

    /// The ranges.
    pub fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.ranges[..self.count].iter().copied()
    }

    /// How much it is, in bytes.
    pub fn bytes(&self) -> usize {
        self.iter().map(Range::bytes).sum()
    }

    /// The largest one.
    pub fn largest(&self) -> Option<Range> {
        self.iter().max_by_key(|range| range.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::{Free, Range};

    fn range(start: usize, end: usize) -> Range {
        Range { start, end }
    }

    #[test]
    fn what_is_taken_out_splits_what_is_left() {
        let mut free = Free::new();
        free.add(range(0, 100));
        free.remove(range(20, 30));
        free.remove(range(90, 200));
        assert_eq!(free.iter().collect::<Vec<_>>(), [range(0, 20), range(30, 90)]);
        assert_eq!(free.largest(), Some(range(30, 90)));
    }

    #[test]
    fn nodes_that_follow_each_other_are_one() {
        let mut free = Free::new();
        free.add(range(0, 10));
        free.add(range(20, 30));
        free.add(range(10, 15));
        assert_eq!(free.iter().collect::<Vec<_>>(), [range(0, 15), range(20, 30)]);
    }

    #[test]
    fn taking_everything_leaves_nothing() {
        let mut free = Free::new();
        free.add(range(10, 20));
        free.remove(range(0, 30));
        assert_eq!(free.largest(), None);
    }

    #[test]
    fn rounding_keeps_inside_or_covers() {
        assert_eq!(range(5, 19).inward(4), range(8, 16));
        assert_eq!(range(5, 19).outward(4), range(4, 20));
        assert_eq!(range(5, 6).inward(4).bytes(), 0);
    }
}
