//! How numbers are spread: so many between each power of two and the next, and what so many percent are below.

/// Numbers that were counted.
#[derive(Debug, Default, Clone)]
pub struct Spread {
    all: Vec<u64>,
    is_sorted: bool,
}

impl Spread {
    /// Takes one more.
    pub fn take(&mut self, number: u64) {
        self.all.push(number);
        self.is_sorted = false;
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// To be called before the questions below.
    pub fn sort(&mut self) {
        self.all.sort_unstable();
        self.is_sorted = true;
    }

    /// What this share of all is at most, in thousandths; 0 if there are none.
    pub fn at(&self, thousandths: usize) -> u64 {
        debug_assert!(self.is_sorted || self.all.is_empty(), "nothing is where it belongs");
        let Some(last) = self.all.len().checked_sub(1) else { return 0 };
        self.all[(self.all.len() * thousandths).div_ceil(1_000).saturating_sub(1).min(last)]
    }

    /// The greatest.
    pub fn most(&self) -> u64 {
        self.at(1_000)
    }

    /// Those between each power of two and the next, from the least to the greatest that there are: the lower bound of each, and how many.
    pub fn by_powers(&self) -> Vec<(u64, usize)> {
        let power = |number: u64| u64::BITS - number.leading_zeros();
        let mut counts = [0_usize; 65];
        self.all.iter().for_each(|number| counts[power(*number) as usize] += 1);
        let Some(first) = counts.iter().position(|count| *count > 0) else { return Vec::new() };
        let last = counts.iter().rposition(|count| *count > 0).unwrap_or(first);
        (first..=last).map(|power| (if power == 0 { 0 } else { 1 << (power - 1) }, counts[power])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn shares_and_powers() {
        let mut spread = Spread::default();
        assert_eq!((spread.at(500), spread.by_powers()), (0, vec![]));
        (1..=1_000).for_each(|number| spread.take(number));
        spread.sort();
        assert_eq!((spread.at(500), spread.at(990), spread.most()), (500, 990, 1_000));
        let powers = spread.by_powers();
        assert_eq!((powers[0], powers[1], powers[9], powers.len()), ((1, 1), (2, 2), (512, 489), 10));
        let mut few = Spread::default();
        [0, 0, 9].into_iter().for_each(|number| few.take(number));
        few.sort();
        assert_eq!(few.by_powers(), [(0, 2), (1, 0), (2, 0), (4, 0), (8, 1)]);
        assert_eq!((few.at(1), few.at(999)), (0, 9));
    }
}
