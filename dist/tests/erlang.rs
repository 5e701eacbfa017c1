//! The codec beside Erlang's own: a real node reads what is written here, and what it writes is read.

mod common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};

use common::{Chance, any_term, copied};

/// Which of the scripts, with what arguments; ended when it is dropped.
struct Script(Child);

impl Script {
    fn start(name: &str, arguments: &[String]) -> Self {
        let path = format!("{}/tests/erlang/{name}.escript", env!("CARGO_MANIFEST_DIR"));
        Self(Command::new("escript").arg(path).args(arguments).spawn().expect("escript does not start"))
    }

    fn succeeds(mut self) -> bool {
        self.0.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(stream: &mut TcpStream, parts: &[&[u8]]) {
    let bytes = parts.concat();
    stream.write_all(&(bytes.len() as u32).to_be_bytes()).unwrap();
    stream.write_all(&bytes).unwrap();
}

fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
#[ignore = "needs Erlang: `cargo xtask test --host` installs it"]
fn terms_are_those_of_erlang() {
    const COUNT: usize = 5000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = Script::start("codec", &[port.to_string(), COUNT.to_string()]);
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    let mut chance = Chance::new(4);
    for _ in 0..COUNT {
        let bytes = any_term(&mut chance);
        send(&mut stream, &[&[131], &bytes]);
        let back = receive(&mut stream);
        assert_eq!(back.split_first(), Some((&131, &bytes[..])));
    }
    send(&mut stream, &[b"done"]);
    for _ in 0..COUNT {
        let bytes = receive(&mut stream);
        assert_eq!(bytes.first(), Some(&131));
        send(&mut stream, &[&[131], &copied(&bytes[1..])]);
    }
    assert_eq!(receive(&mut stream), b"done");
    assert!(script.succeeds());
}
