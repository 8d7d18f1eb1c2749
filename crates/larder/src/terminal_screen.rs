//! The terminal's other screen, drawn on standard error: entered once, and left again when the program ends, by a panic and, where keys are read, by
//! a signal too.

use std::io::{self, IsTerminal, Stderr, stderr, stdout};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};

use crate::ending_signals;

/// Are keys read? Where they are not, Ctrl-C is the signal that it always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    Read,
    Unread,
}

/// What somebody has typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    Key(KeyCode),
    /// `q`, Escape or Ctrl-C.
    Quit,
    /// The terminal has another size.
    Resized,
}

pub struct TerminalScreen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    keys: Keys,
}

impl TerminalScreen {
    /// Nothing where there is no terminal, or none that can do this. Who reads keys writes lines where standard output goes elsewhere.
    pub fn open(keys: Keys) -> Option<TerminalScreen> {
        let is_shown = stderr().is_terminal() && (keys == Keys::Unread || stdout().is_terminal());
        let can = is_shown && std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
        if !can {
            return None;
        }
        let mut screen = TerminalScreen { terminal: Terminal::new(CrosstermBackend::new(stderr())).ok()?, keys };
        let before = std::panic::take_hook();
        // A panic's message must stand where it can be read.
        std::panic::set_hook(Box::new(move |panic| {
            leave(keys);
            before(panic);
        }));
        if keys == Keys::Read {
            ending_signals::on_first(move |signal| {
                leave(keys);
                std::process::exit(128 + signal);
            })
            .ok()?;
            enable_raw_mode().ok()?;
        }
        execute!(stderr(), EnterAlternateScreen, Hide).ok()?;
        screen.terminal.clear().ok()?;
        Some(screen)
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
    }

    /// The next key, if one is typed within so long.
    pub fn typed(&self, within: Duration) -> io::Result<Option<Typed>> {
        if !event::poll(within)? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Some(meaning(key)),
            Event::Resize(..) => Some(Typed::Resized),
            _ => None,
        })
    }
}

fn meaning(key: KeyEvent) -> Typed {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Typed::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Typed::Quit,
        code => Typed::Key(code),
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        leave(self.keys);
    }
}

fn leave(keys: Keys) {
    if keys == Keys::Read {
        let _ = disable_raw_mode();
    }
    let _ = execute!(stderr(), Show, LeaveAlternateScreen);
}
