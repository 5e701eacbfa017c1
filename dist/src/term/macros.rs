//! `term!`: what makes a struct or an enum of one's own something to be sent.

/// Makes a struct or an enum something that is sent as a term, and made of one: implements [`ToTerm`](crate::term::ToTerm) and
/// [`FromTerm`](crate::term::FromTerm), whose fields must have both.
///
/// | written | term |
/// |---|---|
/// | `struct Point as "point" { x, y }` | `{point, X, Y}`: a record |
/// | `struct Settings as map { name, size }` | `#{name => Name, size => Size}`; other keys are ignored, and an `Option` may be missing |
/// | `enum Request { Get(key) as "get", Stop as "stop" }` | `{get, Key}`, `stop` |
///
/// ```
/// use magpie_dist::term::{DecodeError, TermBuf};
///
/// #[derive(Debug, PartialEq)]
/// struct Point { x: i64, y: i64 }
/// magpie_dist::term! { struct Point as "point" { x, y } }
///
/// #[derive(Debug, PartialEq)]
/// struct Settings { name: String, size: Option<u32> }
/// magpie_dist::term! { struct Settings as map { name, size } }
///
/// #[derive(Debug, PartialEq)]
/// enum Request { Get(String), Put(String, Point), Resize { to: Settings }, Stop }
/// magpie_dist::term! {
///     enum Request {
///         Get(key) as "get",
///         Put(key, value) as "put",
///         Resize { to } as "resize",
///         Stop as "stop",
///     }
/// }
///
/// for (request, text) in [
///     (Request::Get("k".into()), r#"{get,<<"k">>}"#),
///     (Request::Put("k".into(), Point { x: 1, y: -2 }), r#"{put,<<"k">>,{point,1,-2}}"#),
///     (
///         Request::Resize { to: Settings { name: "n".into(), size: None } },
///         r#"{resize,#{name=><<"n">>,size=>undefined}}"#,
///     ),
///     (Request::Stop, "stop"),
/// ] {
///     let term = TermBuf::of(&request, 1000)?;
///     assert_eq!(term.as_term().to_string(), text);
///     assert_eq!(term.as_term().decode::<Request>()?, request);
/// }
/// let other = TermBuf::of(&magpie_dist::term::Atom::new("halt")?, 100)?;
/// assert_eq!(other.as_term().decode::<Request>(), Err(DecodeError::UnknownVariant));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A struct without fields is an atom: `struct Stop as "stop" {}`. What has a field that cannot be sent is refused by the compiler:
///
/// ```compile_fail,E0277
/// struct Odd { address: *const u8 }
/// magpie_dist::term! { struct Odd as "odd" { address } }
/// ```
#[macro_export]
macro_rules! term {
    (struct $name:ident as map { $($field:ident),* $(,)? }) => {
        impl $crate::term::ToTerm for $name {
            fn to_term(&self, writer: &mut $crate::term::Writer<'_>) -> Result<(), $crate::term::EncodeError> {
                writer.map(0usize $(+ $crate::term!(@one $field))*)?;
                $(
                    writer.atom(stringify!($field))?;
                    $crate::term::ToTerm::to_term(&self.$field, writer)?;
                )*
                Ok(())
            }
        }

        impl<'a> $crate::term::FromTerm<'a> for $name {
            fn from_term(reader: &mut $crate::term::Reader<'a>) -> Result<Self, $crate::term::DecodeError> {
                let pairs = reader.map()?;
                reader.nested(|reader| {
                    $(let mut $field = None;)*
                    for _ in 0..pairs {
                        let key = reader.term()?;
                        $(
                            if key.reader().atom().is_ok_and(|key| key.is(stringify!($field))) {
                                if $field.is_some() {
                                    return Err($crate::term::DecodeError::Duplicate);
                                }
                                $field = Some($crate::term::FromTerm::from_term(reader)?);
                                continue;
                            }
                        )*
                        reader.term()?;
                    }
                    Ok(Self {
                        $(
                            $field: match $field.or_else($crate::term::FromTerm::absent) {
                                Some(value) => value,
                                None => return Err($crate::term::DecodeError::MissingField(stringify!($field))),
                            },
                        )*
                    })
                })
            }
        }
    };
    (struct $name:ident as $tag:literal { $($field:ident),* $(,)? }) => {
        impl $crate::term::ToTerm for $name {
            fn to_term(&self, writer: &mut $crate::term::Writer<'_>) -> Result<(), $crate::term::EncodeError> {
                $crate::term::write_tag(writer, $tag, 0usize $(+ $crate::term!(@one $field))*)?;
                $($crate::term::ToTerm::to_term(&self.$field, writer)?;)*
                Ok(())
            }
        }

        impl<'a> $crate::term::FromTerm<'a> for $name {
            fn from_term(reader: &mut $crate::term::Reader<'a>) -> Result<Self, $crate::term::DecodeError> {
                let (tag, fields) = $crate::term::read_tag(reader)?;
                if !tag.is($tag) {
                    return Err($crate::term::DecodeError::UnknownVariant);
                }
                $crate::term::expect_fields(0usize $(+ $crate::term!(@one $field))*, fields)?;
                reader.nested(|_reader| Ok(Self { $($field: $crate::term::FromTerm::from_term(_reader)?,)* }))
            }
        }
    };
    (enum $name:ident {
        $($variant:ident $(($($place:ident),* $(,)?))? $({ $($field:ident),* $(,)? })? as $tag:literal),* $(,)?
    }) => {
        impl $crate::term::ToTerm for $name {
            fn to_term(&self, writer: &mut $crate::term::Writer<'_>) -> Result<(), $crate::term::EncodeError> {
                match self {
                    $(
                        Self::$variant $(($($place),*))? $({ $($field),* })? => {
                            let fields = 0usize $($(+ $crate::term!(@one $place))*)? $($(+ $crate::term!(@one $field))*)?;
                            $crate::term::write_tag(writer, $tag, fields)?;
                            $($($crate::term::ToTerm::to_term($place, writer)?;)*)?
                            $($($crate::term::ToTerm::to_term($field, writer)?;)*)?
                        }
                    )*
                }
                Ok(())
            }
        }

        impl<'a> $crate::term::FromTerm<'a> for $name {
            fn from_term(reader: &mut $crate::term::Reader<'a>) -> Result<Self, $crate::term::DecodeError> {
                let (tag, fields) = $crate::term::read_tag(reader)?;
                $(
                    if tag.is($tag) {
                        let expected = 0usize $($(+ $crate::term!(@one $place))*)? $($(+ $crate::term!(@one $field))*)?;
                        $crate::term::expect_fields(expected, fields)?;
                        return reader.nested(|_reader| {
                            $($(let $place = $crate::term::FromTerm::from_term(_reader)?;)*)?
                            $($(let $field = $crate::term::FromTerm::from_term(_reader)?;)*)?
                            Ok(Self::$variant $(($($place),*))? $({ $($field),* })?)
                        });
                    }
                )*
                Err($crate::term::DecodeError::UnknownVariant)
            }
        }
    };
    (@one $field:ident) => { 1 };
}
