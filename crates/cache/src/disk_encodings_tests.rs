//! Encodings above a simulated disk: what comes back with its object, and what never does.

use std::sync::Arc;

use bytes::Bytes;
use message::{Authority, FieldName, Fields, Method, Request, ResponseHead, Scheme, Status, TargetForm, Version};
use rules::ContentCoding::{Brotli, Zstd};
use rules::{ContentCoding, Facts, Vary};
use store::disk::{Device, DiskSettings, Invalidation, SimulatedDevice, Tier, wait};
use store::limits::BLOCK_BYTES;

use crate::ask::Answer;
use crate::beneath_memory::Beneath;
use crate::cache::{Cache, CacheSettings};
use crate::description::{Description, StoreAs};
use crate::disk_level::{Admission, Disk};
use crate::flight::{Flight, Notifier};
use crate::key::Key;
use crate::lookup_options::LookupOptions;
use crate::moment::Now;
use crate::object::Object;
use crate::recall::Recalled;

const MIB: usize = 1 << 20;
const DISK_BYTES: u64 = 16 << 20;
const NOW: Now = Now { wall_ms: 1_700_000_000_000, mono_ms: 1_000_000, confirmed_from: 0 };

struct NoPost;

impl Notifier for NoPost {
    fn post(&self, _: usize, _: Arc<Flight>) {}
}

/// A cache above a disk, whose process may end.
struct Site {
    cache: Arc<Cache>,
    device: Arc<SimulatedDevice>,
}

impl Site {
    fn new() -> Site {
        Site::on(vec![0; DISK_BYTES as usize], 1)
    }

    fn on(content: Vec<u8>, seed: u64) -> Site {
        let device = Arc::new(SimulatedDevice::with_content(content, seed));
        let settings = DiskSettings::new("simulated", DISK_BYTES);
        let on = vec![(settings, Arc::clone(&device) as Arc<dyn Device>)];
        let (tier, recovered) = Tier::on_devices(on, Arc::new(|_| ())).expect("it opens");
        let disk = Disk { tier, recovered, admission: Admission::All, leases_from: None };
        let settings = CacheSettings { memory_bytes_max: 8 * MIB, ..CacheSettings::default() };
        let site = Site {
            cache: Cache::above(settings, Arc::new(NoPost), Beneath { disk: Some(disk), shared: None, seed: None }),
            device,
        };
        site.settle();
        site
    }

    fn tier(&self) -> &Tier {
        &self.cache.disk.as_ref().expect("there is one").tier
    }

    /// All that was handed over is written, and the index is back.
    fn settle(&self) {
        assert_eq!(wait(self.tier().invalidate(Invalidation::Number(1))), Ok(()));
        while self.tier().stats().iter().any(|disk| !disk.index_is_back) {
            std::thread::yield_now();
        }
    }

    /// The process ends, and another begins.
    fn restarted(self) -> Site {
        self.settle();
        let content = self.device.content();
        drop(self.cache);
        Site::on(content, 2)
    }

    fn key(&self, path: &str) -> Key {
        self.cache.key([path.as_bytes()])
    }

    fn store_as(&self, path: &str, kind: &str, vary: Option<&str>, body: &[u8]) -> Arc<Object> {
        let fields = kind_field(kind);
        let answer = self.cache.ask(self.key(path), &request(&fields), &LookupOptions::default(), NOW);
        let Answer::Miss(ticket) = answer else { panic!("{answer:?}") };
        let mut described = Fields::default();
        vary.into_iter().for_each(|names| described.push(FieldName::Vary, names));
        let vary = match Vary::of(described.view()) {
            Vary::Fields(spec) => Some(spec),
            _ => None,
        };
        let head = Arc::new(ResponseHead { fields: described, ..ResponseHead::new(Status::OK) });
        let store_as = StoreAs {
            facts: Facts { lifetime_ms: 100_000, ..Facts::default() },
            lifetimes: None,
            vary,
            rendered: Bytes::from_static(b"HTTP/1.1 200 OK\r\n"),
            partial: None,
            whole: None,
            sliced: None,
            elsewhere: None,
            groups: None,
            tags: None,
        };
        let mut draft = ticket.describe(Description {
            head: Arc::clone(&head),
            shared_head: head,
            length: Some(body.len() as u64),
            storable: Some(store_as),
            uncacheable_ms: 0,
            is_personal: false,
            why_not: None,
            supersedes: true,
            mark: None,
            esi: None,
            now: NOW,
        });
        pieces(body).into_iter().for_each(|piece| draft.append(piece));
        draft.land(None).expect("it is stored")
    }

