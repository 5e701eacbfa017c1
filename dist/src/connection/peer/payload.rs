//! The forms that Erlang's servers give to what they say to each other.

use super::names::Names;
use crate::connection::event::{Class, Tag};
use crate::term::{EncodeError, Pid, Reference, Term, ToTerm, Writer};

/// An atom whose name is short.
pub struct Word(pub &'static str);

impl ToTerm for Word {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.atom(self.0)
    }
}

/// `[alias|Ref]`.
pub struct AliasTag<'a>(pub Reference<'a>);

impl ToTerm for AliasTag<'_> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.list(1)?;
        writer.atom("alias")?;
        writer.reference(self.0)
    }
}

/// `{'$gen_call', {Pid, Tag}, Request}`.
pub struct GenCall<'a> {
    pub from: Pid<'a>,
    pub reference: Reference<'a>,
    /// Whether the answer may go to the reference.
    pub has_alias: bool,
    pub request: &'a dyn ToTerm,
}

impl ToTerm for GenCall<'_> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.tuple(3)?;
        writer.atom("$gen_call")?;
        writer.tuple(2)?;
        writer.pid(self.from)?;
        if self.has_alias {
            AliasTag(self.reference).to_term(writer)?;
        } else {
            writer.reference(self.reference)?;
        }
        self.request.to_term(writer)
    }
}

/// `{'$gen_cast', Request}`.
pub struct GenCast<'a>(pub &'a dyn ToTerm);

impl ToTerm for GenCast<'_> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.tuple(2)?;
        writer.atom("$gen_cast")?;
        self.0.to_term(writer)
    }
}

/// `{Tag, Reply}`.
pub struct Answer<'a> {
    pub tag: &'a Tag,
    pub names: &'a Names,
    pub reply: &'a dyn ToTerm,
}

impl ToTerm for Answer<'_> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.tuple(2)?;
        match self.tag {
            Tag::Alias(alias) => AliasTag(self.names.remote_reference(*alias)).to_term(writer)?,
            Tag::Within(_, tag) | Tag::Any(tag) => tag.to_term(writer)?,
        }
        self.reply.to_term(writer)
    }
}

/// `{Ref, return, Value}`: how a function call of `erpc` ends in a value.
pub struct Returned<'a>(pub Term<'a>, pub &'a dyn ToTerm);

impl ToTerm for Returned<'_> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.tuple(3)?;
        writer.term(self.0)?;
        writer.atom("return")?;
        self.1.to_term(writer)
    }
}

/// `{Ref, throw, Reason}`, `{Ref, exit, Reason}`, `{Ref, error, Reason, Stack}`: how else.
pub struct Raised<'a>(pub Term<'a>, pub Class, pub &'a dyn ToTerm);

impl ToTerm for Raised<'_> {
    fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let (arity, name) = match self.1 {
            Class::Error => (4, "error"),
            Class::Exit => (3, "exit"),
            Class::Throw => (3, "throw"),
        };
        writer.tuple(arity)?;
        writer.term(self.0)?;
        writer.atom(name)?;
        self.2.to_term(writer)?;
        if arity == 4 { writer.nil() } else { Ok(()) }
    }
}
