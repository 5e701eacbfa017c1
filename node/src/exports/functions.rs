//! Functions that others call, as Erlang calls those of a module.

use alloc::string::String;
use alloc::sync::Arc;

use magpie_dist::term::{
    AtomBuf, DecodeError, EncodeError, FromAnyTerm, FromTerm, Reader, Term, TermBuf, ToTerm, Token,
};

/// Why a function has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Failed {
    /// There is none of that name for so many arguments, or of those types: `undef`.
    Arguments(DecodeError),
    /// Its result cannot be sent.
    Result(EncodeError),
}

/// The arguments of a function: a tuple of up to four.
pub trait Arguments: Sized + Send + 'static {
    /// How many they are.
    const COUNT: usize;

    /// Made of so many terms, one behind the other.
    ///
    /// # Errors
    /// When they are others.
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

macro_rules! arguments {
    ($count:literal: $($type:ident),*) => {
        impl<$($type: FromAnyTerm + Send + 'static),*> Arguments for ($($type,)*) {
            const COUNT: usize = $count;

            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let _ = &reader;
                Ok(($($type::from_term(reader)?,)*))
            }
        }
    };
}

arguments!(0:);
arguments!(1: A);
arguments!(2: A, B);
arguments!(3: A, B, C);
arguments!(4: A, B, C, D);

type Body = dyn Fn(&mut Reader<'_>, usize) -> Result<TermBuf, Failed> + Send + Sync;

/// A function that is exported.
#[derive(Clone)]
pub struct Function {
    module: String,
    name: String,
    arity: usize,
    body: Arc<Body>,
}

impl Function {
    pub fn new<T: Arguments, R: ToTerm>(
        module: &str,
        name: &str,
        body: impl Fn(T) -> R + Send + Sync + 'static,
    ) -> Self {
        let body = move |list: &mut Reader<'_>, limit: usize| {
            let arguments = T::read(list).map_err(Failed::Arguments)?;
            TermBuf::of(&body(arguments), limit).map_err(Failed::Result)
        };
        Self { module: module.into(), name: name.into(), arity: T::COUNT, body: Arc::new(body) }
    }

    pub fn module(&self) -> &str {
        &self.module
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub const fn arity(&self) -> usize {
        self.arity
    }

    /// Calls it, for a result of so many bytes at most.
    pub fn call(&self, list: &List, limit: usize) -> Result<TermBuf, Failed> {
        let term = list.terms.as_term();
        let mut reader = term.reader();
        // Its head.
        reader.token().map_err(Failed::Arguments)?;
        (self.body)(&mut reader, limit)
    }
}

/// Arguments, to keep: a list.
pub struct List {
    terms: TermBuf,
    pub count: usize,
}

impl List {
    /// The only one, if that is a name.
    pub fn only(&self) -> Option<AtomBuf> {
        let term = self.terms.as_term();
        let mut reader = term.reader();
        reader.token().ok()?;
        (self.count == 1).then_some(())?;
        AtomBuf::from_term(&mut reader).ok()
    }

    /// Of a term, if that is a list; written out, where Erlang has it short because all its numbers are small.
    pub fn of(term: &Term<'_>) -> Option<Self> {
        Some(match term.reader().token().ok()? {
            Token::List(count) => Self { terms: term.to_buf().ok()?, count },
            Token::Nil => Self { terms: term.to_buf().ok()?, count: 0 },
            Token::Bytes(bytes) => Self { terms: TermBuf::of(bytes, usize::MAX).ok()?, count: bytes.len() },
            _ => return None,
        })
    }
}
