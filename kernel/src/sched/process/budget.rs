//! What a CPU share has left: a rule over numbers. Who asks, and what becomes of those for whom nothing is left, is in `run/aside.rs`.
//!
//! In each period there is so much to be used. What a turn took beyond that is taken off the periods that follow, so over any long time
//! no more is used than there was; what was not used in a period is gone. All times are in clock ticks.

/// What a share has left.
pub struct Budget {
    each: u64,
    period: u64,
    /// When the period began in which it was last looked at.
    began: u64,
    /// How much of it was used, with what earlier ones have used of it.
    used: u64,
}

impl Budget {
    /// So much in each period, of which the first begins at `now`. Neither is nothing.
    pub fn new(each: u64, period: u64, now: u64) -> Self {
        Self { each: each.max(1), period: period.max(1), began: now, used: 0 }
    }

    /// How much is left at `now`; nothing is `None`.
    pub fn left(&mut self, now: u64) -> Option<u64> {
        self.go_on(now);
        self.each.checked_sub(self.used).filter(|&left| left > 0)
    }

    /// A turn that ends at `now` has taken so much. How much is used of this period.
    pub fn charge(&mut self, ticks: u64, now: u64) -> u64 {
        self.go_on(now);
        self.used = self.used.saturating_add(ticks);
        self.used
    }

    /// When the next period begins: there may be something left then.
    pub fn next(&self) -> u64 {
        self.began.saturating_add(self.period)
    }

    /// Comes to the period that `now` is in.
    fn go_on(&mut self, now: u64) {
        let over = now.saturating_sub(self.began) / self.period;
        self.began += over * self.period;
        self.used = self.used.saturating_sub(over.saturating_mul(self.each));
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;
    use crate::random::Random;

    #[test]
    fn what_is_left_is_used_up_and_comes_back() {
        let mut budget = Budget::new(20, 100, 1000);
        assert_eq!(budget.left(1000), Some(20));
        assert_eq!(budget.charge(15, 1015), 15);
        assert_eq!(budget.left(1015), Some(5));
        assert_eq!(budget.charge(5, 1020), 20);
        assert_eq!((budget.left(1020), budget.next()), (None, 1100));
        assert_eq!(budget.left(1099), None);
        assert_eq!(budget.left(1100), Some(20));
    }

    #[test]
    fn what_was_not_used_is_gone_and_a_debt_is_not() {
        let mut budget = Budget::new(20, 100, 0);
        assert_eq!(budget.left(10_000), Some(20));
        budget.charge(65, 10_065);
        // Three periods' worth are used up: there are 15 left in the fourth.
        assert_eq!((budget.left(10_065), budget.next()), (None, 10_100));
        assert_eq!(budget.left(10_299), None);
        assert_eq!(budget.left(10_300), Some(15));
    }

    #[test]
    fn there_is_something_left_after_as_many_periods_as_were_used() {
        let random = Random::new(7, 0);
        for _ in 0..2000 {
            let each = 1 + random.below(50) as u64;
            let mut budget = Budget::new(each, each + random.below(100) as u64, 0);
            let mut now = 0;
            for _ in 0..20 {
                now += random.below(300) as u64;
                budget.charge(random.below(400) as u64, now);
                if budget.left(now).is_none() {
                    assert!(budget.next() > now, "the next period has begun");
                    let periods = budget.used / each;
                    let then = budget.next() + (periods - 1) * budget.period;
                    assert!(budget.left(then - 1).is_none(), "something is left before");
                    assert!(budget.left(then).is_some(), "nothing is left then");
                    now = then;
                }
            }
        }
    }

    /// Who takes a turn only when something is left, and each turn no more than `most` longer than what was, uses no more than what
    /// all periods give, and that.
    #[test]
    fn no_more_is_used_than_there_was() {
        let random = Random::new(3, 0);
        for _ in 0..500 {
            let (each, period, most) = (1 + random.below(50) as u64, 100, random.below(200) as u64);
            let (mut budget, mut now, mut used) = (Budget::new(each, period, 0), 0, 0);
            for _ in 0..200 {
                let Some(left) = budget.left(now) else {
                    now = budget.next();
                    continue;
                };
                let turn = 1 + random.below((left + most) as usize) as u64;
                now += turn;
                used += turn;
                budget.charge(turn, now);
                let given = (now / period + 1) * each;
                assert!(used <= given + most, "{used} used of {given}, with {most} beyond");
                now += random.below(30) as u64;
            }
        }
    }

    #[test]
    fn no_number_is_too_large() {
        let mut budget = Budget::new(u64::MAX, u64::MAX, 0);
        assert_eq!(budget.charge(u64::MAX, u64::MAX - 1), u64::MAX);
        assert_eq!(budget.left(u64::MAX - 1), None);
        let _ = budget.next();
        let mut least = Budget::new(0, 0, 0);
        assert_eq!(least.left(u64::MAX), Some(1));
        least.charge(u64::MAX, u64::MAX);
        assert_eq!((least.left(u64::MAX), least.next()), (None, u64::MAX));
    }
}
