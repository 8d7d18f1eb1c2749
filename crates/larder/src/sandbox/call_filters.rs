//! What the kernel is told of system calls. Two filters: by the first there are no calls but those of the table, so that a C library which
//! knows a newer one goes on with an older one (ENOSYS); by the second what is forbidden is refused (EPERM), and so are uses of needed
//! calls that serving has not.
//!
//! Neither looks at the arguments of a call that is made for every request.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::call_table::{self, SystemCall};

type CallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, in the order in which they are put in force. `Err`: no filter is made for this processor, or the tables are wrong.
pub fn filters(process: u32) -> Result<[BpfProgram; 2], String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).ok().filter(|_| call_table::IS_COMPLETE);
    let arch = arch.ok_or_else(|| format!("larder has no table of system calls for {}", std::env::consts::ARCH))?;
    let failed = |error: BackendError| error.to_string();
    let made = |rules: CallRules, others, those| -> Result<BpfProgram, String> {
        let filter = SeccompFilter::new(rules, others, those, arch).map_err(failed)?;
        BpfProgram::try_from(filter).map_err(failed)
    };
    let needed: CallRules = call_table::needed().map(whole).collect();
    let mut forbidden: CallRules = call_table::forbidden().map(whole).collect();
    forbidden.extend(uses_without_need(process).map_err(failed)?);
    let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    Ok([made(needed, unknown, SeccompAction::Allow)?, made(forbidden, SeccompAction::Allow, refused)?])
}

/// Whatever its arguments are.
fn whole(call: &SystemCall) -> (i64, Vec<SeccompRule>) {
    (call.number, Vec::new())
}

type ArgumentTest = Result<SeccompCondition, BackendError>;

fn is(argument: u8, value: u64) -> ArgumentTest {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> ArgumentTest {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// All of these hold at once.
fn all(conditions: impl IntoIterator<Item = ArgumentTest>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// None of these values.
fn none_of<const N: usize>(argument: u8, values: [i32; N]) -> Result<SeccompRule, BackendError> {
    all(values.map(|value| is_not(argument, u64::from(value as u32))))
}

/// Of calls that are needed, what is refused of them.
fn uses_without_need(process: u32) -> Result<CallRules, BackendError> {
    let own = u64::from(process);
    let no_thread = SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64);
    let netlink = libc::AF_NETLINK;
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, netlink];
    let controls =
        [libc::FIONBIO, libc::FIONREAD, libc::FIOCLEX, libc::TCGETS, libc::TIOCGWINSZ].map(|word| word as i32);
    let of_process = [
        libc::PR_SET_NAME,
        libc::PR_GET_NAME,
        libc::PR_SET_DUMPABLE,
        libc::PR_GET_DUMPABLE,
        libc::PR_SET_VMA,
        libc::PR_SET_NO_NEW_PRIVS,
        libc::PR_GET_NO_NEW_PRIVS,
    ];
    Ok(BTreeMap::from([
        // Another process, in place of another thread.
        (libc::SYS_clone, vec![all([SeccompCondition::new(0, SeccompCmpArgLen::Dword, no_thread, 0)])?]),
        // The C library asks the kernel for the addresses of this machine when it looks names up.
        (
            libc::SYS_socket,
            vec![none_of(0, families)?, all([is(0, netlink as u64), is_not(2, libc::NETLINK_ROUTE as u64)])?],
        ),
        (libc::SYS_socketpair, vec![none_of(0, [libc::AF_UNIX])?]),
        (libc::SYS_ioctl, vec![none_of(1, controls)?]),
        (libc::SYS_prctl, vec![none_of(0, of_process)?]),
        // Another process.
        (libc::SYS_tgkill, vec![all([is_not(0, own)])?]),
        // A thread gives way to others, and has others give way to it no more.
        (libc::SYS_setpriority, vec![all([is_not(0, libc::PRIO_PROCESS.into())])?, all([is_not(1, 0)])?]),
        (libc::SYS_prlimit64, vec![all([is_not(0, 0), is_not(0, own)])?]),
    ]))
}
