//! Segments: the buffers that envelopes lie in, chained when one is not enough.

use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use core::mem::size_of;
use core::ptr::{self, NonNull};

use super::envelope::{ALIGN, Envelope};
use crate::sync::{PaidBy, ReferenceCount};

/// The head of a buffer; the envelopes follow.
#[repr(C)]
pub(crate) struct Segment {
    /// The next one in its chain.
    pub next: *mut Segment,
    capacity_bytes: u32,
    /// Bytes in use; meaningful once the segment is no longer written to.
    used_bytes: u32,
    /// Who still reads it: the batch, and each suspended behaviour whose envelope lies in it.
    readers: ReferenceCount,
    /// Bytes in front of its mail, where it is not the first of its chain: they were delivered. Nothing is moved to their place, because that
    /// would take as long as there is mail, and a suspended behaviour may still read an envelope there.
    skipped_bytes: u32,
}

pub(crate) const HEADER_BYTES: usize = size_of::<Segment>();

impl Segment {
    fn layout(capacity_bytes: usize) -> Option<Layout> {
        Layout::from_size_align(HEADER_BYTES.checked_add(capacity_bytes)?, ALIGN.max(align_of::<Self>())).ok()
    }

    /// An empty segment, unless there is no memory for it.
    pub(crate) fn new(capacity_bytes: usize) -> Option<NonNull<Self>> {
        // Zeroed, because most of it is written to late or never: what others have left there would seem to be pointers to a
        // collection.
        let head = Self::head(u32::try_from(capacity_bytes).ok()?);
        // A mailbox's memory serves all who send to it.
        let _nobody = PaidBy::nobody();
        // SAFETY: the size is not zero.
        let segment = NonNull::new(unsafe { alloc_zeroed(Self::layout(capacity_bytes)?) })?.cast::<Self>();
        // SAFETY: fresh memory with room for the head.
        unsafe { segment.write(head) };
        Some(segment)
    }

    /// Of an empty segment.
    fn head(capacity_bytes: u32) -> Self {
        Self {
            next: ptr::null_mut(),
            capacity_bytes,
            used_bytes: 0,
            readers: ReferenceCount::new(1),
            skipped_bytes: 0,
        }
    }

    /// Makes memory that [`Self::new`] has given for `capacity_bytes`, and that was used for something else since, an empty segment
    /// again.
    ///
    /// # Safety
    /// It is the caller's alone.
    pub(crate) unsafe fn begin_anew(memory: NonNull<Self>, capacity_bytes: u32) {
        // SAFETY: by contract.
        unsafe { memory.write(Self::head(capacity_bytes)) };
    }

    /// Bytes of envelopes that fit.
    #[inline(always)]
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.capacity_bytes as usize
    }

    /// Bytes of envelopes in it, once it is no longer written to.
    #[inline(always)]
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes as usize
    }

    /// Where its envelopes begin.
    pub(crate) fn begin(this: NonNull<Self>) -> NonNull<u8> {
        // SAFETY: a segment's memory goes on after its head.
        unsafe { this.cast::<u8>().add(HEADER_BYTES) }
    }

    /// Where its mail begins, if it is not the first of its chain.
    pub(super) fn mail_begin(this: NonNull<Self>) -> NonNull<u8> {
        // SAFETY: the segment is alive, and its memory is that long.
        unsafe { Self::begin(this).add(this.as_ref().skipped_bytes as usize) }
    }

    /// Its mail begins at `head`, and others come in front of it in its chain.
    ///
    /// # Safety
    /// The mail is the caller's, and `head` is in the segment.
    pub(super) unsafe fn set_mail_begin(mut this: NonNull<Self>, head: NonNull<u8>) {
        let skipped = head.as_ptr() as usize - Self::begin(this).as_ptr() as usize;
        // SAFETY: by contract; those who read envelopes of it look at the count of readers alone. It fits, as the capacity does.
        unsafe { this.as_mut() }.skipped_bytes = skipped as u32;
    }

    /// It becomes the first of its chain: returns where its mail begins, which the caller keeps in mind from now on.
    ///
    /// # Safety
    /// The mail is the caller's.
    pub(crate) unsafe fn enter(mut this: NonNull<Self>) -> NonNull<u8> {
        let begin = Self::mail_begin(this);
        // SAFETY: as in `set_mail_begin`.
        unsafe { this.as_mut() }.skipped_bytes = 0;
        begin
    }

    /// Where the room for envelopes ends.
    pub(super) fn limit(this: NonNull<Self>) -> NonNull<u8> {
        // SAFETY: the segment is alive, and its memory is that long.
        unsafe { Self::begin(this).add(this.as_ref().capacity_bytes()) }
    }

    /// Where the envelopes in use end.
    ///
    /// # Safety
    /// The segment is alive, and no longer written to.
    pub(crate) unsafe fn used_end(this: NonNull<Self>) -> NonNull<u8> {
        // SAFETY: by contract; within the segment.
        unsafe { Self::begin(this).add(this.as_ref().used_bytes()) }
    }

    /// Its envelopes in use end there.
    pub(crate) fn set_end(&mut self, end: NonNull<u8>) {
        // It fits, as the capacity does.
        self.used_bytes =
            (end.as_ptr() as usize - Self::begin(NonNull::from(&*self)).as_ptr() as usize) as u32;
    }

    /// The last one of a chain that begins here.
    ///
    /// # Safety
    /// The chain is the caller's.
    pub(crate) unsafe fn last_of(this: NonNull<Self>) -> NonNull<Self> {
        let mut last = this;
        // SAFETY: by contract.
        while let Some(next) = NonNull::new(unsafe { last.as_ref().next }) {
            last = next;
        }
        last
    }

    /// One more reads it.
    pub(crate) fn share(&self) {
        self.readers.add();
    }

    /// Whether the caller is the only one who reads it.
    #[inline(always)]
    pub(crate) fn is_read_by_one(&self) -> bool {
        self.readers.is_one()
    }

    /// The caller reads it no more. Whether it was the last, who may reuse or free it.
    pub(crate) fn release(&self) -> bool {
        // The common case is one reader.
        if self.is_read_by_one() {
            return true;
        }
        self.readers.release()
    }

    /// Makes a segment that was released by its last reader as good as new.
    pub(crate) fn recycle(&mut self) {
        self.next = ptr::null_mut();
        self.used_bytes = 0;
        self.skipped_bytes = 0;
        self.readers = ReferenceCount::new(1);
    }

    /// Frees it.
    ///
    /// # Safety
    /// Nobody uses it any more, and its envelopes were delivered or dropped.
    pub(crate) unsafe fn free(this: NonNull<Self>) {
        // SAFETY: the segment is alive; it was allocated with this layout.
        unsafe {
            if let Some(layout) = Self::layout(this.as_ref().capacity_bytes()) {
                dealloc(this.as_ptr().cast(), layout);
            }
        }
    }
}