    fn store(&self, path: &str, body: &[u8]) -> Arc<Object> {
        self.store_as(path, "", None, body)
    }

    /// In idle time.
    fn encode(&self, primary: &Arc<Object>, coding: ContentCoding, body: &[u8]) {
        assert!(primary.encodings_or_new().promise(coding));
        assert!(self.cache.add_encoding(primary, coding, pieces(body)));
    }

    fn recall_for(&self, path: &str, kind: &str) -> Option<Arc<Object>> {
        let fields = kind_field(kind);
        let request = request(&fields);
        if wait(self.cache.recall(self.key(path), &request, NOW)) != Recalled::Stored {
            return None;
        }
        match self.cache.ask(self.key(path), &request, &LookupOptions::default(), NOW) {
            Answer::Fresh(object) => Some(object),
            other => panic!("{other:?}"),
        }
    }

    fn recall(&self, path: &str) -> Option<Arc<Object>> {
        self.recall_for(path, "")
    }

    fn figures(&self) -> (u64, u64) {
        let stats = self.cache.stats();
        (stats.encodings_made, stats.encodings_recalled)
    }

    fn on_disk(&self) -> u64 {
        self.tier().stats().iter().map(|disk| disk.objects).sum()
    }
}

/// As they come, none longer than a block.
fn pieces(body: &[u8]) -> Vec<Bytes> {
    body.chunks(BLOCK_BYTES).map(Bytes::copy_from_slice).collect()
}

fn kind_field(kind: &str) -> Fields {
    let mut fields = Fields::default();
    fields.push_named(b"X-Kind", kind.as_bytes());
    fields
}

fn request(fields: &Fields) -> Request<'_> {
    Request {
        method: Method::Get,
        method_text: b"GET",
        version: Version::Http11,
        form: TargetForm::Origin,
        scheme: Scheme::Http,
        authority: Authority::EMPTY,
        path: b"/",
        query: None,
        fields: fields.view(),
    }
}

fn bytes_of(object: &Arc<Object>) -> Vec<u8> {
    object.body().pieces(0, u64::MAX).flat_map(|piece| piece.to_vec()).collect()
}

fn encoded(primary: &Arc<Object>, coding: ContentCoding) -> Option<Vec<u8>> {
    primary.encoding(coding).map(|object| bytes_of(&object))
}

#[test]
fn an_encoding_comes_back_with_its_object() {
    let site = Site::new();
    let (small, large) = (site.store("/small", &[1; 3_000]), site.store("/large", &[2; 500_000]));
    site.encode(&small, Brotli, b"short");
    site.encode(&small, Zstd, b"nearly as short");
    site.encode(&large, Brotli, &[3; 200_000]);
    site.settle();
    assert_eq!((site.on_disk(), site.figures()), (5, (3, 0)));
    let site = site.restarted();
    assert_eq!(site.on_disk(), 5);
    let small = site.recall("/small").expect("it is on the disk");
    assert_eq!(bytes_of(&small), [1; 3_000]);
    assert_eq!(encoded(&small, Brotli).as_deref(), Some(&b"short"[..]));
    assert_eq!(encoded(&small, Zstd).as_deref(), Some(&b"nearly as short"[..]));
    let brotli = small.encoding(Brotli).expect("it was there");
    assert_eq!(brotli.fields().get(FieldName::ContentEncoding), Some(&b"br"[..]));
    assert!(brotli.is_live() && small.is_live());
    let large = site.recall("/large").expect("it is on the disk");
    assert_eq!(encoded(&large, Brotli).as_deref(), Some(&[3; 200_000][..]));
    assert_eq!(site.figures(), (0, 3), "nothing was made again");
    drop((small, large, brotli));
    // And it goes with it.
    site.cache.purge(site.key("/small"));
    site.cache.purge(site.key("/large"));
    assert_eq!((site.cache.account().used(), site.on_disk()), (0, 0));
}

