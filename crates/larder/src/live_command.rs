//! `larder stat`, `larder top` and `larder hist`: a running larder as it goes, from its admin address. On a terminal they draw a screen
//! that keys change, elsewhere they print lines.

mod figures_source;
mod hist_view;
mod live_flags;
mod space_saving;
mod stat_history;
mod stat_view;
mod top_tally;
mod top_view;
mod view;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use proxy::Moment;

pub use live_flags::{HIST_EXAMPLES, HistFlags, STAT_EXAMPLES, StatFlags, TOP_COMMAND_EXAMPLES, TopFlags};

use crate::admin_client::failed;
use crate::live_command::figures_source::since;
use crate::live_command::hist_view::HistView;
use crate::live_command::stat_view::StatView;
use crate::live_command::top_view::TopView;
use crate::live_command::view::View;
use crate::terminal_screen::{Keys, TerminalScreen, Typed};

pub fn stat(flags: &StatFlags) -> ExitCode {
    match StatView::open(flags) {
        Ok(view) if flags.json => print(&view.all_as_json()),
        Ok(view) if flags.once => print(&view.all()),
        Ok(view) => watch(view, flags.every),
        Err(why) => failed(&why),
    }
}

pub fn top(flags: &TopFlags) -> ExitCode {
    match TopView::open(flags) {
        Ok(mut view) if flags.json => ended(in_lines(&mut view, flags.every)),
        Ok(view) => watch(view, flags.every),
        Err(why) => failed(&why),
    }
}

pub fn hist(flags: &HistFlags) -> ExitCode {
    match HistView::open(flags) {
        Ok(mut view) if flags.json => ended(in_lines(&mut view, flags.every)),
        Ok(view) => watch(view, flags.every),
        Err(why) => failed(&why),
    }
}

fn print(text: &str) -> ExitCode {
    // A closed pipe has read enough.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Until somebody has seen enough, or the larder is gone.
fn watch(mut view: impl View, every: Duration) -> ExitCode {
    ended(match TerminalScreen::open(Keys::Read) {
        Some(screen) => on_screen(screen, &mut view, every),
        None => in_lines(&mut view, every),
    })
}

fn ended(how: Result<(), String>) -> ExitCode {
    match how {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => failed(&why),
    }
}

fn on_screen(mut screen: TerminalScreen, view: &mut impl View, every: Duration) -> Result<(), String> {
    let gone = |error: io::Error| format!("the terminal: {error}");
    let mut looked = Moment::now();
    loop {
        screen.draw(|frame| view.draw(frame)).map_err(gone)?;
        let left = every.saturating_sub(since(looked));
        match screen.typed(left).map_err(gone)? {
            Some(Typed::Quit) => return Ok(()),
            Some(Typed::Key(key)) => view.key(key),
            Some(Typed::Resized) => {}
            None if since(looked) < every => {}
            None => {
                view.look()?;
                looked = Moment::now();
            }
        }
    }
}

fn in_lines(view: &mut impl View, every: Duration) -> Result<(), String> {
    let mut out = io::stdout();
    loop {
        std::thread::sleep(every);
        view.look()?;
        if out.write_all(view.lines().as_bytes()).and_then(|()| out.flush()).is_err() {
            return Ok(());
        }
    }
}
