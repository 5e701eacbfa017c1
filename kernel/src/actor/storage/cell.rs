//! Cells: where actors live.
//!
//! A cell is a word and the actor's state. Cells of one type of actor share *chunks*, aligned to their size,
//! so that the chunk's header, found by masking, says how to drop what is in a cell. Chunks are never given
//! back: the memory of a cell stays a cell of that type for ever, and so an old address may always read the
//! word. States that are too large for a chunk are boxed.

use alloc::alloc::{Layout, alloc_zeroed};
use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, align_of, needs_drop, size_of};
use core::ops::Deref;
use core::ptr::{self, NonNull};

use super::word::Word;
use super::word_cell::WordCell;
use crate::arch::atomic::AtomicPtr;
use crate::mem::{self, OutOfMemory, orphans};
use crate::queue::{AppendOnly, Linked};
use crate::sync::PaidBy;
use crate::watch::Watched;

/// Bytes of a chunk, and its alignment.
const CHUNK_BYTES: usize = 4096;
/// A free cell has room for a link behind its word.
const LEAST_CELL_BYTES: usize = size_of::<CellHeader>() + size_of::<usize>();
/// States up to this size live in the cell itself.
const LARGEST_INLINE_BYTES: usize = 1000;

/// The part of a cell that does not depend on the actor's type.
#[repr(C)]
pub(crate) struct CellHeader {
    word: WordCell,
}

impl CellHeader {
    /// The word. Who sees an actor attached sees its state as it was left.
    #[inline(always)]
    pub(crate) fn word(&self) -> Word {
        Word::from_bits(self.word.get())
    }

    /// The word, for who only wants to know whether the actor lives.
    #[inline(always)]
    pub(crate) fn word_relaxed(&self) -> Word {
        Word::from_bits(self.word.peek())
    }

    /// Exchanges the word, if it is `from`.
    pub(crate) fn claim(&self, from: Word, to: Word) -> bool {
        self.word.claim(from.bits(), to.bits())
    }

    /// Changes the word.
    #[inline(always)]
    pub(crate) fn set_word(&self, word: Word) {
        self.word.set(word.bits());
    }

    /// The word itself, for the protocol of detaching.
    pub(crate) fn word_cell(&self) -> &WordCell {
        &self.word
    }
}

/// Where a cell is. Cells are never unmapped, so its header may be looked at by anybody, at any time; what else is in it, its
/// word says. Not `Send`, because some who have one must stay where they are: the others say so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct CellRef(NonNull<CellHeader>);

impl CellRef {
    /// # Safety
    /// A cell begins there, in a chunk or in a static, and the pointer may be used for all of it.
    #[inline(always)]
    pub(crate) unsafe fn new(cell: NonNull<CellHeader>) -> Self {
        Self(cell)
    }

    /// The pointer.
    #[inline(always)]
    pub(crate) fn pointer(self) -> NonNull<CellHeader> {
        self.0
    }

    /// The pointer, to something else that lies there.
    #[inline(always)]
    pub(crate) fn cast<T>(self) -> NonNull<T> {
        self.0.cast()
    }
}

impl Deref for CellRef {
    type Target = CellHeader;

    #[inline(always)]
    fn deref(&self) -> &CellHeader {
        // SAFETY: cells are never unmapped.
        unsafe { self.0.as_ref() }
    }
}

#[repr(C)]
pub(super) struct Cell<A> {
    header: CellHeader,
    state: A,
}

impl<A> Cell<UnsafeCell<MaybeUninit<A>>> {
    /// A cell of the user's own, as if so many actors had ended in it.
    pub(super) const fn free_static(generation: u32) -> Self {
        let word = WordCell::new(Word::free_static(generation).bits());
        Self { header: CellHeader { word }, state: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}

/// What storage must know of a type of actor, beside how large it is.
pub(crate) trait Stored: Sized + 'static {
    /// Does what the actor does when it ends.
    ///
    /// # Safety
    /// The cell is of this kind and holds a state, which nobody else uses; `word` is the actor's while it was attached.
    unsafe fn stopped(cell: CellRef, word: Word);
}

/// How actors of one type are kept; one static for each type, compared by address.
pub(crate) struct Kind {
    /// The type's name.
    pub name: fn() -> &'static str,
    /// See [`Stored::stopped`].
    pub stopped: unsafe fn(CellRef, Word),
    /// Drops the state in a cell; `None` if there is nothing to do for that.
    pub drop_state: Option<unsafe fn(CellRef)>,
    /// Gives back the memory of a state that is not to be dropped, or not again. Returns how many bytes that were, beside
    /// the cell.
    pub abandon_state: unsafe fn(CellRef, Remains) -> usize,
    cell_bytes: usize,
    align: usize,
}

impl Kind {
    /// Bytes of a cell of this kind.
    pub(crate) fn cell_bytes(&self) -> usize {
        self.cell_bytes.max(LEAST_CELL_BYTES).next_multiple_of(self.align.max(8))
    }
}

/// The kind of `A`.
pub(crate) const fn kind_of<A: Stored>() -> &'static Kind {
    struct Of<A>(core::marker::PhantomData<A>);
    impl<A: Stored> Of<A> {
        const KIND: Kind = Kind {
            name: core::any::type_name::<A>,
            stopped: A::stopped,
            drop_state: if needs_drop::<A>() || is_boxed::<A>() { Some(drop_state::<A>) } else { None },
            abandon_state: abandon_state::<A>,
            cell_bytes: if is_boxed::<A>() { size_of::<Cell<Box<A>>>() } else { size_of::<Cell<A>>() },
            align: if is_boxed::<A>() { align_of::<Cell<Box<A>>>() } else { align_of::<Cell<A>>() },
        };
    }
    &Of::<A>::KIND
}