#[test]
fn what_replaces_an_object_has_none_of_its_encodings() {
    let site = Site::new();
    let old = site.store("/", &[1; 3_000]);
    site.encode(&old, Brotli, b"of the old one");
    site.settle();
    drop(old);
    // As if the new one had come while the encoding was still on its way: it is written behind it all the same.
    let site = site.restarted();
    let found = site.recall("/").expect("it is on the disk");
    let late = found.encoding(Brotli).expect("it came back");
    site.cache.purge(site.key("/"));
    let new = site.store("/", &[2; 3_000]);
    site.cache.write_encoding(&found, Brotli, &late);
    site.settle();
    assert_eq!(site.on_disk(), 1, "its object is dead");
    drop((found, late, new));
    let site = site.restarted();
    let new = site.recall("/").expect("it is on the disk");
    assert_eq!((bytes_of(&new), encoded(&new, Brotli)), (vec![2; 3_000], None));
}

/// A record that names another body is let go of when it is met, with its primary there and without.
#[test]
fn an_encoding_of_another_body_is_never_served() {
    let site = Site::new();
    let primary = site.store("/", &[1; 3_000]);
    site.encode(&primary, Brotli, b"of the first");
    site.settle();
    let first = primary.encoding(Brotli).expect("it is there");
    // What a crash would leave of it, were the journal to lose the deletion.
    let sequence = primary.on_disk();
    site.cache.purge(site.key("/"));
    let second = site.store("/", &[2; 3_000]);
    assert!(second.on_disk() > sequence, "a number is used once");
    let now = second.on_disk();
    second.note_on_disk(sequence);
    site.cache.write_encoding(&second, Brotli, &first);
    second.note_on_disk(now);
    site.settle();
    assert_eq!(site.on_disk(), 2);
    drop((primary, second, first));
    let site = site.restarted();
    let second = site.recall("/").expect("it is on the disk");
    assert_eq!((bytes_of(&second), encoded(&second, Brotli)), (vec![2; 3_000], None));
    assert_eq!(site.on_disk(), 1, "what nobody can use has left");
}

#[test]
fn encodings_stand_in_no_variant_s_way() {
    let site = Site::new();
    for kind in ["a", "b", "c", "d"] {
        let primary =
            site.store_as("/", kind, Some("X-Kind"), format!("text of {kind} {}", "x".repeat(900)).as_bytes());
        site.encode(&primary, Brotli, format!("br {kind}").as_bytes());
        site.encode(&primary, Zstd, format!("zstd {kind}").as_bytes());
    }
    let site = site.restarted();
    assert_eq!(site.on_disk(), 12);
    for kind in ["d", "a", "c", "b"] {
        let found = site.recall_for("/", kind).expect("it is on the disk");
        assert!(bytes_of(&found).starts_with(format!("text of {kind}").as_bytes()));
        assert_eq!(encoded(&found, Zstd), Some(format!("zstd {kind}").into_bytes()));
    }
    assert!(site.recall_for("/", "e").is_none());
}

/// Whatever of the writes is lost, what is found is right, and what is made is not believed before.
#[test]
fn a_loss_of_power_leaves_a_right_encoding_or_none() {
    let (mut with, mut without) = (0, 0);
    for seed in 0..48 {
        let site = Site::new();
        for round in 0..3_u8 {
            site.cache.purge(site.key("/"));
            if round == 2 {
                site.device.lose_power_after(seed % 16);
            }
            let primary = site.store("/", &[round; 3_000]);
            if round == 2 && seed % 2 == 1 {
                // Written before there is an encoding, if there is power for it.
                let _ = wait(site.tier().invalidate(Invalidation::Number(1)));
            }
            site.encode(&primary, Brotli, &[b'a' + round; 40]);
            if round < 2 {
                site.settle();
            }
        }
        site.tier().close(std::time::Duration::from_secs(5));
        let content = site.device.lose_power();
        let after = Site::on(content, seed);
        let Some(found) = after.recall("/") else { continue };
        let round = bytes_of(&found)[0];
        // The last purge was not awaited.
        assert!(round >= 1, "what was purged is back");
        match encoded(&found, Brotli) {
            Some(encoding) => {
                assert_eq!(encoding, [b'a' + round; 40], "seed {seed}");
                with += 1;
            }
            None => without += 1,
        }
    }
    assert!(with > 0 && without > 0, "{with} with their encoding, {without} without");
}
