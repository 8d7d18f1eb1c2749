//! Whether the memory that a plan asks for is there: in the machine, and in the control group that larder runs in. Beyond the first it
//! swaps, beyond the second the kernel ends it.

use proxy::memory_base_bytes;

use crate::group_memory::{self, GroupLimit};
use crate::machine_check::MachineFinding;
use crate::plan::Plan;
use crate::quantities::show_size;

const MIB: u64 = 1 << 20;

/// As `larder check` has it: also so little that hardly anything is kept.
pub fn findings(plan: &Plan) -> Vec<MachineFinding> {
    const SMALL_BYTES: u64 = 8 * MIB;
    let mut found = beyond_bounds(plan);
    let asked = plan.settings.memory_bytes_max as u64;
    if asked < SMALL_BYTES {
        let shown = show_size(asked);
        found.push(MachineFinding::warning(format!(
            "[memory] size is {shown}: hardly anything fits, and what is stored is soon evicted (--memory)"
        )));
    }
    found
}

/// More than there is.
pub fn beyond_bounds(plan: &Plan) -> Vec<MachineFinding> {
    let (asked, installed) = (plan.settings.memory_bytes_max as u64, installed_bytes());
    let of_machine = (asked > installed).then(|| {
        let shown = show_size(asked);
        let message = format!("[memory] size is {shown}, but the machine has {} (--memory)", show_size(installed));
        MachineFinding::warning(message)
    });
    let base = memory_base_bytes(plan.workers_count());
    let of_group = group_memory::least().and_then(|limit| beyond_group(asked, base, &limit));
    of_machine.into_iter().chain(of_group).collect()
}

/// `base`: what larder takes beside the size.
fn beyond_group(asked: u64, base: u64, limit: &GroupLimit) -> Option<MachineFinding> {
    let needed = asked.saturating_add(base);
    if needed <= limit.bytes {
        return None;
    }
    let (shown, takes, may) = (show_size(asked), show_size(needed), show_size(limit.bytes));
    let message = format!(
        "[memory] size is {shown}, with which larder takes up to {takes}, but its control group may have {may} ({}): the kernel ends \
         larder there (--memory)",
        limit.file.display()
    );
    // A third is left to what the kernel counts besides: buffers of sockets, pages of disks.
    let fits = limit.bytes.saturating_sub(base).min(limit.bytes / 3 * 2) / MIB * MIB;
    let raise =
        format!("that limit (MemoryMax= of a unit, --memory of a container) to {}", show_size(asked / 2 * 3 + base));
    let advice = match fits {
        0 => format!("raise {raise}"),
        fits => format!("write size = \"{}MiB\", or raise {raise}", fits / MIB),
    };
    Some(MachineFinding::warning(message).advise(advice))
}

/// The memory of this machine.
fn installed_bytes() -> u64 {
    let sysinfo = rustix::system::sysinfo();
    (sysinfo.totalram as u64).saturating_mul(u64::from(sysinfo.mem_unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_control_group_has_not_is_said_with_what_fits() {
        let check = |asked: u64, limit: u64, expect: Option<&str>| {
            let limit = GroupLimit { bytes: limit * MIB, file: "/g/memory.max".into() };
            let found = beyond_group(asked * MIB, 34 * MIB, &limit).map(MachineFinding::in_a_line);
            let fits = match (&found, expect) {
                (Some(line), Some(end)) => line.contains("(/g/memory.max)") && line.ends_with(end),
                (found, expect) => found.is_none() && expect.is_none(),
            };
            assert!(fits, "{asked} MiB of {limit:?}: {found:?}");
        };
        check(256, 290, None);
        check(
            256,
            289,
            Some(
                "write size = \"192MiB\", or raise that limit (MemoryMax= of a unit, --memory of a container) to 418 MiB",
            ),
        );
        check(
            256,
            64,
            Some(
                "write size = \"30MiB\", or raise that limit (MemoryMax= of a unit, --memory of a container) to 418 MiB",
            ),
        );
        check(16, 34, Some("(--memory): raise that limit (MemoryMax= of a unit, --memory of a container) to 58 MiB"));
    }
}
