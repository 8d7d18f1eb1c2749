//! The keys of `[process]`.

use crate::config::definition::ValueKind::Text;
use crate::config::definition::{KeyDefinition, V0_1, key};
use crate::process_user::USER_FORM;

pub const PROCESS: &[KeyDefinition] = &[key(
    V0_1,
    "user",
    Text(USER_FORM),
    "Whom larder becomes once its addresses are bound, where root starts it: from then on it has no other rights, and what it opens, such as \
     logs and disks, it opens as that user. \"root\" says that it stays root on purpose. --user is the flag. docs/running.md",
)
.without("larder runs as whoever starts it, and warns where that is root")
.example("\"larder\"")];