/// The kind of what is in a cell. `word` is any word that the cell has had.
pub(crate) fn kind(cell: CellRef, word: Word) -> &'static Kind {
    if word.is_static() {
        // SAFETY: a static cell stands behind its kind, see `StaticActor`.
        unsafe { cell.cast::<&'static Kind>().sub(1).read() }
    } else {
        // SAFETY: other cells lie in chunks, whose headers never change.
        unsafe { Chunk::of(cell).as_ref() }.kind
    }
}

/// Whether somebody may watch actors in the application's own storage.
static STATICS_WATCHED: Watched = Watched::new();

/// Whether somebody may watch an actor in the cell. `word` is any word that the cell has had.
#[inline(always)]
pub(crate) fn watched(cell: CellRef, word: Word) -> &'static Watched {
    if word.is_static() {
        return &STATICS_WATCHED;
    }
    // SAFETY: other cells lie in chunks, which are never freed; this is atomic.
    unsafe { &(*Chunk::of(cell).as_ptr()).watched }
}

/// Moves the state out of a cell.
///
/// # Safety
/// The cell is of kind `A`, holds a state, and is the caller's; the state is not used again.
pub(crate) unsafe fn take_state<A>(cell: CellRef) -> A {
    // SAFETY: by contract.
    unsafe {
        let state = if is_boxed::<A>() {
            *(&raw const (*cell.cast::<Cell<Box<A>>>().as_ptr()).state).read()
        } else {
            (&raw const (*cell.cast::<Cell<A>>().as_ptr()).state).read()
        };
        clear::<A>(cell);
        state
    }
}

/// Overwrites what is left of a state, or of the pointer to it: a free cell stays where it is, and to a collection what is in it
/// would seem to be in use.
///
/// # Safety
/// The cell is of kind `A`, and its state is gone.
#[inline(always)]
unsafe fn clear<A>(cell: CellRef) {
    // SAFETY: by contract; the place is the cell's.
    unsafe {
        if is_boxed::<A>() {
            (&raw mut (*cell.cast::<Cell<Box<A>>>().as_ptr()).state).write_bytes(0, 1);
        } else {
            (&raw mut (*cell.cast::<Cell<A>>().as_ptr()).state).write_bytes(0, 1);
        }
    }
}

pub(super) const fn is_boxed<A>() -> bool {
    size_of::<A>() > LARGEST_INLINE_BYTES || align_of::<A>() > 64
}

/// # Safety
/// The cell is of kind `A` and holds a state, which nobody else uses and which is not used again.
unsafe fn drop_state<A: 'static>(cell: CellRef) {
    // SAFETY: by contract.
    unsafe {
        if is_boxed::<A>() {
            ptr::drop_in_place(&raw mut (*cell.cast::<Cell<Box<A>>>().as_ptr()).state);
        } else {
            ptr::drop_in_place(&raw mut (*cell.cast::<Cell<A>>().as_ptr()).state);
        }
        clear::<A>(cell);
    }
}

/// What a crash left of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remains {
    /// All of it: a behaviour had it.
    Whole,
    /// Nobody knows how much: it was being dropped.
    HalfDropped,
}

/// The state is that of an actor that has crashed: it is noted, and memory that it had for itself is given back. A box that
/// was being dropped may have gone already, so that is only noted.
///
/// # Safety
/// The cell is of kind `A` and holds a state, which nobody else uses and which is not used again.
unsafe fn abandon_state<A: 'static>(cell: CellRef, remains: Remains) -> usize {
    // SAFETY: by contract, here and below.
    unsafe {
        if !is_boxed::<A>() {
            orphans::note_and_clear(state::<A>(cell).cast(), size_of::<A>());
            return 0;
        }
        let place = &raw mut (*cell.cast::<Cell<Box<MaybeUninit<A>>>>().as_ptr()).state;
        if remains == Remains::HalfDropped {
            orphans::note_and_clear(place.cast(), size_of::<Box<A>>());
            return 0;
        }
        orphans::note_and_clear(state::<A>(cell).cast(), size_of::<A>());
        // The box is the cell's, and a box of the same layout frees it without dropping the state.
        drop(place.read());
    }
    size_of::<A>()
}

/// The state in a cell.
///
/// # Safety
/// The cell is of kind `A` and holds a state.
#[inline(always)]
pub(crate) unsafe fn state<A>(cell: CellRef) -> *mut A {
    // SAFETY: by contract.
    unsafe {
        if is_boxed::<A>() {
            &raw mut *(*cell.cast::<Cell<Box<A>>>().as_ptr()).state
        } else {
            &raw mut (*cell.cast::<Cell<A>>().as_ptr()).state
        }
    }
}

