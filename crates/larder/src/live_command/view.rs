//! What is shown of a running larder, on a screen or in lines.

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;

/// What is shown, and how it goes on.
pub trait View {
    /// Looks again. It is called when an interval is over. A larder that does not answer is waited for.
    fn look(&mut self) -> Result<(), String>;

    fn draw(&self, frame: &mut Frame<'_>);

    fn key(&mut self, key: KeyCode);

    /// What is printed of the last interval, where there is no screen.
    fn lines(&self) -> String;
}
