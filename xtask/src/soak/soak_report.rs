//! The report of a soak, and its bars: no wrong byte, no request that failed outside of the windows that were announced, no event that did not end as it must, memory and descriptors below
//! their lines and not growing, and nothing left out that was to be tested.

use std::sync::atomic::Ordering::SeqCst;

use super::soak_books::{LARDERS, SoakBooks, SoakRoad, WindowKind};
use super::soak_events::EventDone;
use super::soak_schedule::SoakEventKind;
use super::soak_watcher::{Growth, ProcessSample, growth, judged};

/// Of one process. The clients of a soak are some forty, with as many connections to origins and memcached.
const DESCRIPTORS_MAX: u64 = 300;
/// What a process may grow while it is judged, if that is so long at least: so much of its line. In a short run its store is still filling, and its growth is only said.
const GROWTH_SECONDS_MIN: f64 = 120.0;
const GROWTH_OF_LINE_MAX: f64 = 0.1;
const DESCRIPTORS_GROWTH_MAX: f64 = 30.0;
/// Of all kinds of events each must have come in a run of so many seconds.
pub const ALL_EVENTS_SECONDS: f64 = 150.0;
/// Of what is wrong, and of what failed, so much is shown; all that is known of both is in a file.
const SENTENCES_SHOWN: usize = 12;
const MIB: f64 = (1 << 20) as f64;

/// All that is known of a soak when it is over.
pub struct SoakRun<'s> {
    pub seed: u64,
    pub seconds: f64,
    pub books: &'s SoakBooks,
    pub events: &'s [EventDone],
    pub samples: &'s [ProcessSample],
    pub line_bytes: u64,
    pub mounts_missing: Option<&'s str>,
}

