//! What `filter_work` must do: the same bytes come out wherever a chain is worked on, and no core is held by a costly one.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use coding::{Bounds, Coding, Flaw};

use crate::coding_threads::CodingThreads;
use crate::filter_chain::{FilterChain, FilterFault, FilterKind, Filtered};
use crate::filter_work::FilterWork;
use crate::limits::{FILTER_JOB_BYTES, FILTER_PIECE_BYTES, Limits};

const GZIP: FilterKind = FilterKind::Encode(Coding::Gzip, 6);
const GUNZIP: FilterKind = FilterKind::Decode(Coding::Gzip);
const BROTLI: FilterKind = FilterKind::Encode(Coding::Brotli, 11);

fn threads() -> Arc<CodingThreads> {
    Arc::new(CodingThreads::start(&Limits::default(), 2).unwrap())
}

fn work(kinds: &[FilterKind], threads: &Arc<CodingThreads>) -> FilterWork {
    FilterWork::new(FilterChain::new(kinds, Bounds::default(), None).unwrap(), threads)
}

/// A text of which no two pages are the same.
fn page(bytes: usize) -> Vec<u8> {
    let mut seed = 1_u32;
    let words = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        format!("<li class=\"item-{}\">word{}</li>\n", seed >> 30, seed >> 20)
    });
    words.flat_map(String::into_bytes).take(bytes).collect()
}

/// All that comes of these pieces, each pushed when the one before it is used up.
async fn through(mut work: FilterWork, pieces: &[&[u8]]) -> Result<Vec<u8>, FilterFault> {
    let (mut pieces, mut out) = (pieces.iter(), Vec::new());
    loop {
        match poll_fn(|cx| work.poll_pull(cx)).await? {
            Filtered::Piece(piece) => {
                assert!(!piece.is_empty());
                out.extend_from_slice(&piece);
            }
            Filtered::Hungry => match pieces.next() {
                Some(piece) => work.push(Bytes::copy_from_slice(piece)),
                None => work.end(),
            },
            Filtered::TurnOver => panic!("that is its own affair"),
            Filtered::End => return Ok(out),
        }
    }
}

#[tokio::test]
async fn the_same_comes_out_wherever_it_is_worked_on() {
    let (some, none, text) = (threads(), Arc::new(CodingThreads::none()), page(300_000));
    let pieces: Vec<&[u8]> = text.chunks(70_000).collect();
    let zipped = through(work(&[GZIP], &none), &pieces).await.unwrap();
    for kinds in [
        &[GZIP][..],
        &[FilterKind::Encode(Coding::Zstd, 19)],
        &[FilterKind::Encode(Coding::Brotli, 9)],
        &[GZIP, FilterKind::Check(Coding::Gzip), GUNZIP, FilterKind::Encode(Coding::Zstd, 3)],
    ] {
        let jobs = some.status().now.jobs;
        let there = through(work(kinds, &some), &pieces).await.unwrap();
        assert!(some.status().now.jobs > jobs, "{kinds:?}: a thread did some of it");
        assert_eq!(through(work(kinds, &none), &pieces).await.as_ref(), Ok(&there), "{kinds:?}");
    }
    for threads in [&some, &none] {
        assert_eq!(through(work(&[GUNZIP], threads), &[&zipped]).await.as_ref(), Ok(&text));
    }
}

