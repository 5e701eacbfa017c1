//! Building a large value in its final place, field by field, without a copy of its size on the stack.
//!
//! A build that is not optimised moves a value through every function that returns it, and has room for each of these
//! copies on the stack.

/// Writes every field of a struct behind a pointer: those in braces by value, those after `in place` by a function that is
/// handed the field's pointer. A field that is forgotten does not compile.
///
/// To be used where unsafe code is allowed; the pointer must be valid for writes, and what was there is not dropped.
macro_rules! write_fields {
    ($place:expr => $Type:ident { $($field:ident: $value:expr,)* } in place { $($large:ident: $init:expr,)* }) => {{
        let place: *mut $Type = $place;
        let _names_every_field = |whole: &$Type| {
            let $Type { $($field: _,)* $($large: _,)* } = whole;
        };
        $((&raw mut (*place).$field).write($value);)*
        $($init(&raw mut (*place).$large);)*
    }};
}

pub(crate) use write_fields;