/// Frees a chain.
///
/// # Safety
/// The chain is the caller's, and everything in it was delivered, dropped or moved away.
pub(crate) unsafe fn free_chain(first: NonNull<Segment>) {
    let mut next = Some(first);
    while let Some(segment) = next {
        // SAFETY: by contract.
        unsafe {
            next = NonNull::new(segment.as_ref().next);
            Segment::free(segment);
        }
    }
}

/// How many envelopes there are in a chain, from `head` in its first segment on. It takes as long as there are many.
///
/// # Safety
/// The chain is the caller's, sealed, and nothing in it was delivered.
pub(crate) unsafe fn count_chain(first: NonNull<Segment>, head: NonNull<u8>) -> u32 {
    let mut count = 0;
    let mut next = Some((first, head));
    while let Some((segment, mut position)) = next {
        // SAFETY: by contract; measuring changes nothing.
        unsafe {
            let end = Segment::used_end(segment);
            while position < end {
                position = position.add(Envelope::measure(position.cast()));
                count += 1;
            }
            next = NonNull::new(segment.as_ref().next).map(|next| (next, Segment::mail_begin(next)));
        }
    }
    count
}

/// How many envelopes there are at most in so many bytes.
pub(super) fn most_in(bytes: usize) -> u32 {
    (bytes / size_of::<Envelope>()) as u32
}

/// How many envelopes there are in a chain, from `head` in its first segment on: exactly if they are few. Of many, how many of
/// the shortest would fit, because counting takes as long as there are envelopes.
///
/// # Safety
/// The chain is the caller's, sealed, and nothing in it was delivered.
pub(super) unsafe fn estimate_chain(first: NonNull<Segment>, head: NonNull<u8>) -> u32 {
    // SAFETY: by contract.
    unsafe { estimate(first, head, chain_used_bytes(first, head)) }
}

/// The same of a chain with so many bytes of envelopes.
///
/// # Safety
/// As there.
pub(super) unsafe fn estimate(first: NonNull<Segment>, head: NonNull<u8>, used_bytes: usize) -> u32 {
    const FEW_BYTES: usize = 512;
    // SAFETY: by contract.
    if used_bytes <= FEW_BYTES { unsafe { count_chain(first, head) } } else { most_in(used_bytes) }
}

/// Bytes of envelopes in a chain, from `head` in its first segment on.
///
/// # Safety
/// The chain is the caller's, and sealed.
pub(super) unsafe fn chain_used_bytes(first: NonNull<Segment>, head: NonNull<u8>) -> usize {
    // SAFETY: by contract.
    unsafe { chain_bytes(first, head) }.1
}

/// Bytes of memory in a chain, and of envelopes, from `head` in its first segment on.
///
/// # Safety
/// The chain is the caller's, and sealed.
pub(super) unsafe fn chain_bytes(first: NonNull<Segment>, head: NonNull<u8>) -> (usize, usize) {
    // SAFETY: by contract.
    unsafe {
        let mut capacity = first.as_ref().capacity_bytes();
        let mut used = Segment::used_end(first).as_ptr() as usize - head.as_ptr() as usize;
        let mut next = NonNull::new(first.as_ref().next);
        while let Some(segment) = next {
            let segment = segment.as_ref();
            capacity += segment.capacity_bytes();
            used += segment.used_bytes() - segment.skipped_bytes as usize;
            next = NonNull::new(segment.next);
        }
        (capacity, used)
    }
}
