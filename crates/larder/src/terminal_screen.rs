//! The terminal's other screen, drawn on standard error: entered once, and left again however the program ends, by a panic too.

use std::io::{self, IsTerminal, Stderr, stderr};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};

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
    /// Nothing where there is no terminal, or none that can do this.
    pub fn open(keys: Keys) -> Option<TerminalScreen> {
        let can = stderr().is_terminal() && std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
        if !can {
            return None;
        }
        let terminal = Terminal::new(CrosstermBackend::new(stderr())).ok()?;
        let before = std::panic::take_hook();
        // A panic's message must stand where it can be read.
        std::panic::set_hook(Box::new(move |panic| {
            leave(keys);
            before(panic);
        }));
        if keys == Keys::Read {
            enable_raw_mode().ok()?;
        }
        execute!(stderr(), EnterAlternateScreen, Hide).ok()?;
        let mut screen = TerminalScreen { terminal, keys };
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
