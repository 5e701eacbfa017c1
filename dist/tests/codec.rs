//! Terms at random, and bytes that are none.

mod common;

use std::collections::BTreeMap;

use common::{Chance, any_term, copied, inputs, mutate};
use magpie_dist::term::{
    AtomBuf, BigInt, DecodeError, EncodeError, FromTerm, Reader, Term, TermBuf, ToTerm, Token, Writer,
};

#[test]
fn what_was_written_is_read() {
    let mut chance = Chance::new(1);
    for _ in 0..inputs(20_000) {
        let bytes = any_term(&mut chance);
        let mut reader = Reader::new(&bytes);
        let term = reader.term().unwrap();
        reader.finish().unwrap();
        assert_eq!(term.bytes(), bytes);
        assert_eq!(copied(&bytes), bytes);
        assert!(!term.to_string().is_empty() || matches!(term.reader().token(), Ok(Token::Atom(_))));
    }
}

/// What a program might make of a term from outside.
fn make_all_of(term: Term<'_>) {
    let _ = term.decode::<u64>();
    let _ = term.decode::<f64>();
    let _ = term.decode::<BigInt>();
    let _ = term.decode::<String>();
    let _ = term.decode::<Vec<u8>>();
    let _ = term.decode::<Vec<Term<'_>>>();
    let _ = term.decode::<Vec<Vec<TermBuf>>>();
    let _ = term.decode::<BTreeMap<i64, Option<Box<TermBuf>>>>();
    let _ = term.decode::<Result<AtomBuf, (Term<'_>, Term<'_>)>>();
    let _ = term.decode::<Request>();
}

#[derive(Debug, PartialEq)]
enum Request {
    Get(String),
    Put { key: String, value: Settings },
    Many(Vec<Self>),
    Stop,
}

magpie_dist::term! {
    enum Request { Get(key) as "get", Put { key, value } as "put", Many(all) as "many", Stop as "stop" }
}

#[derive(Debug, PartialEq)]
struct Settings {
    name: AtomBuf,
    size: Option<u32>,
}

magpie_dist::term! { struct Settings as map { name, size } }

#[test]
fn nothing_that_was_changed_breaks_the_reader() {
    let mut chance = Chance::new(2);
    let (mut whole, inputs) = (0, inputs(100_000));
    for _ in 0..inputs {
        let mut bytes = any_term(&mut chance);
        mutate(&mut chance, &mut bytes);
        let mut reader = Reader::new(&bytes);
        let Ok(term) = reader.term() else { continue };
        whole += 1;
        assert_eq!(term.bytes().len() + reader.rest().len(), bytes.len());
        let _ = term.to_string();
        make_all_of(term);
        // What is read at all can be written, and is the same then.
        let once = copied(term.bytes());
        assert_eq!(copied(&once), once);
    }
    // It was not refused at first sight.
    assert!(whole > inputs / 6, "{whole}");
}

#[test]
fn bytes_at_random_do_not_break_the_reader() {
    let mut chance = Chance::new(3);
    for _ in 0..inputs(100_000) {
        let mut bytes = chance.bytes(60);
        if let Some(first) = bytes.first_mut() {
            *first = 97 + *first % 24;
        }
        if let Ok(term) = Reader::new(&bytes).term() {
            make_all_of(term);
        }
    }
}

#[test]
fn lengths_are_not_believed() {
    for tag in [105, 108, 109, 111, 112, 116, 77, 90, 114] {
        for rest in [&[0xff; 4][..], &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0], &[0, 0, 0, 9, 97, 1], &[]] {
            let bytes = [&[tag], rest].concat();
            let error = Reader::new(&bytes).term().unwrap_err();
            assert!(
                matches!(error, DecodeError::Truncated | DecodeError::Malformed),
                "{tag} {rest:?} {error:?}"
            );
            assert!(<Vec<u64>>::from_term(&mut Reader::new(&bytes)).is_err());
        }
    }
}

#[test]
fn a_term_within_a_million_others_is_read() {
    // {{{{...}}}}: who recurses has no stack for that.
    let deep = 1_000_000;
    let bytes = [[104, 1].repeat(deep), vec![106]].concat();
    let term = Reader::new(&bytes).term().unwrap();
    assert_eq!(term.bytes().len(), bytes.len());
    assert!(term.to_string().ends_with("..."));
    // Types that could go as deep do not.
    assert!(term.decode::<Request>().is_err());
    let lists = [[108, 0, 0, 0, 1].repeat(deep), [106].repeat(deep + 1)].concat();
    assert!(Reader::new(&lists).term().is_ok());
    let many = b"\x68\x02\x77\x04many\x6c\0\0\0\x01".repeat(10_000);
    let many = [many, b"\x77\x04stop".to_vec(), [106].repeat(10_000)].concat();
    let term = Reader::new(&many).term().unwrap();
    assert_eq!(term.decode::<Request>(), Err(DecodeError::TooDeep));
}