impl SoakRun<'_> {
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.summary()];
        let right = |road: &SoakRoad| self.books.right(*road);
        lines.push(format!(
            "answers and the like that were right: {}, hits {}, confirmed {}, put again behind a close {}",
            SoakRoad::ALL.iter().map(right).sum::<u64>(),
            self.books.hits.load(SeqCst),
            self.books.not_modified.load(SeqCst),
            self.books.sent_again.load(SeqCst)
        ));
        lines.extend(SoakRoad::ALL.iter().map(|road| format!("  {:<28} {:>9}", road.words(), right(road))));
        let (asked, confirmed) = (&self.books.site.asked, &self.books.site.confirmed);
        lines.push(format!(
            "the origin was asked {} times and confirmed {}",
            asked.load(SeqCst),
            confirmed.load(SeqCst)
        ));
        lines.push(format!("wrong: {}", self.wrong()));
        lines.push(format!("failed outside of windows: {}", self.failed()));
        for kind in WindowKind::ALL {
            let windows = self.books.windows();
            let lengths: Vec<f64> = windows
                .iter()
                .filter(|window| window.kind == kind)
                .filter_map(|window| Some(window.to? - window.from))
                .collect();
            let longest = lengths.iter().copied().fold(0.0, f64::max);
            let (failed, total) = (self.books.failed_in(kind), lengths.iter().sum::<f64>());
            lines.push(format!(
                "failed while {}: {failed}, in {} windows, {total:.1} s, the longest {longest:.2} s",
                kind.words(),
                lengths.len()
            ));
        }
        lines.push("events:".to_owned());
        lines.extend(SoakEventKind::ALL.iter().map(|kind| self.event_line(*kind)));
        if let Some(why) = self.mounts_missing {
            lines
                .push(format!("left out, for this machine has no file systems to mount: full and frozen ones ({why})"));
        }
        lines.push(format!(
            "memory: the line is {:.1} MiB, at most {:.1} MiB were resident; at most {} descriptors of {DESCRIPTORS_MAX}",
            self.line_bytes as f64 / MIB,
            self.most(|sample| sample.resident_bytes) as f64 / MIB,
            self.most(|sample| sample.descriptors)
        ));
        lines.extend((0..LARDERS).map(|larder| self.growth_line(larder)));
        lines
    }

    /// Every event and window with its time, and what was wrong and failed.
    pub fn log(&self) -> String {
        let mut lines = Vec::new();
        for EventDone { event, from, to, error } in self.events {
            let words = event.kind.words();
            let error = error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
            lines.push(format!("{from:.3}-{to:.3} s, larder {}, {words}{error}", event.larder));
        }
        lines.extend(self.books.windows().iter().map(|window| format!("{window:?}")));
        for (what, sentences) in [("wrong", &self.books.wrong), ("failed", &self.books.failed)] {
            let sentences = sentences.lock().expect("nobody panicked");
            lines.extend(sentences.first.iter().map(|sentence| format!("{what}: {sentence}")));
        }
        lines.join("\n") + "\n"
    }

    /// All of it in a line.
    pub fn summary(&self) -> String {
        let right = SoakRoad::ALL.iter().map(|road| self.books.right(*road)).sum::<u64>();
        let in_windows = WindowKind::ALL.iter().map(|kind| self.books.failed_in(*kind)).sum::<u64>();
        format!(
            "seed {}, {:.0} s, {} events: {right} right, {} wrong, {} failed outside of windows and {in_windows} in them; {:.1} MiB resident at most, of {:.1}",
            self.seed,
            self.seconds,
            self.events.len(),
            self.wrong(),
            self.failed(),
            self.most(|sample| sample.resident_bytes) as f64 / MIB,
            self.line_bytes as f64 / MIB
        )
    }

    fn event_line(&self, kind: SoakEventKind) -> String {
        let done: Vec<&EventDone> = self.events.iter().filter(|done| done.event.kind == kind).collect();
        let longest = done.iter().map(|done| done.to - done.from).fold(0.0, f64::max);
        format!("  {:<38} {:>4}, the longest {longest:.2} s", kind.words(), done.len())
    }

    fn growth_line(&self, larder: usize) -> String {
        let Some((memory, descriptors)) = self.grown(larder) else {
            return format!("larder {larder}: its last process did not live long enough to say how it grows");
        };
        format!(
            "larder {larder}: its last process grew by {:.2} MiB an hour and {:.1} descriptors an hour, over {:.0} s by {:.2} MiB and {:.1}",
            memory.per_second * 3_600.0 / MIB,
            descriptors.per_second * 3_600.0,
            memory.seconds,
            memory.total() / MIB,
            descriptors.total()
        )
    }

    fn grown(&self, larder: usize) -> Option<(Growth, Growth)> {
        let judged = judged(self.samples, larder)?;
        Some((growth(&judged, |sample| sample.resident_bytes), growth(&judged, |sample| sample.descriptors)))
    }

    fn most(&self, figure: fn(&ProcessSample) -> u64) -> u64 {
        self.samples.iter().map(figure).max().unwrap_or_default()
    }

    fn wrong(&self) -> u64 {
        self.books.wrong.lock().expect("nobody panicked").count
    }

    fn failed(&self) -> u64 {
        self.books.failed.lock().expect("nobody panicked").count
    }

    /// A sentence for each bar that is broken, with what broke it.
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for (what, sentences) in [("wrong", &self.books.wrong), ("failed outside of windows", &self.books.failed)] {
            let sentences = sentences.lock().expect("nobody panicked");
            if sentences.count > 0 {
                let shown = &sentences.first[..sentences.first.len().min(SENTENCES_SHOWN)];
                broken.push(format!("{what}: {}, such as\n  {}", sentences.count, shown.join("\n  ")));
            }
        }
        for done in self.events {
            if let Some(error) = &done.error {
                let (words, larder) = (done.event.kind.words(), done.event.larder);
                broken.push(format!("{:.1} s, larder {larder}, {words}: {error}", done.from));
            }
        }
        let most = self.most(|sample| sample.resident_bytes);
        if most > self.line_bytes {
            broken.push(format!("{most} bytes were resident, above the line of {}", self.line_bytes));
        }
        let most = self.most(|sample| sample.descriptors);
        if most > DESCRIPTORS_MAX {
            broken.push(format!("a process had {most} descriptors, more than {DESCRIPTORS_MAX}"));
        }
        broken.extend((0..LARDERS).filter_map(|larder| self.grows(larder)));
        broken.extend(self.untested());
        broken
    }

    fn grows(&self, larder: usize) -> Option<String> {
        let (memory, descriptors) = self.grown(larder)?;
        let is_over = memory.total() > self.line_bytes as f64 * GROWTH_OF_LINE_MAX
            || descriptors.total() > DESCRIPTORS_GROWTH_MAX;
        (is_over && memory.seconds >= GROWTH_SECONDS_MIN).then(|| format!("it grows: {}", self.growth_line(larder)))
    }

    fn untested(&self) -> Vec<String> {
        let mut untested: Vec<String> = SoakRoad::ALL
            .iter()
            .filter(|road| self.books.right(**road) == 0)
            .map(|road| format!("nothing was right of: {}", road.words()))
            .collect();
        if self.books.hits.load(SeqCst) == 0 {
            untested.push("nothing came from the store".to_owned());
        }
        let has_come = |kind: SoakEventKind| self.events.iter().any(|done| done.event.kind == kind);
        let is_wanted = |kind: &SoakEventKind| !kind.needs_a_mount() || self.mounts_missing.is_none();
        if self.seconds >= ALL_EVENTS_SECONDS {
            let missing = SoakEventKind::ALL.into_iter().filter(|kind| is_wanted(kind) && !has_come(*kind));
            untested.extend(missing.map(|kind| format!("it never came to: {}", kind.words())));
        }
        untested
    }
}

