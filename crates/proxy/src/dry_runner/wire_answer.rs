//! For tests of the proxy: what a mocked origin sends by its bytes, and what it does with a connection behind an answer.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::dry_runner::mocked_origins::{MockedOrigin, Stage};

/// An answer that need not be a whole one, nor one at all.
#[derive(Clone, Debug, PartialEq)]
pub struct WireAnswer {
    pub bytes: Vec<u8>,
    pub then: Then,
}

/// What becomes of its connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Then {
    Closes,
    /// The next request on it gets the next answer.
    Listens,
    /// Nobody reads what comes, and it is closed when the test says so.
    Rests,
}

impl Stage {
    /// Origins close what rests, at a moment at which no core looks.
    pub(crate) fn hang_up(&self) {
        self.resting.lock().clear();
    }
}

impl MockedOrigin {
    pub(super) async fn go_on(&self, mut stream: UnixStream, answer: WireAnswer) -> io::Result<()> {
        stream.write_all(&answer.bytes).await?;
        match answer.then {
            Then::Closes => stream.shutdown().await,
            Then::Listens => Box::pin(self.converse(stream, None)).await,
            Then::Rests => {
                self.stage.resting.lock().push(stream.into_std()?);
                Ok(())
            }
        }
    }
}
