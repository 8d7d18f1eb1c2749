//! Laying: a body that is asked for again and again is copied from its blocks into the page file, from where the kernel sends it
//! without a copy. What is fetched once never is: the copy costs more than a few hits gain by it.

use std::sync::Arc;

use store::{Blocks, Charge, Laying};

use crate::limits::LAYING_STEP_BYTES;
use crate::out_of_line_body::Apart;

/// A stored body on its way into the page file. When it is dropped before its end, the body stays where it is.
#[derive(Debug)]
pub struct LayingBody {
    apart: Arc<Apart>,
    blocks: Blocks,
    /// Gone while it is appended to.
    laying: Option<Laying>,
    /// For the second copy.
    _charge: Charge,
}

impl LayingBody {
    pub(crate) fn new(apart: &Arc<Apart>, blocks: Blocks, laying: Laying) -> LayingBody {
        let charge = apart.charge.another(apart.len() as usize);
        LayingBody { apart: Arc::clone(apart), blocks, laying: Some(laying), _charge: charge }
    }

    /// Copies the next [`LAYING_STEP_BYTES`] of it. Hands itself back while there is more; what has left the store meanwhile is
    /// given up.
    pub fn step(mut self) -> Option<LayingBody> {
        let mut laying = self.laying.take_if(|_| !self.apart.charge.is_leaving())?;
        let (from, whole) = (laying.laid(), self.apart.len());
        let copied = self.blocks.slices(from, from + LAYING_STEP_BYTES).try_for_each(|block| laying.append(block));
        match copied {
            Ok(()) if laying.laid() < whole => {
                self.laying = Some(laying);
                Some(self)
            }
            Ok(()) => {
                let extent = laying.finish().expect("it is as long as its body");
                self.apart.has_been_laid(extent);
                None
            }
            Err(_) => None,
        }
    }
}

impl Drop for LayingBody {
    fn drop(&mut self) {
        self.apart.stays();
    }
}