#[tokio::test]
async fn what_is_soon_done_stays_on_the_core() {
    let (threads, text) = (threads(), page(6_000));
    let zipped = through(work(&[GZIP], &threads), &[&text]).await.unwrap();
    assert_eq!(through(work(&[GUNZIP], &threads), &[&zipped]).await, Ok(text.clone()));
    through(work(&[FilterKind::Encode(Coding::Zstd, 3)], &threads), &[&text]).await.unwrap();
    assert_eq!(threads.status().now.jobs, 0);
    through(work(&[BROTLI], &threads), &[&text]).await.unwrap();
    assert!(threads.status().now.jobs > 0);
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_said_wherever_it_is_seen() {
    let (threads, text) = (threads(), page(400_000));
    let zipped = through(work(&[GZIP], &threads), &[&text]).await.unwrap();
    let kinds = [GUNZIP, FilterKind::Encode(Coding::Brotli, 5)];
    let fault = |flaw| Err(FilterFault { filter: GUNZIP, flaw });
    let half = &zipped[..zipped.len() / 2];
    assert_eq!(through(work(&kinds, &threads), &[half]).await, fault(Flaw::Truncated));
    let mut bad = zipped.clone();
    bad[zipped.len() - 2] ^= 1;
    assert_eq!(through(work(&kinds, &threads), &[&bad]).await, fault(Flaw::Corrupt));
    assert!(threads.status().now.jobs > 0);
}

#[tokio::test]
async fn who_reads_along_is_given_what_a_thread_made() {
    let (threads, text) = (threads(), page(10_000));
    let (mut zip, mut plain) = (work(&[BROTLI], &threads), Vec::new());
    let mut unzip = work(&[FilterKind::Decode(Coding::Brotli)], &threads);
    for piece in text.chunks(5_000) {
        zip.push(Bytes::copy_from_slice(piece));
        while let Filtered::Piece(piece) = poll_fn(|cx| zip.poll_flush(cx)).await.unwrap() {
            unzip.push(piece);
        }
        while let Filtered::Piece(piece) = poll_fn(|cx| unzip.poll_pull(cx)).await.unwrap() {
            plain.extend_from_slice(&piece);
        }
        assert!(plain.ends_with(piece), "{}", plain.len());
    }
    assert_eq!(plain, text);
}

/// The others of this core go on meanwhile: here one that only counts its turns.
#[tokio::test]
async fn a_core_goes_on_while_a_large_body_is_coded() {
    let (threads, text, turns) = (threads(), page(200_000), AtomicU32::new(0));
    let pieces = [&text[..]];
    let coding = through(work(&[BROTLI], &threads), &pieces);
    let others = async {
        loop {
            turns.fetch_add(1, Relaxed);
            tokio::task::yield_now().await;
        }
    };
    let coded = tokio::select! {
        coded = coding => coded.unwrap(),
        () = others => unreachable!("it goes on for ever"),
    };
    let status = threads.status().now;
    assert!(coded.len() < text.len() / 3 && status.jobs >= 1, "{} {status:?}", coded.len());
    // They would have had some ten turns if the core had done it.
    assert!(turns.into_inner() > 1_000);
}

#[tokio::test]
async fn without_threads_a_core_goes_on_between_two_jobs() {
    let (none, text) = (Arc::new(CodingThreads::none()), page(500_000));
    let (mut zip, mut cx, mut rests) = (work(&[GZIP], &none), Context::from_waker(Waker::noop()), 0);
    let mut pieces = text.chunks(50_000);
    loop {
        match zip.poll_pull(&mut cx) {
            Poll::Pending => rests += 1,
            Poll::Ready(Ok(Filtered::Hungry)) => match pieces.next() {
                Some(piece) => zip.push(Bytes::copy_from_slice(piece)),
                None => zip.end(),
            },
            Poll::Ready(Ok(Filtered::End)) => break,
            Poll::Ready(pulled) => assert!(matches!(pulled, Ok(Filtered::Piece(_)))),
        }
    }
    assert!(rests >= 10, "{rests}");
}

#[tokio::test]
async fn a_bomb_makes_no_more_than_a_job_may() {
    let (threads, none) = (threads(), Arc::new(CodingThreads::none()));
    let zeros = vec![0; 8 << 20];
    let bomb = through(work(&[GZIP], &none), &[&zeros]).await.unwrap();
    let mut unzip = work(&[GUNZIP], &threads);
    unzip.push(Bytes::from(bomb));
    unzip.end();
    let mut count = 0;
    loop {
        match poll_fn(|cx| unzip.poll_pull(cx)).await.unwrap() {
            Filtered::Piece(piece) => count += piece.len(),
            Filtered::End => break,
            pulled => panic!("{pulled:?}"),
        }
        assert!(unzip.made_bytes() < FILTER_JOB_BYTES + FILTER_PIECE_BYTES, "{}", unzip.made_bytes());
    }
    assert_eq!(count, zeros.len());
    assert!(threads.status().now.jobs > 8);
}

#[tokio::test]
async fn who_leaves_drops_what_has_not_begun() {
    let limits = Limits { coding_threads: 1, ..Limits::default() };
    let threads = Arc::new(CodingThreads::start(&limits, 1).unwrap());
    let (release, held) = std::sync::mpsc::channel::<()>();
    let blocker = threads.now(0, move || held.recv().is_err()).unwrap_or_else(|_| panic!("there is room"));
    let mut left = work(&[BROTLI], &threads);
    left.push(Bytes::from(page(50_000)));
    assert!(left.poll_pull(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(left);
    drop(release);
    assert_eq!(blocker.await, Ok(true));
    // The next one comes behind it.
    through(work(&[BROTLI], &threads), &[&page(1_000)]).await.unwrap();
    assert_eq!(threads.status().now.abandoned, 1);
}