/// Puts a state into a free cell. Gives it back if it must be boxed and there is no memory.
///
/// # Safety
/// The cell is free, of kind `A`, and the caller's.
#[inline(always)]
pub(crate) unsafe fn fill<A>(cell: CellRef, value: A) -> Result<(), (OutOfMemory, A)> {
    // SAFETY: by contract.
    unsafe {
        if is_boxed::<A>() {
            let boxed = mem::try_box(value)?;
            (&raw mut (*cell.cast::<Cell<Box<A>>>().as_ptr()).state).write(boxed);
        } else {
            (&raw mut (*cell.cast::<Cell<A>>().as_ptr()).state).write(value);
        }
    }
    Ok(())
}

/// The beginning of a chunk.
#[repr(C)]
pub(crate) struct Chunk {
    pub kind: &'static Kind,
    /// Whether somebody may watch an actor in it.
    watched: Watched,
    link: AtomicPtr<Chunk>,
    cells: u32,
    first: u32,
}

/// Every chunk there is, newest first; chunks are only added.
static CHUNKS: AppendOnly<Chunk> = AppendOnly::new();

// SAFETY: `link` is one field for life, used by nothing but the list.
unsafe impl Linked for Chunk {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

impl Chunk {
    /// A new chunk of free cells. `make` is handed the place of each, before anybody finds the chunk, and what it has returned for the one before, at
    /// first null; it writes the cell there, which begins with the header that it is handed. The last, and how many there are. All in one go, because
    /// the smallest cells are many, and whoever needs one has preemption disabled.
    #[inline(always)]
    pub(super) fn make<L>(
        kind: &'static Kind,
        make: impl Fn(*mut L, NonNull<CellHeader>, CellHeader) -> *mut L,
    ) -> Option<(*mut L, u32)> {
        let bytes = kind.cell_bytes();
        let first = size_of::<Self>().next_multiple_of(kind.align.max(16));
        let layout = Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES).ok()?;
        // Its cells serve whoever spawns next.
        let _nobody = PaidBy::nobody();
        // Zeroed, because its cells stay for ever, and some of them unused: whatever lay there would look like pointers of somebody who lives, and
        // keep what crashed code has left. (`mem::orphans`)
        // SAFETY: the size is not zero.
        let chunk = NonNull::new(unsafe { alloc_zeroed(layout) })?.cast::<Self>();
        let cells = (CHUNK_BYTES - first) / bytes;
        // SAFETY: fresh memory of a chunk's size and alignment.
        unsafe {
            chunk.write(Self {
                kind,
                watched: Watched::new(),
                link: AtomicPtr::new(ptr::null_mut()),
                cells: cells as u32,
                first: first as u32,
            });
        }
        let free = || CellHeader { word: WordCell::new(Word::UNUSED.bits()) };
        // SAFETY: all of these are in the chunk, or its end, because so many fit.
        let at = |index: usize| unsafe { chunk.byte_add(first + index * bytes) }.cast::<CellHeader>();
        let mut last = ptr::null_mut();
        let (mut place, end) = (at(0), at(cells & !1));
        // Two at a time, which takes little longer than one.
        while place != end {
            // SAFETY: as above.
            let [second, next] = unsafe { [place.byte_add(bytes), place.byte_add(2 * bytes)] };
            last = make(make(last, place, free()), second, free());
            place = next;
        }
        if !cells.is_multiple_of(2) {
            last = make(last, place, free());
        }
        // SAFETY: made just now, and never freed.
        unsafe { CHUNKS.push(chunk) };
        Some((last, cells as u32))
    }

    /// The chunk that a cell is in.
    pub(super) fn of(cell: CellRef) -> NonNull<Self> {
        let offset = cell.pointer().addr().get() & (CHUNK_BYTES - 1);
        // SAFETY: cells lie in chunks that are aligned to their size.
        unsafe { cell.pointer().byte_sub(offset).cast() }
    }

    /// The cells of a chunk. Not a method of a reference, which would reach no further than the header.
    pub(crate) fn cells(this: NonNull<Self>) -> impl Iterator<Item = CellRef> {
        // SAFETY: chunks are initialised when they are handed out, and never freed.
        let (kind, first, cells) = unsafe { (this.as_ref().kind, this.as_ref().first, this.as_ref().cells) };
        let bytes = kind.cell_bytes();
        // SAFETY: the offsets are those of `new`, inside the chunk.
        (0..cells as usize)
            .map(move |i| unsafe { CellRef::new(this.byte_add(first as usize + i * bytes).cast()) })
    }
}

/// Bytes of all chunks. They stay allocated: a core keeps free cells, and what it frees another may have made.
pub(crate) fn chunk_bytes() -> usize {
    all_chunks().count() * CHUNK_BYTES
}

/// Every chunk there is.
pub(crate) fn all_chunks() -> impl Iterator<Item = NonNull<Chunk>> {
    CHUNKS.iter()
}
