//! Transmit: hands the answer to the client, and writes down how it went.

use crate::disks;
use crate::downstream::Downstream;
use crate::outgoing::Outgoing;
use crate::records::request_records;
use crate::transaction::{Step, Transaction};

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, outgoing: Outgoing) -> Step {
    // What a program invalidated and says to have invalidated. If that is not for good the log has it: the answer is made.
    if tx.policy.has_invalidated() {
        disks::settled(&tx.core.shared).await;
    }
<<<<<<< HEAD
    let sent = downstream.send(outgoing, tx.head.version, tx.persistent).await;
    tx.persistent = sent.persistent;
    tx.outcome.body_bytes = sent.body_bytes;
    if let Some(records) = tx.policy.records() {
        request_records::sent(records, sent.head_bytes, sent.body_bytes, tx.persistent);
=======
    // The instant run has begun already what it could not finish.
    if connection.exchange.writing() == Writing::Waiting {
        connection.exchange(Event::AnswerBegun);
    }
    let head_bytes = outgoing.head_bytes() as u64;
    let (end, sent) = send_counted(connection, outgoing).await;
    tx.outcome.body_bytes = sent;
    if let Some(records) = tx.vcl.as_deref().and_then(|state| state.records.as_ref()) {
        request_records::sent(records, head_bytes, sent, tx.persistent);
    }
    connection.exchange(if end == End::Sent { Event::AnswerEnded } else { Event::AnswerCut });
    Step::Log(end)
}

/// Sends all of it.
pub(crate) async fn send(connection: &mut Connection, outgoing: Outgoing) -> Result<(), End> {
    match send_counted(connection, outgoing).await {
        (End::Sent, _) => Ok(()),
        (end, _) => Err(end),
    }
}

async fn send_counted(connection: &mut Connection, mut outgoing: Outgoing) -> (End, u64) {
    let began = Moment::now();
    let timeout_ms = connection.core.site_ref().settings.limits.send_timeout.as_millis() as u64;
    connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
    let is_leased = outgoing.body.is_leased();
    if is_leased {
        // The kernel has these pages whether they are sent or not, and each time that it has to be asked again costs more.
        connection.wire.set_unsent_max(LENT_UNSENT_BYTES_MAX);
    }
    let end = poll_fn(|cx| outgoing.poll_send(connection, cx, began, timeout_ms)).await;
    connection.slot.waits_no_more();
    if end == End::MemoryNeeded {
        connection.wire.resets_when_closed();
    }
    if is_leased {
        connection.wire.set_unsent_max(UNSENT_BYTES_MAX);
    }
    (end, outgoing.body_bytes_sent)
}

impl Outgoing {
    fn poll_send(
        &mut self,
        connection: &mut Connection,
        cx: &mut Context<'_>,
        began: Moment,
        timeout_ms: u64,
    ) -> Poll<End> {
        loop {
            let mut body_end = None;
            while !self.has_enough() && !self.is_all_queued() && body_end.is_none() {
                match self.body.poll_more(&mut self.queue, cx) {
                    Poll::Ready(None) => {}
                    Poll::Ready(Some(end)) => body_end = Some(end),
                    Poll::Pending => break,
                }
            }
            if self.queue.is_empty() && self.body.pages().is_none() {
                if let Some(end) = body_end {
                    return Poll::Ready(end);
                }
                return self.wait_for_body(connection, cx, began);
            }
            if self.pace.is_starved() {
                self.pace.feed(began.micros_until(Moment::now()));
            }
            if self.queue.is_empty() {
                match self.body.poll_at_hand(cx) {
                    Poll::Pending => return self.wait_for_body(connection, cx, began),
                    Poll::Ready(Err(token)) => return Poll::Ready(End::Cut(token)),
                    Poll::Ready(Ok(())) => {}
                }
            }
            if self.queue.is_empty()
                && let Some((pages, from, to)) = self.body.pages()
            {
                match connection.wire.poll_send_pages(cx, pages, *from, to) {
                    // The file has become shorter than it was when its length was said.
                    Poll::Ready(Ok(0)) => return Poll::Ready(End::Cut("file-cut-short")),
                    Poll::Ready(Ok(sent)) => {
                        *from += sent as u64;
                        connection.core.counters.bytes_out.add(sent as u64);
                        self.body_bytes_sent += sent as u64;
                        connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
                        continue;
                    }
                    Poll::Ready(Err(error)) => {
                        self.body.failed(&error);
                        return Poll::Ready(End::ClientLeft);
                    }
                    Poll::Pending => return self.wait_for_client(connection, cx, began, timeout_ms),
                }
            }
            let slices: SmallVec<[IoSlice<'_>; SLICES_MAX]> =
                self.queue.iter().take(SLICES_MAX).map(|piece| IoSlice::new(piece)).collect();
            match connection.wire.poll_write(cx, &slices) {
                Poll::Ready(Ok(written)) => {
                    drop(slices);
                    self.advance(connection, written);
                    if !(self.queue.is_empty() && matches!(self.body, OutBody::Empty)) {
                        connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(End::ClientLeft),
                Poll::Pending => {
                    drop(slices);
                    self.account_for(connection);
                    return self.wait_for_client(connection, cx, began, timeout_ms);
                }
            }
        }
    }

    /// Is there as much as one write takes? Of what nobody else holds, less: each slow client costs so much.
    fn has_enough(&self) -> bool {
        if self.queue.len() >= SLICES_MAX {
            return true;
        }
        self.body.is_handed_over() && self.queue.iter().map(Bytes::len).sum::<usize>() >= QUEUED_BYTES_MAX
    }

    /// Is the rest of what somebody else holds in the queue? It is held on to until it has gone: what is queued of it is on
    /// its account.
    fn is_all_queued(&self) -> bool {
        !self.queue.is_empty()
            && match &self.body {
                OutBody::Held { from, to, .. } => from == to,
                OutBody::Parts { parts, .. } => parts.is_empty(),
                _ => false,
            }
    }

    /// What the queue holds and nobody else.
    fn own_bytes(&self) -> usize {
        if matches!(self.body, OutBody::Held { .. } | OutBody::Parts { .. } | OutBody::Chunks(_)) {
            return 0;
        }
        let bytes: usize = self.queue.iter().map(Bytes::len).sum();
        bytes + bytes.min(QUEUE_ENDS_BYTES)
    }

    /// A client that has to be waited for keeps what is queued for it.
    fn account_for(&mut self, connection: &Connection) {
        let bytes = self.own_bytes();
        if bytes > 0 || self.held.is_some() {
            let account = connection.core.shared.cache.account();
            self.held.get_or_insert_with(|| Box::new(account.charge(0))).resize(bytes);
        }
    }

    /// The origin is slow, not the client: its own limits count. But the client may leave meanwhile.
    fn wait_for_body(&mut self, connection: &mut Connection, cx: &mut Context<'_>, began: Moment) -> Poll<End> {
        if connection.has_left(cx) {
            return Poll::Ready(End::ClientLeft);
        }
        connection.slot.waits_no_more();
        connection.slot.set_deadline(u64::MAX);
        if !self.pace.is_starved() {
            self.pace.starve(began.micros_until(Moment::now()));
        }
        Poll::Pending
    }

    fn wait_for_client(
        &self,
        connection: &Connection,
        cx: &mut Context<'_>,
        began: Moment,
        timeout_ms: u64,
    ) -> Poll<End> {
        if connection.slot.deadline() == u64::MAX {
            // We waited for the origin before; now it is the client's turn.
            connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
        }
        if connection.slot.doom() == Doom::Memory {
            return Poll::Ready(End::MemoryNeeded);
        }
        if connection.slot.must_end() || self.is_too_slow(connection, began, timeout_ms) {
            return Poll::Ready(End::ClientSlow);
        }
        // Of the head too.
        let sent_bytes = self.body_bytes_sent.wrapping_sub(self.head_bytes_left as u64);
        connection.slot.waits_for_client(|before| {
            Unsent::new(before, (sent_bytes, self.own_bytes()), self.body.rest(), deadline_now_ms())
        });
        connection.slot.park(cx.waker());
        Poll::Pending
    }

    fn advance(&mut self, connection: &Connection, written: usize) {
        connection.core.counters.bytes_out.add(written as u64);
        let of_head = written.min(self.head_bytes_left);
        self.head_bytes_left -= of_head;
        self.body_bytes_sent += (written - of_head) as u64;
        let mut left = written;
        while let Some(first) = self.queue.front_mut() {
            if left < first.len() {
                let _ = first.split_to(left);
                return;
            }
            left -= first.len();
            self.queue.pop_front();
        }
    }

    fn is_too_slow(&self, connection: &Connection, began: Moment, timeout_ms: u64) -> bool {
        let rate_min = connection.core.site_ref().settings.limits.send_rate_min;
        let at_micros = began.micros_until(Moment::now());
        self.pace.is_too_slow(at_micros, self.body_bytes_sent, rate_min, timeout_ms)
    }
}

impl OutBody {
    /// Do its pieces belong to the queue alone?
    fn is_handed_over(&self) -> bool {
        matches!(self, OutBody::Follow { .. } | OutBody::Origin { .. } | OutBody::Slices(_))
    }

    fn rest(&self) -> RestOfBody {
        match self {
            OutBody::Held { source, .. } | OutBody::Parts { source, .. } => source.rest(),
            OutBody::Follow { follower, .. } => RestOfBody::of_flight(follower.flight()),
            OutBody::Slices(read) => read.rest(),
            OutBody::Empty | OutBody::Bytes(_) | OutBody::Origin { .. } | OutBody::Chunks(_) | OutBody::Broken(_) => {
                RestOfBody::Queued
            }
        }
    }

    /// Puts the next pieces into the queue; says when there are no more, and why.
    fn poll_more(&mut self, queue: &mut VecDeque<Bytes>, cx: &mut Context<'_>) -> Poll<Option<End>> {
        match self {
            OutBody::Empty => return Poll::Ready(Some(End::Sent)),
            OutBody::Broken(end) => return Poll::Ready(Some(*end)),
            OutBody::Bytes(bytes) => {
                queue.push_back(std::mem::take(bytes));
                *self = OutBody::Empty;
            }
            OutBody::Held { from, to, .. } if from == to => *self = OutBody::Empty,
            // Sent from where it lies, once the head has gone.
            OutBody::Held { source, .. } if source.is_in_file() => return Poll::Pending,
            OutBody::Held { source, from, to } => {
                let piece_end = from.saturating_add(PIECES_BYTES_MAX).min(*to);
                source.put_pieces(queue, *from, piece_end);
                *from = piece_end;
            }
            OutBody::Parts { source, parts } => match parts.front_mut() {
                None => *self = OutBody::Empty,
                Some((head, _)) if !head.is_empty() => queue.push_back(Bytes::from(std::mem::take(head))),
                Some((_, range)) if range.is_empty() => drop(parts.pop_front()),
                Some((_, range)) if sends_pages(source, range) => return Poll::Pending,
                Some((_, range)) => {
                    let piece_end = range.start.saturating_add(PIECES_BYTES_MAX).min(range.end);
                    source.put_pieces(queue, range.start, piece_end);
                    range.start = piece_end;
                }
            },
            OutBody::Follow { follower, framing } => {
                if let Some(rest) = landed_in_pages(follower, framing) {
                    *self = rest;
                    return Poll::Ready(None);
                }
                let piece = match follower.poll_body(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(piece) => piece,
                };
                return Poll::Ready(match piece {
                    BodyPiece::Data(pieces) => framing.push(queue, pieces.into_iter()),
                    BodyPiece::End { trailers } => framing.end(queue, trailers.as_deref()),
                    BodyPiece::Truncated(failure) => Some(End::Cut(failure.token)),
                    BodyPiece::CutOff => Some(End::ClientSlow),
                })
                .map(|end| self.ended(end));
            }
            OutBody::Origin { body, framing } => {
                let piece = match body.poll_next(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(piece) => piece,
                };
                return Poll::Ready(match piece {
                    Ok(OriginPiece::Data(bytes) | OriginPiece::InBlock(bytes)) => {
                        framing.push(queue, std::iter::once(bytes))
                    }
                    Ok(OriginPiece::End(trailers)) => framing.end(queue, trailers.as_ref()),
                    Err(failure) => Some(End::Cut(failure.token)),
                })
                .map(|end| self.ended(end));
            }
            OutBody::Slices(read) => {
                let end = match std::task::ready!(read.poll_more(queue, cx)) {
                    Ok(true) => None,
                    Ok(false) => Some(End::Sent),
                    Err(failure) => Some(End::Cut(failure.token)),
                };
                return Poll::Ready(self.ended(end));
            }
            OutBody::Chunks(read) if read.has_begun() && !queue.is_empty() => return Poll::Pending,
            OutBody::Chunks(read) => {
                let end = match std::task::ready!(read.poll_next(cx)) {
                    Ok(Some(chunk)) => {
                        queue.push_back(chunk);
                        None
                    }
                    Ok(None) => Some(End::Sent),
                    Err(why) => Some(End::Cut(why.token())),
                };
                return Poll::Ready(self.ended(end));
            }
        }
        Poll::Ready(None)
    }

    /// What comes next, if it is sent as it lies in the page file: where from, which moves, and where to.
    fn pages(&mut self) -> Option<(Pages<'_>, &mut u64, u64)> {
        match self {
            OutBody::Held { source, from, to } if *from < *to => Some((source.pages_at(*from)?, from, *to)),
            OutBody::Parts { source, parts } => {
                let (_, range) =
                    parts.front_mut().filter(|(head, range)| head.is_empty() && sends_pages(source, range))?;
                Some((source.pages_at(range.start)?, &mut range.start, range.end))
            }
            OutBody::Slices(read) => read.pages(),
            _ => None,
        }
    }

    /// The part of a whole that is sent next, if it is sent from where it lies.
    fn next_in_file(&mut self) -> Option<(&mut BodySource, Range<u64>)> {
        match self {
            OutBody::Held { source, from, to } if *from < *to && source.is_in_file() => Some((source, *from..*to)),
            OutBody::Parts { source, parts } => {
                let (_, range) = parts.front().filter(|(head, range)| head.is_empty() && sends_pages(source, range))?;
                Some((source, range.clone()))
            }
            OutBody::Slices(read) => read.next_in_file(),
            _ => None,
        }
    }

    /// Ready when what is sent next from a file is in memory.
    fn poll_at_hand(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        match self.next_in_file() {
            Some((source, range)) => source.poll_at_hand(cx, range.start, range.end),
            None => Poll::Ready(Ok(())),
        }
    }

    fn is_leased(&mut self) -> bool {
        match self {
            OutBody::Held { source, .. } | OutBody::Parts { source, .. } => matches!(source, BodySource::Leased(_)),
            OutBody::Slices(read) => matches!(read.next_in_file(), Some((BodySource::Leased(_), _))),
            _ => false,
        }
    }

    fn failed(&mut self, error: &io::Error) {
        if let Some((BodySource::Leased(read), _)) = self.next_in_file() {
            read.failed(error);
        }
    }

    /// After its end nothing more is asked of the source, and what is queued goes out first.
    fn ended(&mut self, end: Option<End>) -> Option<End> {
        match end {
            Some(End::Sent) => {
                *self = OutBody::Empty;
                None
            }
            Some(end) => {
                *self = OutBody::Broken(end);
                Some(end)
            }
            None => None,
        }
    }
}

/// The rest of a body that has landed meanwhile, if it is sent as it lies in the page file: nothing of it is copied any more.
fn landed_in_pages(follower: &Follower, framing: &Framing) -> Option<OutBody> {
    let Framing::Length { left } = *framing else { return None };
    let (object, from) = follower.landed()?;
    let is_there = object.body().extent().is_some() && from + left <= object.body().len();
    is_there.then(|| OutBody::Held { source: BodySource::Object(object), from, to: from + left })
}

/// Is a part sent as it lies in a file? A short one of the page file is copied, and goes out with its head.
fn sends_pages(source: &BodySource, range: &Range<u64>) -> bool {
    let is_short = range.end - range.start <= COPIED_PART_BYTES_MAX;
    !range.is_empty() && source.is_in_file() && !(is_short && source.is_in_memory())
}

impl Framing {
    /// Frames data. More than was promised is left out; when all that was promised is there, that is the end.
    fn push(&mut self, queue: &mut VecDeque<Bytes>, pieces: impl Iterator<Item = Bytes>) -> Option<End> {
        match self {
            Framing::Length { left } => {
                for piece in pieces {
                    let take = (piece.len() as u64).min(*left);
                    queue.push_back(piece.slice(..take as usize));
                    *left -= take;
                }
                (*left == 0).then_some(End::Sent)
            }
            Framing::UntilClose => {
                queue.extend(pieces);
                None
            }
            Framing::Chunked => {
                let pieces: SmallVec<[Bytes; 8]> = pieces.collect();
                let length = pieces.iter().map(Bytes::len).sum();
                if length > 0 {
                    let mut head = [0; CHUNK_HEAD_BYTES_MAX];
                    let head_len = chunk_head(length, &mut head);
                    queue.push_back(Bytes::copy_from_slice(&head[..head_len]));
                    queue.extend(pieces);
                    queue.push_back(Bytes::from_static(CHUNK_END));
                }
                None
            }
        }
    }

    /// The source has ended in good order. Was everything there that was promised?
    fn end(&mut self, queue: &mut VecDeque<Bytes>, trailers: Option<&Fields>) -> Option<End> {
        match self {
            Framing::Length { left: 0 } | Framing::UntilClose => Some(End::Sent),
            Framing::Length { .. } => Some(End::Cut("body-too-short")),
            Framing::Chunked => {
                queue.push_back(last_chunk(trailers));
                Some(End::Sent)
            }
        }
    }
}

/// The end of a chunked body, with its trailers.
pub(crate) fn last_chunk(trailers: Option<&Fields>) -> Bytes {
    match trailers {
        None => Bytes::from_static(LAST_CHUNK_AND_END),
        Some(trailers) => {
            let mut last = LAST_CHUNK.to_vec();
            write_trailers(trailers.view(), &mut last);
            Bytes::from(last)
        }
>>>>>>> a6ff3b1 (store, cache: say that a body on a disk is leased to its answer)
    }
    Step::Log(sent.end)
}
