//! Ask.

use super::Result;
use std::time::Duration;

use magpie::actor::{Actor, Addr, AskError, Config, Context, Executor, Receive, Reply, Request, stop};
use magpie::sched;

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

struct Visitor {
    library: Addr<Library>,
    read: Vec<String>,
}

impl Actor for Visitor {}

struct Visit;

impl Receive<Visit> for Visitor {
    type Reply = ();

    fn receive(&mut self, _: Visit, context: &mut Context<Self>) {
        let asked = context.ask(self.library, Borrow, |visitor, book, context| match book {
            Ok(book) => visitor.read.push(book),
            Err(_) => context.end(),
        });
        if asked.is_err() {
            context.end();
        }
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let library = executor.handle().spawn(Library { queue: Vec::new() })?;

    let reader = library.ask(Borrow);
    library.send(Return("Emma".into()))?;
    assert_eq!(reader.await?, "Emma");

    let visitor = executor.handle().spawn(Visitor { library, read: Vec::new() })?;
    visitor.ask(Visit).await?;
    library.send(Return("Persuasion".into()))?;
    sched::out_of_work().await;
    visitor.send(stop::Retire)?;
    sched::out_of_work().await;
    assert_eq!(visitor.take().ok_or("it was taken already")?.read, ["Persuasion"]);

    match library.ask_within(Duration::from_millis(2), Borrow).await {
        Err(AskError::TimedOut) => {}
        other => return Err(format!("there was a book: {other:?}").into()),
    }

    let reader = library.ask(Borrow);
    executor.stop().await;
    assert_eq!(reader.await, Err(AskError::Unanswered));
    Ok(())
}
