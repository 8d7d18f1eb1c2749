//! One Vary specification of a key, and how a request selects under it (RFC 9111 §4.1).
//!
//! "No Vary" is `None` wherever an optional specification stands. What normalising means is `rules`' business.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use message::FieldsView;
use rules::VarySpec;
use siphasher::sip128::Hasher128;

use crate::key::{Digester, Variant};

/// A specification with the digest that its variants start from.
#[derive(Debug)]
pub(crate) struct Spec {
    vary: VarySpec,
    /// Tells variants of two specifications apart that select the same values.
    salt: u64,
    digester: Digester,
}

impl Spec {
    pub fn new(vary: VarySpec, digester: Digester) -> Arc<Spec> {
        let mut hasher = digester.hasher();
        vary.hash(&mut hasher);
        let salt = hasher.finish();
        Arc::new(Spec { vary, salt, digester })
    }

    #[inline]
    pub fn variant(&self, request: FieldsView<'_>) -> Variant {
        let mut hasher = self.digester.hasher();
        hasher.write_u64(self.salt);
        self.vary.select(request, &mut |bytes: &[u8]| hasher.write(bytes));
        Variant(hasher.finish128().as_u128())
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