#[test]
fn values_come_back() {
    fn same<T: ToTerm + for<'a> FromTerm<'a> + PartialEq + std::fmt::Debug>(value: T, text: &str) {
        let term = TermBuf::of(&value, 10_000).unwrap();
        assert_eq!(term.as_term().to_string(), text);
        assert_eq!(term.as_term().decode::<T>().unwrap(), value);
    }
    same(u64::MAX, "18446744073709551615");
    same(i64::MIN, "-9223372036854775808");
    same(i128::MIN, "-170141183460469231731687303715884105728");
    same(i128::MAX, "170141183460469231731687303715884105727");
    same(u128::MAX, "16#ffffffffffffffffffffffffffffffff");
    same(
        BigInt::new(true, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap(),
        "-16#0100000000000000000000000000000000",
    );
    same(-0.25f32, "-0.25");
    same(vec![Some(true), None], "[true,undefined]");
    same(vec![1u8, 2], "[1,2]");
    same(Vec::<u8>::new(), "[]");
    same(BTreeMap::from([("a".to_owned(), ())]), r#"#{<<"a">>=>ok}"#);
    same((Ok::<u8, ()>(1), Err::<u8, ()>(())), "{{ok,1},{error,ok}}");
    same(Request::Many(vec![Request::Stop, Request::Get("k".into())]), r#"{many,[stop,{get,<<"k">>}]}"#);
    let settings = || Settings { name: AtomBuf::new("n").unwrap(), size: Some(3) };
    same(Request::Put { key: "k".into(), value: settings() }, r#"{put,<<"k">>,#{name=>n,size=>3}}"#);
}

#[test]
fn what_does_not_fit_is_said() {
    fn error<T: for<'a> FromTerm<'a> + std::fmt::Debug>(bytes: &[u8]) -> DecodeError {
        Reader::new(bytes).term().unwrap().decode::<T>().unwrap_err()
    }
    assert_eq!(error::<u8>(&[98, 0, 0, 1, 0]), DecodeError::OutOfRange);
    assert_eq!(error::<u64>(&[98, 255, 255, 255, 255]), DecodeError::OutOfRange);
    assert_eq!(error::<i128>(&[[110, 17, 0].as_slice(), &[1; 17]].concat()), DecodeError::OutOfRange);
    assert_eq!(error::<String>(b"\x6d\0\0\0\x01\xff"), DecodeError::NotText);
    assert_eq!(error::<Vec<u8>>(&[108, 0, 0, 0, 1, 97, 1, 97, 2]), DecodeError::Improper);
    assert_eq!(
        error::<BTreeMap<u8, u8>>(&[116, 0, 0, 0, 2, 97, 1, 97, 1, 97, 1, 97, 2]),
        DecodeError::Duplicate
    );
    assert_eq!(error::<Settings>(&[116, 0, 0, 0, 0]), DecodeError::MissingField("name"));
    assert_eq!(error::<(u8, u8)>(&[104, 1, 97, 1]), DecodeError::Arity { expected: 2, found: 1 });
    assert_eq!(error::<Request>(b"\x68\x01\x77\x03get"), DecodeError::Arity { expected: 2, found: 1 });
    assert_eq!(error::<Request>(b"\x77\x03got"), DecodeError::UnknownVariant);
    // Other keys are nobody's matter, and what may be missing may.
    let other = b"\x74\0\0\0\x02\x61\x01\x68\0\x77\x04name\x77\x01n";
    let settings = Reader::new(other).term().unwrap().decode::<Settings>().unwrap();
    assert_eq!(settings, Settings { name: AtomBuf::new("n").unwrap(), size: None });
}

#[test]
fn a_limit_is_kept_and_heads_are_held_to() {
    let value = (1u8, "text".to_owned(), vec![500u32; 50]);
    let whole = TermBuf::of(&value, usize::MAX).unwrap().as_term().bytes().len();
    for limit in 0..whole {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, limit);
        assert_eq!(value.to_term(&mut writer), Err(EncodeError::TooLong));
        assert!(bytes.len() <= limit);
    }
    assert!(TermBuf::of(&value, whole).is_ok());

    /// Says one thing and does another.
    struct Liar(usize, usize);
    impl ToTerm for Liar {
        fn to_term(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
            writer.tuple(self.0)?;
            (0..self.1).try_for_each(|_| writer.nil())
        }
    }
    assert!(TermBuf::of(&Liar(3, 3), 100).is_ok());
    assert_eq!(TermBuf::of(&Liar(3, 2), 100), Err(EncodeError::Unbalanced));
    assert_eq!(TermBuf::of(&Liar(3, 4), 100), Err(EncodeError::Unbalanced));
    assert_eq!(TermBuf::of(&Liar(usize::MAX, 4), 100), Err(EncodeError::TooLong));
    let long = "é".repeat(255);
    assert!(AtomBuf::new(&long).is_ok_and(|atom| TermBuf::of(&atom, 1000).is_ok()));
    assert_eq!(AtomBuf::new(&"é".repeat(256)), Err(EncodeError::AtomTooLong));
}
