//! Ask.

use super::Result;
use std::time::Duration;

use magpie::actor::{Actor, AskError, Config, Context, Executor, Receive, Reply, Request};

struct Library {
    queue: Vec<Reply<String>>,
}

impl Actor for Library {}

struct Borrow;
struct Return(String);

impl Receive<Request<Borrow, String>> for Library {
    type Reply = ();

    fn receive(&mut self, request: Request<Borrow, String>, _: &mut Context<Self>) {
        self.queue.push(request.reply);
    }
}

impl Receive<Return> for Library {
    type Reply = ();

    fn receive(&mut self, message: Return, _: &mut Context<Self>) {
        let mut book = message.0;
        while let Some(reader) = self.queue.pop() {
            match reader.send(book) {
                Ok(()) => break,
                // Who waited has given up: the book is back.
                Err(returned) => book = returned.into_answer(),
            }
        }
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let library = executor.handle().spawn(Library { queue: Vec::new() })?;

    let reader = library.ask(Borrow);
    library.send(Return("Emma".into()))?;
    assert_eq!(reader.await?, "Emma");

    match library.ask_within(Duration::from_millis(2), Borrow).await {
        Err(AskError::TimedOut) => {}
        other => return Err(format!("there was a book: {other:?}").into()),
    }

    let reader = library.ask(Borrow);
    executor.stop().await;
    assert_eq!(reader.await, Err(AskError::Unanswered));
    Ok(())
}
