//! Where that comes from which goes to a kernel: a script, an editor at a terminal, or standard input as it is.

use super::editor::{self, Editor};
use super::script::{Player, Script, Verdict};
use super::typed;
use crate::stream::Output;
use anyhow::Result;
use std::io::{self, Write};
use std::sync::mpsc::Receiver;

/// What goes to a kernel, and where what it says is shown meanwhile.
pub struct Source {
    /// Lines with their ends.
    pub lines: Receiver<Vec<u8>>,
    /// Where output goes.
    pub out: Box<dyn Write + Send>,
    /// What the script has come to.
    pub played: Played,
    /// Puts the terminal back at its end.
    pub editor: Option<Editor>,
}

impl Source {
    /// Of commands: from the script, if there is one; `from_boot`: it begins when the kernel says that it takes commands.
    pub fn of_commands(script: Option<Script>, from_boot: bool) -> Result<Self> {
        if let Some(script) = script {
            let (player, lines) = script.play(from_boot);
            let played = Played { player: Some(player), ended: None };
            return Ok(Self { lines, out: Box::new(io::stdout()), played, editor: None });
        }
        if editor::is_possible() {
            let (editor, lines, out) = Editor::begin()?;
            return Ok(Self { lines, out: Box::new(out), played: Played::default(), editor: Some(editor) });
        }
        Ok(Self::as_it_is())
    }

    /// What is typed, as it is.
    pub fn as_it_is() -> Self {
        Self { lines: typed::lines(), out: Box::new(io::stdout()), played: Played::default(), editor: None }
    }
}

/// What a script has come to, if there is one.
#[derive(Default)]
pub struct Played {
    player: Option<Player>,
    ended: Option<Result<()>>,
}

impl Played {
    /// Takes what the kernel says.
    pub fn hear(&self, output: &Output) {
        if let Some(player) = &self.player {
            player.hear(output);
        }
    }

    /// Whether the run is to end for it.
    pub fn is_over(&mut self) -> bool {
        match self.player.take().map(Player::is_over) {
            Some(Verdict::GoesOn(player)) => self.player = Some(player),
            Some(Verdict::Over(ended)) => self.ended = Some(ended),
            Some(Verdict::Unneeded) | None => {}
        }
        self.ended.is_some()
    }

    /// The kernel has ended, or was: whether the script asked for that.
    ///
    /// # Errors
    /// When something was not met.
    pub fn finish(self) -> Result<bool> {
        match (self.ended, self.player) {
            (Some(ended), _) => ended.map(|()| true),
            (None, Some(player)) => player.finish().map(|()| false),
            (None, None) => Ok(false),
        }
    }
}
