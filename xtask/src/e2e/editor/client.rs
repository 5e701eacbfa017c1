//! An editor as rust-analyzer sees one: it starts the server with the settings of a folder, opens files, and asks. It shows nothing.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// What the server may take for one answer. It has cargo build what the code needs first.
const PATIENCE: Duration = Duration::from_secs(600);

/// The editor, and the server that it has started.
pub struct Client {
    server: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    folder: PathBuf,
    settings: Value,
    asked: u64,
    is_ready: bool,
}

/// What the server remarks about a place of a file.
pub struct Remark {
    pub line: u64,
    /// It is an error, no hint.
    pub is_error: bool,
    pub code: String,
    pub message: String,
}

impl Client {
    /// Starts the server for a folder that has settings for Visual Studio Code, as `command`.
    pub fn start(mut command: Command, folder: &Path) -> Result<Self> {
        let settings = settings(&folder.join(".vscode/settings.json"))?;
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().context("rust-analyzer cannot be started")?;
        let to = server.stdin.take().context("rust-analyzer has no input")?;
        let from = listen(server.stdout.take().context("rust-analyzer has no output")?);
        let folder = folder.to_owned();
        let mut client = Self { server, to, from, folder, settings, asked: 0, is_ready: false };
        let root = uri(&client.folder);
        client.ask(
            "initialize",
            &json!({
                "processId": std::process::id(),
                "rootUri": root,
                "workspaceFolders": [{"uri": root, "name": "it"}],
                "initializationOptions": client.settings,
                "capabilities": {
                    "experimental": {"serverStatusNotification": true},
                    "workspace": {"configuration": true},
                },
            }),
        )?;
        client.send(&json!({"method": "initialized", "params": {}}))?;
        Ok(client)
    }

    /// Where the code is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens files, and waits until the server knows what they are part of.
    pub fn open(&mut self, files: &[&str]) -> Result<()> {
        for file in files {
            let path = self.folder.join(file);
            let text = fs::read_to_string(&path).with_context(|| format!("there is no {file}"))?;
            let document = json!({"uri": uri(&path), "languageId": "rust", "version": 1, "text": text});
            self.send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}))?;
        }
        let began = Instant::now();
        while !self.is_ready {
            self.hear(began)?;
        }
        Ok(())
    }

    /// Puts another text in place of an open file's, as typing does.
    pub fn change(&mut self, file: &str, text: &str) -> Result<()> {
        let document = json!({"uri": uri(&self.folder.join(file)), "version": 2});
        let params = json!({"textDocument": document, "contentChanges": [{"text": text}]});
        self.send(&json!({"method": "textDocument/didChange", "params": params}))
    }

    /// What the server remarks about an open file.
    pub fn remarks(&mut self, file: &str) -> Result<Vec<Remark>> {
        let document = json!({"textDocument": {"uri": uri(&self.folder.join(file))}});
        let answer = self.ask("textDocument/diagnostic", &document)?;
        let items = answer["items"].as_array().with_context(|| format!("no remarks of {file}: {answer}"))?;
        Ok(items
            .iter()
            .map(|item| Remark {
                line: item["range"]["start"]["line"].as_u64().unwrap_or_default() + 1,
                is_error: item["severity"] == 1,
                code: item["code"].as_str().unwrap_or_default().to_owned(),
                message: item["message"].as_str().unwrap_or_default().to_owned(),
            })
            .collect())
    }

    /// The file in which something is defined: what the last character of the first `text` in an open file is part of.
    pub fn definition(&mut self, file: &str, text: &str) -> Result<String> {
        let path = self.folder.join(file);
        let source = fs::read_to_string(&path).with_context(|| format!("there is no {file}"))?;
        let at = source.find(text).with_context(|| format!("{file} has no {text}"))? + text.len() - 1;
        let line = source[..at].matches('\n').count();
        let column = source[..at].rsplit('\n').next().unwrap_or_default().len();
        let asked = json!({
            "textDocument": {"uri": uri(&path)},
            "position": {"line": line, "character": column},
        });
        let answer = self.ask("textDocument/definition", &asked)?;
        let found = answer[0]["uri"].as_str().or_else(|| answer["uri"].as_str());
        Ok(found.with_context(|| format!("{file}: {text} leads nowhere: {answer}"))?.to_owned())
    }

    /// The words of the commands that an editor offers above tests.
    pub fn offered(&mut self, file: &str) -> Result<Vec<String>> {
        let asked = json!({"textDocument": {"uri": uri(&self.folder.join(file))}, "position": null});
        let answer = self.ask("experimental/runnables", &asked)?;
        let words = |one: &Value| {
            let words = one["args"]["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            words.collect::<Vec<_>>().join(" ")
        };
        Ok(answer.as_array().into_iter().flatten().map(words).collect())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"id": id, "method": method, "params": params}))?;
        let began = Instant::now();
        loop {
            let Some(mut answer) = self.hear(began)?.filter(|answer| answer["id"] == id) else { continue };
            ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
            return Ok(answer["result"].take());
        }
    }

    /// Waits for a message; answers what the server asks, and gives back what it answers.
    fn hear(&mut self, began: Instant) -> Result<Option<Value>> {
        let left = PATIENCE.saturating_sub(began.elapsed());
        let message = match self.from.recv_timeout(left) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => bail!("rust-analyzer has not answered for {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => bail!("rust-analyzer has ended"),
        };
        let Some(method) = message["method"].as_str() else { return Ok(Some(message)) };
        if method == "experimental/serverStatus" {
            let status = &message["params"];
            // A warning at first: no file was opened yet, so it knows of no workspace.
            self.is_ready = status["quiescent"] == true && status["health"] == "ok";
            ensure!(status["health"] != "error", "rust-analyzer is ill: {}", status["message"]);
        }
        if !message["id"].is_null() {
            let items = message["params"]["items"].as_array().map_or(0, Vec::len);
            let result = match method {
                "workspace/configuration" => json!(vec![self.settings.clone(); items]),
                _ => Value::Null,
            };
            self.send(&json!({"id": message["id"], "result": result}))?;
        }
        Ok(None)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        let written = write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len());
        written.and_then(|()| self.to.flush()).context("rust-analyzer does not listen")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What the file says to rust-analyzer, in the form in which a server is told. It is asked, and does nothing of its own accord.
fn settings(file: &Path) -> Result<Value> {
    let text = fs::read(file).with_context(|| format!("there is no {}", file.display()))?;
    let written: Map<String, Value> = serde_json::from_slice(&text).context("the settings are no JSON")?;
    let mut settings = json!({"checkOnSave": false, "cachePriming": {"enable": false}});
    for (key, value) in written {
        let Some(path) = key.strip_prefix("rust-analyzer.") else { continue };
        let place = path.split('.').fold(&mut settings, |place, part| &mut place[part]);
        *place = value;
    }
    Ok(settings)
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Reads what the server says, in a thread of its own, until it ends.
fn listen(from: impl Read + Send + 'static) -> Receiver<Value> {
    let (told, messages) = channel();
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        while let Some(message) = message(&mut from) {
            if told.send(message).is_err() {
                return;
            }
        }
    });
    messages
}

fn message(from: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        if let Some(said) = line.strip_prefix("Content-Length:") {
            length = said.trim().parse().ok()?;
        }
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