#[cfg(test)]
mod tests {
    use super::super::soak_schedule::SoakEvent;
    use super::super::soak_site::SoakSite;
    use super::*;

    fn books() -> SoakBooks {
        let books = SoakBooks::open(SoakSite::serve(false).expect("it serves"));
        SoakRoad::ALL.into_iter().for_each(|road| books.counts(road));
        books.hits.store(1, SeqCst);
        books
    }

    fn steady() -> Vec<ProcessSample> {
        let sample = |second| ProcessSample {
            second,
            larder: 0,
            process: 7,
            resident_bytes: 50_000 + second % 2,
            descriptors: 80,
            is_newest: true,
        };
        (0..300).map(sample).collect()
    }

    fn check(books: &SoakBooks, samples: &[ProcessSample], error: Option<&str>, complaint: Option<&str>) {
        let event = SoakEvent { kind: SoakEventKind::Reload, larder: 0, pause_ms: 0 };
        let events = [EventDone { event, from: 1.0, to: 2.0, error: error.map(str::to_owned) }];
        let run = SoakRun {
            seed: 1,
            seconds: 100.0,
            books,
            events: &events,
            samples,
            line_bytes: 100_000,
            mounts_missing: None,
        };
        let broken = run.broken();
        assert_eq!(broken.len(), usize::from(complaint.is_some()), "{broken:?}");
        assert!(complaint.is_none_or(|words| broken[0].contains(words)), "{broken:?}");
    }

    #[test]
    fn a_run_is_judged_by_every_bar() {
        check(&books(), &steady(), None, None);
        check(&books(), &steady(), Some("not reloaded"), Some("not reloaded"));
        let mut above = steady();
        above[50].resident_bytes = 100_001;
        check(&books(), &above, None, Some("above the line"));
        let mut leaks = steady();
        leaks.iter_mut().for_each(|sample| sample.resident_bytes = 50_000 + 100 * sample.second);
        check(&books(), &leaks, None, Some("it grows"));
        leaks = steady();
        leaks.iter_mut().for_each(|sample| sample.descriptors = 80 + sample.second / 2);
        check(&books(), &leaks, None, Some("it grows"));
        leaks.truncate(150);
        check(&books(), &leaks, None, None);
        leaks[20].descriptors = DESCRIPTORS_MAX + 1;
        check(&books(), &leaks, None, Some("descriptors"));
        let failed = books();
        failed.fails(&failed.question(0, SoakRoad::Kept, super::super::soak_page::SoakPage(0)), "gone");
        check(&failed, &steady(), None, Some("failed outside of windows: 1"));
    }
}
