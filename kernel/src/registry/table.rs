//! The entries: which name stands for which address.
//!
//! They are in lists by the hash of their names, each behind a lock. Under it an entry is linked or unlinked, and an address is
//! copied; memory is taken and given back, and addresses are dropped, outside it. One whose holder has ended is taken out by the
//! next one that registers in the same list, or that looks for that name.

use alloc::boxed::Box;
use core::any::{TypeId, type_name};
use core::fmt;
use core::ptr::{self, NonNull};

use spin::Once;

use super::name::{MOST_BYTES, Name};
use super::named::Named;
use super::named::sealed::Holder;
use crate::actor::note_names;
use crate::mem;
use crate::sync::{SpinLock, set_once};

/// A power of two.
const LISTS: usize = 64;

/// What an entry of any type begins with.
#[repr(C)]
struct Entry {
    next: *mut Entry,
    name: Name,
    address_type: TypeId,
    lives: unsafe fn(NonNull<Entry>) -> bool,
    free: unsafe fn(NonNull<Entry>),
    number: unsafe fn(NonNull<Entry>) -> Option<usize>,
    holder: unsafe fn(NonNull<Entry>) -> Option<Holder>,
}

#[repr(C)]
struct Full<A> {
    entry: Entry,
    address: A,
}

struct First(*mut Entry);

// SAFETY: what is linked is used under the list's lock, from whatever core; addresses may be used and dropped on any.
unsafe impl Send for First {}

static TABLE: [SpinLock<First>; LISTS] = [const { SpinLock::new(First(ptr::null_mut())) }; LISTS];

/// How a name and its holder are found, once there is a name. So an image in which nobody registers has none of that, though the serial
/// commands ask for it.
static USED: Once<Used> = Once::new();

struct Used {
    name_of: fn(usize) -> Option<Name>,
    kill: fn(&str) -> Result<(), NotKilled>,
}

/// Why a name was not registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RegisterError {
    /// It belongs to somebody who lives.
    Taken {
        /// The type of that one's address, as the compiler names it.
        by: &'static str,
        /// The number of that one: [`ProcessRef::id`](crate::sched::ProcessRef::id) or [`ActorInfo::id`](crate::actor::ActorInfo). `None`
        /// for a mailbox that nobody has received from.
        holder: Option<usize>,
    },
    /// A name has 1 to 47 bytes.
    Unfit,
    /// Who is to have it has ended already.
    Ended,
    /// There is no memory for it.
    OutOfMemory,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { by, holder: Some(holder) } => {
                write!(f, "the name is taken by {holder:x}, with an address of type {by}")
            }
            Self::Taken { by, holder: None } => write!(f, "the name is taken by an address of type {by}"),
            Self::Unfit => write!(f, "a name has 1 to {MOST_BYTES} bytes"),
            Self::Ended => f.write_str("who is to have the name has ended"),
            Self::OutOfMemory => f.write_str("there is no memory for the name"),
        }
    }
}

impl core::error::Error for RegisterError {}

/// Why nobody was killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotKilled {
    /// Nobody has the name, or whoever has it never received.
    Nobody,
    /// There is no memory for it.
    OutOfMemory,
}

impl fmt::Display for NotKilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nobody => "nobody has that name",
            Self::OutOfMemory => "there is no memory for it",
        })
    }
}

impl core::error::Error for NotKilled {}

/// Why nobody was found under a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotFound {
    /// Nobody has it, or who had it has ended.
    Nobody,
    /// It stands for an address of another type.
    OtherType {
        /// Of which.
        registered: &'static str,
        /// Which was expected.
        expected: &'static str,
    },
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("nobody has that name"),
            Self::OtherType { registered, expected } => {
                write!(f, "the name stands for an address of type {registered}, and {expected} was expected")
            }
        }
    }
}

impl core::error::Error for NotFound {}

fn list_of(name: &str) -> &'static SpinLock<First> {
    // FNV-1a: names are short.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    &TABLE[(hash >> 32) as usize % LISTS]
}

/// # Safety
/// An entry of a `Full<A>`, which is alive.
unsafe fn lives<A: Named>(entry: NonNull<Entry>) -> bool {
    // SAFETY: by contract.
    unsafe { entry.cast::<Full<A>>().as_ref() }.address.lives()
}

/// # Safety
/// An entry of a boxed `Full<A>`, which the caller gives up.
unsafe fn free<A: Named>(entry: NonNull<Entry>) {
    // SAFETY: by contract.
    drop(unsafe { Box::from_raw(entry.cast::<Full<A>>().as_ptr()) });
}

