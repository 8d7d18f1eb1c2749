//! One Vary specification of a key, and how a request selects under it (RFC 9111 §4.1).
//!
//! "No Vary" is `None` wherever an optional specification stands. What normalising means is `rules`' business.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashMap;
use message::FieldsView;
use rules::{CODING_TEXTS, VarySpec};
use siphasher::sip128::{Hasher128, SipHasher13};
use store::sync::Mutex;

use crate::key::{Digester, Variant};
use crate::limits::SPECS_SHARED_MAX;

/// A specification with the digest that its variants start from.
#[derive(Debug)]
pub(crate) struct Spec {
    vary: VarySpec,
    /// Tells variants of two specifications apart that select the same values.
    salt: u64,
    digester: Digester,
    /// For Accept-Encoding alone: the variants of what browsers send, letter for letter.
    common: Option<[Variant; CODING_TEXTS]>,
}

impl Spec {
    pub fn new(vary: VarySpec, digester: Digester) -> Arc<Spec> {
        let mut hasher = digester.hasher();
        vary.hash(&mut hasher);
        let mut spec = Spec { salt: hasher.finish(), vary, digester, common: None };
        if spec.vary.is_accept_encoding() {
            spec.common = Some(std::array::from_fn(|text| {
                spec.digest(|hasher| VarySpec::select_text(text, &mut |bytes: &[u8]| hasher.write(bytes)))
            }));
        }
        Arc::new(spec)
    }

    pub fn vary(&self) -> &VarySpec {
        &self.vary
    }

    #[inline]
    pub fn variant(&self, request: FieldsView<'_>) -> Variant {
        if let Some(common) = &self.common
            && let Some(text) = VarySpec::coding_text(request)
        {
            return common[text];
        }
        self.digest(|hasher| self.vary.select(request, &mut |bytes: &[u8]| hasher.write(bytes)))
    }

    fn digest(&self, select: impl FnOnce(&mut SipHasher13)) -> Variant {
        let mut hasher = self.digester.hasher();
        hasher.write_u64(self.salt);
        select(&mut hasher);
        Variant(hasher.finish128().as_u128() as u64)
    }
}

/// The specifications that objects share, so that a hit finds its own where the last hit left it: in the cache of the
/// CPU. They stay for the life of the process; a site has a handful.
#[derive(Debug, Default)]
pub(crate) struct SharedSpecs {
    known: Mutex<HashMap<VarySpec, Arc<Spec>>>,
}

impl SharedSpecs {
    pub fn spec(&self, vary: VarySpec, digester: Digester) -> Arc<Spec> {
        let mut known = self.known.lock();
        if let Some(spec) = known.get(&vary) {
            return Arc::clone(spec);
        }
        let spec = Spec::new(vary.clone(), digester);
        if known.len() < SPECS_SHARED_MAX {
            known.insert(vary, Arc::clone(&spec));
        }
        spec
    }
}

/// The variant that a request selects under a specification, or without one.
#[inline]
pub(crate) fn variant_of(spec: Option<&Arc<Spec>>, request: FieldsView<'_>) -> Variant {
    spec.map_or(Variant::PLAIN, |spec| spec.variant(request))
}

pub(crate) fn same_spec(one: Option<&Arc<Spec>>, other: Option<&Arc<Spec>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || (one.salt == other.salt && one.vary == other.vary),
        _ => false,
    }
}
