//! Connecting to a name that has several addresses, of which some may lead nowhere (RFC 8305 §5): the first gets a head
//! start, then the next is tried beside it, and whichever answers first is the connection.
//!
//! Which addresses there are, and what a failure means for one, is its caller's to say.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use smallvec::SmallVec;

use super::address::Address;
use super::balance::{Book, RequestTurn};
use super::dial::DialAddress;
use super::limits::{DIAL_ATTEMPTS_MAX, DIAL_HEAD_START};
use super::origin_error::OriginErrorKind;

pub type Dialled<C> = Result<C, OriginErrorKind>;
pub type Addresses = SmallVec<[Arc<Address>; DIAL_ATTEMPTS_MAX]>;

type Running<F> = SmallVec<[(Arc<Address>, Pin<Box<F>>); DIAL_ATTEMPTS_MAX]>;

/// Dials `first`, then what `next` says, which is told what was begun. `failed` hears of each that failed, and why, but the one that
/// is returned: the last, if none answered.
pub async fn dial_staggered<C, F: Future<Output = Dialled<C>>>(
    first: Arc<Address>,
    mut next: impl FnMut(&[Arc<Address>]) -> Option<Arc<Address>>,
    dial: impl Fn(Arc<Address>) -> F,
    mut failed: impl FnMut(&Arc<Address>, &OriginErrorKind),
) -> (Dialled<C>, Arc<Address>) {
    let mut begun: Addresses = SmallVec::new();
    let mut running: Running<F> = SmallVec::new();
    let mut head_start = Box::pin(tokio::time::sleep(DIAL_HEAD_START));
    let mut due = Some(first);
    let mut last = None;
    poll_fn(|cx| {
        loop {
            if let Some(address) = due.take() {
                begun.push(Arc::clone(&address));
                running.push((Arc::clone(&address), Box::pin(dial(address))));
                head_start.as_mut().set(tokio::time::sleep(DIAL_HEAD_START));
            }
            let mut at = 0;
            while at < running.len() {
                match running[at].1.as_mut().poll(cx) {
                    Poll::Pending => at += 1,
                    Poll::Ready(Ok(stream)) => {
                        if let Some((kind, address)) = last.take() {
                            failed(&address, &kind);
                        }
                        return Poll::Ready((Ok(stream), running.remove(at).0));
                    }
                    Poll::Ready(Err(kind)) => {
                        let (address, _) = running.remove(at);
                        if let Some((kind, address)) = last.replace((kind, address)) {
                            failed(&address, &kind);
                        }
                    }
                }
            }
            let hurries = running.is_empty() || head_start.as_mut().poll(cx).is_ready();
            if hurries && begun.len() < DIAL_ATTEMPTS_MAX {
                due = next(&begun);
            }
            match (&due, last.take_if(|_| running.is_empty())) {
                (Some(_), former) => last = former.or(last.take()),
                (None, Some((kind, address))) => return Poll::Ready((Err(kind), address)),
                (None, None) => return Poll::Pending,
            }
        }
    })
    .await
}

impl Book {
    /// Whom to dial beside those that were begun: of the other IP version, if there is one, for that is what fails as a
    /// whole.
    pub fn beside(&self, turn: RequestTurn, now_ms: u64, begun: &[Arc<Address>]) -> Option<&Arc<Address>> {
        let is_v4 = |address: &Address| matches!(&address.place, DialAddress::Tcp(socket) | DialAddress::Http2(socket) | DialAddress::Tls(socket, _) if socket.is_ipv4());
        let last_is_v4 = begun.last().is_some_and(|address| is_v4(address));
        let is_begun = |address: &Arc<Address>| begun.iter().any(|other| Arc::ptr_eq(other, address));
        self.in_turn(turn.number)
            .find(|address| !address.is_ejected(now_ms) && !is_begun(address) && is_v4(address) != last_is_v4)
            .or_else(|| self.pick(turn, now_ms, begun))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::net::SocketAddr;

    use super::*;
    use crate::origin::balance::BookTerms;
    use crate::settings::UrlShare;

    fn address(text: &str) -> Arc<Address> {
        Arc::new(Address::new(DialAddress::Tcp(text.parse().unwrap()), 1, Arc::default()))
    }

    fn book(addresses: &[&str]) -> Book {
        let members = addresses.iter().map(|text| (address(text), UrlShare::default())).collect();
        Book::new(members, BookTerms::default(), (0, 0))
    }

    /// Dials that never end for what is called `silent`, fail for `refuses`, and answer for the rest. Who answered, what
    /// was begun, what failed.
    async fn run(addresses: &[&str], silent: &[&str], refuses: &[&str]) -> (Option<String>, Vec<String>, Vec<String>) {
        let book = book(addresses);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to: SocketAddr = listener.local_addr().unwrap();
        let (begun, lost) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let first = Arc::clone(book.pick(RequestTurn::default(), 0, &[]).unwrap());
        let dial = async |address: Arc<Address>| {
            begun.borrow_mut().push(address.label.to_string());
            if silent.contains(&&*address.label) {
                std::future::pending::<()>().await;
            }
            if refuses.contains(&&*address.label) {
                return Err(OriginErrorKind::Connect { why: io::ErrorKind::ConnectionRefused.into() });
            }
            Ok(tokio::net::TcpStream::connect(to).await.unwrap())
        };
        let next = |begun: &[Arc<Address>]| book.beside(RequestTurn::default(), 0, begun).cloned();
        let (dialled, by) =
            dial_staggered(first, next, dial, |address, _| lost.borrow_mut().push(address.label.to_string())).await;
        (dialled.is_ok().then(|| by.label.to_string()), begun.into_inner(), lost.into_inner())
    }

    #[tokio::test]
    async fn an_address_that_says_nothing_holds_nobody_up() {
        let addresses = ["192.0.2.1:80", "192.0.2.2:80", "[2001:db8::1]:80"];
        let (by, begun, lost) = run(&addresses, &["192.0.2.1:80"], &[]).await;
        assert_eq!(by.as_deref(), Some("[2001:db8::1]:80"));
        assert_eq!((begun, lost), (vec!["192.0.2.1:80".to_owned(), "[2001:db8::1]:80".to_owned()], Vec::new()));
    }

    #[tokio::test]
    async fn one_that_refuses_is_followed_at_once_and_heard_of() {
        let (by, begun, lost) = run(&["192.0.2.1:80", "192.0.2.2:80"], &[], &["192.0.2.1:80"]).await;
        assert_eq!(by.as_deref(), Some("192.0.2.2:80"));
        assert_eq!((begun.len(), lost), (2, vec!["192.0.2.1:80".to_owned()]));
    }

    #[tokio::test]
    async fn no_more_than_a_few_are_tried() {
        let addresses = ["192.0.2.1:80", "192.0.2.2:80", "192.0.2.3:80", "192.0.2.4:80"];
        let (by, begun, lost) = run(&addresses, &[], &addresses).await;
        assert_eq!((by, begun.len(), lost.len()), (None, DIAL_ATTEMPTS_MAX, DIAL_ATTEMPTS_MAX - 1));
    }
}
