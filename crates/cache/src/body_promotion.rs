//! Promotion to the page file: a body that is asked for again and again is copied from its blocks into the page file, from where
//! the kernel sends it without a copy. What is fetched once never is: the copy costs more than a few hits gain by it.

use std::sync::Arc;

use store::{Blocks, Charge, ExtentWriter};

use crate::limits::PROMOTION_STEP_BYTES;
use crate::out_of_line_body::OutOfLineBody;

/// A stored body on its way into the page file. When it is dropped before its end, the body stays where it is.
#[derive(Debug)]
pub struct BodyPromotion {
    out_of_line: Arc<OutOfLineBody>,
    blocks: Blocks,
    /// Gone while it is appended to.
    writer: Option<ExtentWriter>,
    /// For the second copy.
    _charge: Charge,
}

impl BodyPromotion {
    pub(crate) fn new(out_of_line: &Arc<OutOfLineBody>, blocks: Blocks, writer: ExtentWriter) -> BodyPromotion {
        let charge = out_of_line.charge.another(out_of_line.len() as usize);
        BodyPromotion { out_of_line: Arc::clone(out_of_line), blocks, writer: Some(writer), _charge: charge }
    }

    /// Copies the next [`PROMOTION_STEP_BYTES`] of it. Hands itself back while there is more; what has left the store meanwhile is
    /// given up.
    pub fn step(mut self) -> Option<BodyPromotion> {
        let mut writer = self.writer.take_if(|_| !self.out_of_line.charge.is_leaving())?;
        let (from, whole) = (writer.written(), self.out_of_line.len());
        let copied = self.blocks.slices(from, from + PROMOTION_STEP_BYTES).try_for_each(|block| writer.append(block));
        match copied {
            Ok(()) if writer.written() < whole => {
                self.writer = Some(writer);
                Some(self)
            }
            Ok(()) => {
                let extent = writer.finish().expect("it is as long as its body");
                self.out_of_line.promoted(extent);
                None
            }
            Err(_) => None,
        }
    }
}

impl Drop for BodyPromotion {
    fn drop(&mut self) {
        self.out_of_line.promotion_failed();
    }
}
