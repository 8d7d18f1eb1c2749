//! Slices that were stored and wait for their disk. One of them that is evicted meanwhile is in no place where it could be
//! found, though the disk's queue holds its body: whoever asks has it from here, and not from the origin once more.

use std::collections::VecDeque;
use std::sync::Arc;

use store::sync::Mutex;

use crate::disk_level::DiskLevel;
use crate::key::Key;
use crate::limits::UNWRITTEN_SLICES_MAX;
use crate::object::Object;

/// Those that the disks may not have written, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Unwritten(Mutex<VecDeque<Arc<Object>>>);

impl Unwritten {
    /// A slice has been stored. One too many is not held; it may be asked of the origin again.
    pub fn note(&self, disk: &DiskLevel, slice: &Arc<Object>) {
        self.sweep(disk);
        if disk.is_waiting(slice) {
            let mut waiting = self.0.lock();
            if waiting.len() < UNWRITTEN_SLICES_MAX {
                waiting.push_back(Arc::clone(slice));
            }
        }
    }

    pub fn find(&self, key: Key) -> Option<Arc<Object>> {
        self.0.lock().iter().find(|slice| slice.key() == key).cloned()
    }

    /// Lets go of what has been written, or will not be.
    pub fn sweep(&self, disk: &DiskLevel) {
        let mut waiting = self.0.lock();
        let written: VecDeque<_>;
        (*waiting, written) = std::mem::take(&mut *waiting).into_iter().partition(|slice| disk.is_waiting(slice));
        drop(waiting);
        // What was the last to hold a body gives it back with nothing locked.
        drop(written);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use bytes::Bytes;
    use message::{Authority, FieldName, Fields, Method, Request, ResponseHead, Scheme, Status, TargetForm, Version};
    use rules::Facts;
    use store::disk::{Device, DiskSettings, Faults, FaultyDevice, Invalidation, SimulatedDevice, Tier, wait};

    use crate::beneath_memory::Beneath;
    use crate::cache::{Cache, CacheSettings};
    use crate::description::{Description, StoreAs};
    use crate::disk_level::{Admission, Disk};
    use crate::flight::{Flight, Notifier};
    use crate::moment::Now;
    use crate::slice_layout::Sliced;
    use crate::slices::SliceAnswer;

    use super::*;

    const MIB: usize = 1 << 20;
    const NOW: Now = Now { wall_ms: 1_700_000_000_000, mono_ms: 1_000_000, confirmed_from: 0 };

    struct NoPost;

    impl Notifier for NoPost {
        fn post(&self, _: usize, _: Arc<Flight>) {}
    }

    /// Four MiB above a disk, and what makes that one stall.
    fn above_a_disk() -> (Arc<Cache>, Arc<FaultyDevice>) {
        let settings = DiskSettings::new("simulated", 64 << 20);
        let faulty = Arc::new(FaultyDevice::new(Arc::new(SimulatedDevice::new(settings.bytes, 1))));
        let device = Arc::clone(&faulty) as Arc<dyn Device>;
        let (tier, recovered) = Tier::on_devices(vec![(settings, device)], Arc::new(|_| ())).expect("it opens");
        let disk = Disk { tier, recovered, admission: Admission::All, leases_from: None };
        let settings = CacheSettings { memory_bytes_max: 4 * MIB, ..CacheSettings::default() };
        (Cache::above(settings, Arc::new(NoPost), Beneath { disk: Some(disk), shared: None, seed: None }), faulty)
    }

    fn ask(cache: &Arc<Cache>, sliced: Sliced, number: u64) -> SliceAnswer {
        let fields = Fields::default();
        let request = Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Http,
            authority: Authority::EMPTY,
            path: b"/film",
            query: None,
            fields: fields.view(),
        };
        cache.ask_slice(sliced, number, &request, 0, NOW)
    }

    fn store(cache: &Arc<Cache>, sliced: Sliced, number: u64) -> Arc<Object> {
        let SliceAnswer::Fetch(ticket) = ask(cache, sliced, number) else { panic!("nobody has it") };
        let mut head = ResponseHead::new(Status::PARTIAL_CONTENT);
        head.fields.push(FieldName::Etag, "\"1\"");
        let head = Arc::new(head);
        let store_as = StoreAs {
            facts: Facts { always_validate: true, ..Facts::default() },
            lifetimes: None,
            vary: None,
            rendered: Bytes::new(),
            partial: None,
            whole: None,
            sliced: None,
            elsewhere: None,
            groups: None,
            tags: None,
        };
        let mut draft = ticket.describe_within(
            cache.slice_under_way(sliced),
            Description {
                head: Arc::clone(&head),
                shared_head: head,
                length: Some(MIB as u64),
                storable: Some(store_as),
                uncacheable_ms: 0,
                is_personal: false,
                why_not: None,
                supersedes: true,
                mark: None,
                esi: None,
                now: NOW,
            },
        );
        draft.append(Bytes::from(vec![7; MIB]));
        draft.land(None).expect("it is stored")
    }

    #[test]
    fn a_slice_that_leaves_memory_before_its_disk_has_written_it_is_found() {
        let (cache, faulty) = above_a_disk();
        let sliced = Sliced::new(64 * MIB as u64, MIB as u64);
        assert!(!cache.is_disk_busy_for_slice(sliced, 1), "one may go whatever its share is");
        faulty.set(Faults { stalls: true, ..Faults::default() });
        let slice = store(&cache, sliced, 0);
        assert!(cache.is_disk_busy_for_slice(sliced, 1), "a quarter of the memory waits already");
        cache.release(&slice);
        assert!(cache.may_have_slice(sliced, 0) && !cache.may_have_slice(sliced, 1));
        assert!(matches!(ask(&cache, sliced, 0), SliceAnswer::Held(found) if Arc::ptr_eq(&found, &slice)));

        faulty.set(Faults::default());
        let tier = &cache.disk.as_ref().expect("there is one").tier;
        // It comes behind the slice.
        assert_eq!(wait(tier.invalidate(Invalidation::Number(9))), Ok(()));
        cache.note_time(NOW);
        assert!(cache.unwritten.find(slice.key()).is_none(), "the disk has it");
        assert!(cache.may_have_slice(sliced, 0) && !cache.is_disk_busy_for_slice(sliced, 1));
    }
}