/// # Safety
/// As [`lives`].
unsafe fn number<A: Named>(entry: NonNull<Entry>) -> Option<usize> {
    // SAFETY: by contract.
    unsafe { entry.cast::<Full<A>>().as_ref() }.address.number()
}

/// # Safety
/// As [`lives`].
unsafe fn holder<A: Named>(entry: NonNull<Entry>) -> Option<Holder> {
    // SAFETY: by contract.
    unsafe { entry.cast::<Full<A>>().as_ref() }.address.holder()
}

/// Takes out all entries that `goes` names; they are linked, and the caller's.
fn take_out(first: &mut First, mut goes: impl FnMut(NonNull<Entry>) -> bool) -> *mut Entry {
    let (mut taken, mut link): (*mut Entry, *mut *mut Entry) = (ptr::null_mut(), &mut first.0);
    // SAFETY: under the lock; what is linked is alive.
    unsafe {
        while let Some(mut entry) = NonNull::new(*link) {
            if goes(entry) {
                *link = entry.as_ref().next;
                entry.as_mut().next = taken;
                taken = entry.as_ptr();
            } else {
                link = &raw mut (*entry.as_ptr()).next;
            }
        }
    }
    taken
}

/// Frees what was taken out. Whether there was anything.
fn free_all(mut taken: *mut Entry) -> bool {
    let any = !taken.is_null();
    while let Some(entry) = NonNull::new(taken) {
        // SAFETY: taken out of its list, so it is the caller's; its link is read before.
        unsafe {
            taken = entry.as_ref().next;
            (entry.as_ref().free)(entry);
        }
    }
    any
}

/// # Safety
/// Under the list's lock.
unsafe fn is_dead(entry: NonNull<Entry>) -> bool {
    // SAFETY: by contract it is alive, and the function its own.
    unsafe { !(entry.as_ref().lives)(entry) }
}

/// Gives an address a name, until its holder has ended, or [`unregister`].
///
/// # Errors
/// [`RegisterError`] says which; a name that is taken stays whose it is.
pub fn register<A: Named>(name: &str, address: A) -> Result<(), RegisterError> {
    let kept = Name::new(name, type_name::<A>()).ok_or(RegisterError::Unfit)?;
    if !address.lives() {
        return Err(RegisterError::Ended);
    }
    let entry = Entry {
        next: ptr::null_mut(),
        name: kept,
        address_type: TypeId::of::<A>(),
        lives: lives::<A>,
        free: free::<A>,
        number: number::<A>,
        holder: holder::<A>,
    };
    let full = mem::kernel_box(Full { entry, address }).map_err(|_| RegisterError::OutOfMemory)?;
    set_once(&USED, || Used { name_of: find_name_of, kill: kill_holder });
    note_names(|number, say| say(find_name_of(number).as_deref().unwrap_or("")));
    let mut first = list_of(name).lock();
    // SAFETY: under the lock.
    let dead = take_out(&mut first, |entry| unsafe { is_dead(entry) });
    let taken = entry_of(&first, name).map(|entry| {
        // SAFETY: under the lock it is alive, and the function its own.
        let (name, holder) = unsafe { (&entry.as_ref().name, (entry.as_ref().number)(entry)) };
        RegisterError::Taken { by: name.type_name(), holder }
    });
    let full = match taken {
        None => {
            let full = Box::into_raw(full);
            // SAFETY: just made; from here on the list's.
            unsafe { (*full).entry.next = first.0 };
            first.0 = full.cast();
            None
        }
        Some(_) => Some(full),
    };
    drop(first);
    drop(full);
    free_all(dead);
    taken.map_or(Ok(()), Err)
}

fn entry_of(first: &First, name: &str) -> Option<NonNull<Entry>> {
    let mut next = first.0;
    while let Some(entry) = NonNull::new(next) {
        // SAFETY: the caller has the lock, for it has the list; what is linked is alive.
        let known = unsafe { entry.as_ref() };
        if &*known.name == name {
            return Some(entry);
        }
        next = known.next;
    }
    None
}

/// Who has that name.
///
/// # Errors
/// When nobody has it, or its address is of another type.
pub fn find<A: Named>(name: &str) -> Result<A, NotFound> {
    let first = list_of(name).lock();
    let entry = entry_of(&first, name).ok_or(NotFound::Nobody)?;
    // SAFETY: under the lock it is alive; its type is compared before the address is looked at.
    unsafe {
        if is_dead(entry) {
            return Err(NotFound::Nobody);
        }
        let known = entry.as_ref();
        if known.address_type != TypeId::of::<A>() {
            let (registered, expected) = (known.name.type_name(), type_name::<A>());
            return Err(NotFound::OtherType { registered, expected });
        }
        Ok(entry.cast::<Full<A>>().as_ref().address.clone())
    }
}

