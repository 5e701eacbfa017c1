//! What is where in a queue that senders lock: what the assembly that appends to one and the vectors rely on. Whose queue it is, and what
//! it is for, is above.

/// Where the lock is: free while it is 0, held while it is 1.
pub const LOCK_AT: usize = 0;
/// Where the place is that the next word goes to, and behind it how far a sender may write without a second look: 0 where nothing waits, because
/// of a first message somebody must be told.
pub const PLACE_AT: usize = 8;
/// Where the number of messages that wait is, in four bytes: in the cache line of the lock and the place, because a sender reads it first.
pub const WAITING_AT: usize = 4;
