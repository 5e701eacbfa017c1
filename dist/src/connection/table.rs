//! A table with a limit: keys found by their hash, memory taken as it grows, and an error where there is none.

use alloc::vec::Vec;

use super::error::SendError;

/// What things are found by.
pub trait Key: Copy + Eq {
    /// A number that differs for most keys that differ.
    fn hash(&self) -> u64;
}

impl Key for u64 {
    fn hash(&self) -> u64 {
        *self
    }
}

/// Open addressing: what does not find its place free is in the next that was. At most half of the places are taken.
#[derive(Debug)]
pub struct Table<K, V> {
    places: Vec<Option<(K, V)>>,
    count: usize,
    limit: usize,
}

impl<K: Key, V> Table<K, V> {
    pub const fn new(limit: usize) -> Self {
        Self { places: Vec::new(), count: 0, limit }
    }

    pub const fn len(&self) -> usize {
        self.count
    }

    pub fn get(&self, key: K) -> Option<&V> {
        let place = self.find(key)?;
        self.places.get(place)?.as_ref().map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let place = self.find(key)?;
        self.places.get_mut(place)?.as_mut().map(|(_, value)| value)
    }

    /// Makes sure that one more has room.
    pub fn reserve(&mut self) -> Result<(), SendError> {
        if self.count >= self.limit {
            return Err(SendError::TooMany);
        }
        if (self.count + 1) * 2 <= self.places.len() {
            return Ok(());
        }
        let mut places = Vec::new();
        let count = (self.places.len() * 2).max(16);
        places.try_reserve_exact(count).map_err(|_| SendError::OutOfMemory)?;
        places.resize_with(count, || None);
        let old = core::mem::replace(&mut self.places, places);
        self.count = 0;
        old.into_iter().flatten().for_each(|(key, value)| self.put(key, value));
        Ok(())
    }

    /// Puts in what has a key of its own.
    pub fn insert(&mut self, key: K, value: V) -> Result<(), SendError> {
        self.reserve()?;
        self.put(key, value);
        Ok(())
    }

    pub fn remove(&mut self, key: K) -> Option<V> {
        let place = self.find(key)?;
        self.take(place).map(|(_, value)| value)
    }

    /// Takes out any one.
    pub fn pop(&mut self) -> Option<(K, V)> {
        let place = self.places.iter().rposition(Option::is_some)?;
        self.take(place)
    }

    /// The first from this place on of which this is so, with its place. When it was taken out, the next is looked for from there.
    pub fn next_from(&self, place: usize, mut is: impl FnMut(&K, &V) -> bool) -> Option<(usize, K)> {
        let rest = self.places.get(place..)?;
        let found = rest.iter().position(|it| it.as_ref().is_some_and(|(key, value)| is(key, value)))?;
        rest[found].as_ref().map(|(key, _)| (place + found, *key))
    }

    /// Gives back what an empty table has no use for.
    pub fn clear(&mut self) {
        self.places = Vec::new();
        self.count = 0;
    }

    fn home(&self, key: K) -> usize {
        // The high bits of the product depend on all bits of the hash; there are powers of two of places.
        let mixed = key.hash().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed >> 32) as usize) & (self.places.len() - 1)
    }

    fn find(&self, key: K) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let mut place = self.home(key);
        while let Some((found, _)) = &self.places[place] {
            if *found == key {
                return Some(place);
            }
            place = (place + 1) & (self.places.len() - 1);
        }
        None
    }

    fn put(&mut self, key: K, value: V) {
        let mut place = self.home(key);
        while self.places[place].is_some() {
            place = (place + 1) & (self.places.len() - 1);
        }
        self.places[place] = Some((key, value));
        self.count += 1;
    }

    /// Empties a place, and moves up what was only behind it because it was taken.
    fn take(&mut self, place: usize) -> Option<(K, V)> {
        let taken = self.places.get_mut(place)?.take()?;
        self.count -= 1;
        let mask = self.places.len() - 1;
        let mut hole = place;
        let mut next = (place + 1) & mask;
        while let Some((key, _)) = &self.places[next] {
            let home = self.home(*key);
            // Whether its home is not between the hole and where it is.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.places.swap(hole, next);
                hole = next;
            }
            next = (next + 1) & mask;
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Table};
    use crate::connection::SendError;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    /// Keys that meet.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Bad(u64);
    impl Key for Bad {
        fn hash(&self) -> u64 {
            self.0 % 3
        }
    }

    fn as_a_map<K: Key + core::fmt::Debug>(key: fn(u64) -> K) {
        let mut chance = 12345u64;
        let mut next = || {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            chance >> 33
        };
        let mut table = Table::new(40);
        let mut map = BTreeMap::new();
        for _ in 0..20_000 {
            let number = next() % 60;
            match next() % 3 {
                0 if !map.contains_key(&number) => match table.insert(key(number), number) {
                    Ok(()) => drop(map.insert(number, number)),
                    Err(error) => assert_eq!((error, map.len()), (SendError::TooMany, 40)),
                },
                1 => assert_eq!(table.remove(key(number)), map.remove(&number)),
                _ => assert_eq!(table.get(key(number)), map.get(&number)),
            }
            assert_eq!(table.len(), map.len());
        }
        // Every second is taken out on a walk.
        let (mut place, mut taken) = (0, Vec::new());
        while let Some((found, key)) = table.next_from(place, |_, value| value % 2 == 0) {
            taken.extend(table.remove(key));
            place = found;
        }
        taken.sort_unstable();
        assert_eq!(taken, map.keys().copied().filter(|value| value % 2 == 0).collect::<Vec<_>>());
        while let Some((_, value)) = table.pop() {
            assert!(map.remove(&value).is_some() && value % 2 == 1);
        }
        assert!(map.keys().all(|value| value % 2 == 0));
    }

    #[test]
    fn it_holds_what_a_map_would() {
        as_a_map(|number| number);
        as_a_map(Bad);
    }
}
