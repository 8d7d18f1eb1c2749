//! One conversation over the management protocol: the greeting, the secret, then commands and answers until one side ends it.
//!
//! Which stream it is, and who may have one, is the program's to say. Commands that may take time run in a thread for
//! blocking calls.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::answers::{Answer, status};
use crate::authentication::Secret;
use crate::cli_reader::{CliReader, Heard};
use crate::commands::Front;
use crate::limits::{ANSWER_PATIENCE, LINGER_READS_MAX, LINGER_TIME, STRANGER_PATIENCE};

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By `quit`, or by the other side.
    Closed,
    /// Whoever it was did not know the secret, or sent what nobody reads.
    Refused,
}

/// Who speaks, as far as that is settled.
enum Speaker {
    Stranger { secret: Secret, challenge: String },
    Known,
}

/// Converses to the end. With a secret, nothing is done before it was shown; `is_known` is called when it was.
pub async fn converse<S>(
    mut stream: S,
    front: Arc<Front>,
    secret: Option<(Secret, String)>,
    is_known: impl FnOnce(),
) -> io::Result<Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut reader = CliReader::default();
    let mut is_known = Some(is_known);
    let mut speaker = match secret {
        Some((secret, challenge)) => Speaker::Stranger { secret, challenge },
        None => Speaker::Known,
    };
    let greeting = match &speaker {
        Speaker::Stranger { challenge, .. } => {
            Answer::new(status::AUTHENTICATION, format!("{challenge}\n\nAuthentication required.\n"))
        }
        Speaker::Known => Answer::ok(front.banner()),
    };
    send(&mut stream, &greeting).await?;
    loop {
        if matches!(speaker, Speaker::Known)
            && let Some(tell) = is_known.take()
        {
            reader.is_known = true;
            tell();
        }
        let heard = match &speaker {
            Speaker::Known => hear(&mut stream, &mut reader).await?,
            Speaker::Stranger { .. } => {
                match tokio::time::timeout(STRANGER_PATIENCE, hear(&mut stream, &mut reader)).await {
                    Ok(heard) => heard?,
                    Err(_) => return Ok(Ended::Refused),
                }
            }
        };
        let answer = match heard {
            Heard::More => return Ok(Ended::Closed),
            Heard::TooLong(what, bytes_max) => {
                let sentence = format!("The {what} is longer than {bytes_max} bytes.\n");
                return refuse(&mut stream, sentence).await;
            }
            Heard::NoText => {
                return refuse(&mut stream, "This port reads lines of text, and no TLS.\n".to_owned()).await;
            }
            Heard::Nonsense(why) => Answer::new(status::SYNTAX, format!("Syntax Error: {why}\n")),
            Heard::Command(words) if is_http(&words) => {
                return refuse(&mut stream, "This is no web server.\n".to_owned()).await;
            }
            Heard::Command(words) => match &speaker {
                Speaker::Known => act(&front, words).await?,
                Speaker::Stranger { secret, challenge } => match of_stranger(&words, secret, challenge) {
                    Verdict::Asks => act(&front, words).await?,
                    Verdict::Answer(answer) => answer,
                    Verdict::Known => {
                        speaker = Speaker::Known;
                        Answer::ok(front.banner())
                    }
                    Verdict::Refused => return refuse(&mut stream, String::new()).await,
                },
            },
        };
        let is_last = answer.status == status::CLOSE;
        send(&mut stream, &answer).await?;
        if is_last {
            return Ok(Ended::Closed);
        }
    }
}

/// The next command. `More`: the other side has left.
async fn hear<S: AsyncRead + Unpin>(stream: &mut S, reader: &mut CliReader) -> io::Result<Heard> {
    let mut bytes = [0; 4096];
    loop {
        match reader.next() {
            Heard::More => {}
            heard => return Ok(heard),
        }
        match stream.read(&mut bytes).await? {
            0 => return Ok(Heard::More),
            count => reader.push(&bytes[..count]),
        }
    }
}

async fn act(front: &Arc<Front>, words: Vec<Vec<u8>>) -> io::Result<Answer> {
    let front = Arc::clone(front);
    tokio::task::spawn_blocking(move || front.answer(&words)).await.map_err(io::Error::other)
}

/// A request of a browser's: a page of somebody else's may have made it, with commands as its body.
fn is_http(words: &[Vec<u8>]) -> bool {
    matches!(words, [method, _, version] if version.starts_with(b"HTTP/") && method.iter().all(u8::is_ascii_uppercase))
}

enum Verdict {
    /// Something that anybody may ask.
    Asks,
    Answer(Answer),
    Known,
    Refused,
}

/// What a stranger may ask: whether somebody is there, what could be asked, and to be known.
fn of_stranger(words: &[Vec<u8>], secret: &Secret, challenge: &str) -> Verdict {
    match words {
        [name, answer] if name == b"auth" => {
            if secret.is_shown_by(challenge, answer) {
                Verdict::Known
            } else {
                Verdict::Refused
            }
        }
        [name, ..] if name == b"ping" || name == b"quit" || name == b"help" => Verdict::Asks,
        [name] if name == b"auth" => Verdict::Answer(Answer::new(status::TOO_FEW, "Too few parameters\n")),
        _ => Verdict::Answer(Answer::new(status::UNKNOWN, "Unknown request.\nType 'help' for more info.\n")),
    }
}

/// The last word. What is still sent is read away for a moment, or the reset takes our answer with it.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, sentence: String) -> io::Result<Ended> {
    send(stream, &Answer::new(status::CLOSE, sentence)).await?;
    let linger = async {
        stream.shutdown().await?;
        let mut rest = [0; 4096];
        for _ in 0..LINGER_READS_MAX {
            if stream.read(&mut rest).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    // Whoever holds on has had their answer.
    let _ = tokio::time::timeout(LINGER_TIME, linger).await;
    Ok(Ended::Refused)
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, answer: &Answer) -> io::Result<()> {
    let bytes = answer.bytes();
    let sent = async {
        stream.write_all(&bytes).await?;
        stream.flush().await
    };
    tokio::time::timeout(ANSWER_PATIENCE, sent).await?
}

#[cfg(test)]
#[path = "cli_session_tests.rs"]
mod tests;