/// Takes a name back, whoever has it. Whether anybody had it who lived.
pub fn unregister(name: &str) -> bool {
    let mut was_alive = false;
    let taken = take_out(&mut list_of(name).lock(), |entry| {
        // SAFETY: under the lock.
        let (is_it, lives) = unsafe { (&*entry.as_ref().name == name, !is_dead(entry)) };
        was_alive |= is_it && lives;
        is_it
    });
    free_all(taken);
    was_alive
}

/// Kills who has that name: the actor, the supervisor, or the process that has received last from the mailbox. It goes as by
/// [`Addr::kill`](crate::actor::Addr::kill) and [`ProcessRef::kill`](crate::sched::ProcessRef::kill).
///
/// ```
/// # use magpie::sched;
/// use magpie::actor::{Actor, Config, Executor};
/// use magpie::registry::{self, NotKilled};
/// struct Clerk;
/// impl Actor for Clerk {}
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default())?;
/// let clerk = executor.handle().spawn(Clerk)?;
/// registry::register("doc/clerk", clerk)?;
/// registry::kill("doc/clerk")?;
/// while clerk.is_alive() {
///     sched::yield_now().await;
/// }
/// assert_eq!(registry::kill("doc/clerk"), Err(NotKilled::Nobody));
/// # executor.stop().await;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
///
/// # Errors
/// [`NotKilled`]; then nothing has happened.
pub fn kill(name: &str) -> Result<(), NotKilled> {
    USED.get().map_or(Err(NotKilled::Nobody), |used| (used.kill)(name))
}

fn kill_holder(name: &str) -> Result<(), NotKilled> {
    let holder = {
        let first = list_of(name).lock();
        let entry = entry_of(&first, name).ok_or(NotKilled::Nobody)?;
        // SAFETY: under the lock it is alive.
        unsafe { if is_dead(entry) { None } else { (entry.as_ref().holder)(entry) } }
    };
    match holder.ok_or(NotKilled::Nobody)? {
        Holder::Process(process) => process.kill(),
        Holder::Actor(actor, kill) => kill(actor).map_err(|_| NotKilled::OutOfMemory)?,
    }
    Ok(())
}

/// The name of a process or an actor, by its number ([`ProcessRef::id`](crate::sched::ProcessRef::id),
/// [`ActorInfo::id`](crate::actor::ActorInfo)); one of them, if it has several. A mailbox's name is that of the process which has
/// received from it last. Looks through all names.
///
/// ```
/// # use magpie::sched;
/// use magpie::channel::ProcessMailbox;
/// use magpie::registry;
/// # sched::run_on_threads(2, 1, async {
/// let mut orders = ProcessMailbox::<u32>::new(10)?;
/// let address = orders.address();
/// registry::register("doc/named", address.clone())?;
/// address.send(1)?;
/// orders.receive().await;
/// let own = sched::current_process().ok_or("no process runs")?;
/// assert_eq!(registry::name_of(own.id()).as_deref(), Some("doc/named"));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub fn name_of(number: usize) -> Option<Name> {
    USED.get().and_then(|used| (used.name_of)(number))
}

fn find_name_of(number: usize) -> Option<Name> {
    TABLE.iter().find_map(|list| {
        let first = list.lock();
        let mut next = first.0;
        while let Some(entry) = NonNull::new(next) {
            // SAFETY: under the lock; what is linked is alive.
            unsafe {
                if (entry.as_ref().number)(entry) == Some(number) && !is_dead(entry) {
                    return Some(entry.as_ref().name);
                }
                next = entry.as_ref().next;
            }
        }
        None
    })
}

/// The names of those who live, in no order. One that comes or goes meanwhile may be left out, or its neighbour.
pub fn names() -> impl Iterator<Item = Name> {
    (0..LISTS).flat_map(|list| (0..).map_while(move |position| nth(list, position)))
}

/// The entry of a list after so many others who live.
fn nth(list: usize, mut position: usize) -> Option<Name> {
    let first = TABLE[list].lock();
    let mut next = first.0;
    while let Some(entry) = NonNull::new(next) {
        // SAFETY: under the lock; what is linked is alive.
        unsafe {
            if !is_dead(entry) {
                if position == 0 {
                    return Some(entry.as_ref().name);
                }
                position -= 1;
            }
            next = entry.as_ref().next;
        }
    }
    None
}
