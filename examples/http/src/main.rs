//! A page with what each core does, over HTTP at port 80: it counts anew whenever it is asked for. The numbers that connections begin with come from the machine's source of
//! random numbers, if there is one. The boot argument `pages=N` ends it after so many.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::prelude::*;
use magpie::stats::{self, Activity};
use magpie_drivers::{card, entropy};
use magpie_net::{Config, Error, Network, TcpStream};

magpie::entry!(http);

const PORT: u16 = 80;
const BACKLOG: usize = 16;
/// The longest request that is read, and how long it may take.
const REQUEST_BYTES: usize = 4096;
const PATIENCE: Duration = Duration::from_secs(10);
const HEADERS: usize = 64;

/// Requests that were read, whatever they asked for. Counted before the answer: whoever has that, and asks again, finds it counted.
static READ: AtomicU64 = AtomicU64::new(0);
/// Connections that have ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// What is asked for.
enum Asked {
    Page,
    /// Something else: the status that says so.
    Other(&'static str),
}

/// What the bytes so far ask for; `None` if more are to come.
fn asked(bytes: &[u8]) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() < REQUEST_BYTES => None,
        Ok(httparse::Status::Complete(_)) => Some(match (request.method, request.path) {
            (Some("GET"), Some("/")) => Asked::Page,
            (Some("GET"), _) => Asked::Other("404 Not Found"),
            _ => Asked::Other("405 Method Not Allowed"),
        }),
        _ => Some(Asked::Other("400 Bad Request")),
    }
}

/// The page, after so many others.
fn page(before: u64) -> Result<String, core::fmt::Error> {
    let mut html = String::from(
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>Magpie</title><style>body{font:16px sans-serif;margin:2em}\
         td,th{text-align:right;padding:.2em 1em}</style><h1>Magpie</h1>\n",
    );
    writeln!(html, "<p>{before} pages before this one.</p>")?;
    html.push_str("<table><tr><th>core<th>running, %<th>idle, %<th>turns<th>processes stolen</tr>\n");
    for core in (0..machine::cores()).filter_map(CoreId::new) {
        let counted = stats::core(core);
        let all: u64 = Activity::ALL.map(|activity| counted.time.ticks(activity)).iter().sum();
        let share = |activity| counted.time.ticks(activity) * 100 / all.max(1);
        writeln!(
            html,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            core.index(),
            share(Activity::Running),
            share(Activity::Idle),
            counted.context_switches(),
            counted.processes_stolen.get()
        )?;
    }
    html.push_str("</table></html>\n");
    Ok(html)
}

/// One connection, one answer.
async fn answer(mut stream: TcpStream) -> Result<(), Error> {
    let mut bytes = Vec::new();
    let mut piece = [0; 512];
    let asked = loop {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            break Asked::Other("400 Bad Request");
        }
        bytes.extend_from_slice(&piece[..count]);
        if let Some(asked) = asked(&bytes) {
            break asked;
        }
    };
    let before = READ.fetch_add(1, Ordering::Relaxed);
    let (status, body) = match asked {
        // Writing to a text does not fail.
        Asked::Page => ("200 OK", page(before).unwrap_or_default()),
        Asked::Other(status) => {
            (status, alloc::format!("<!DOCTYPE html><title>{status}</title><p>{status}\n"))
        }
    };
    let length = body.len();
    let head = alloc::format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.close().await
}

async fn http() -> magpie::Result {
    // Without a source of random numbers they come from what the machine was given at its start.
    let _ = entropy::feed().await;
    let network = Network::start(Config::dhcp())?;
    let carried = network.clone();
    let card = Child::process("card", move |_| card::drive("card", carried.clone())).within(Duration::ZERO);
    let driver = Supervisor::one_for_one().child(card).start()?;
    let (address, _) = match time::timeout(Duration::from_secs(10), network.address()).await {
        Ok(address) => address?,
        Err(_) if driver.process().is_done() => {
            return Err("there is no network card: cargo xtask qemu http --net --forward 8080:80".into());
        }
        Err(_) => return Err("nobody gives this machine an address".into()),
    };
    let mut listener = network.listen(PORT, BACKLOG).await?;
    text!("http://{address}:{PORT}/");
    let most = machine::argument("pages").and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    for _ in 0..most {
        let stream = listener.accept_or_wait().await?;
        let answering = sched::spawn(async move {
            // Who says nothing is not waited for.
            let _ = time::timeout(PATIENCE, answer(stream)).await;
            ENDED.fetch_add(1, Ordering::Relaxed);
        });
        if answering.is_err() {
            // Without memory for its process the connection was dropped, and so reset.
            ENDED.fetch_add(1, Ordering::Relaxed);
        }
    }
    while ENDED.load(Ordering::Relaxed) < most {
        time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
