//! The filters as the kernel runs them, over every call of the tables and over arguments: by a reader of BPF of the tests' own.

use std::collections::BTreeSet;

use seccompiler::{BpfProgram, sock_filter};

use super::call_filters::filters;
use super::call_table;

const PROCESS: u32 = 4_242;

/// What a call comes to.
#[derive(Debug, PartialEq, Eq)]
enum CallVerdict {
    Allowed,
    Error(i32),
}

/// The classes and modes that the filters are made of (linux/bpf_common.h).
mod code {
    pub const LOAD_WORD: u16 = 0x20;
    pub const AND: u16 = 0x54;
    pub const JUMP: u16 = 0x05;
    pub const JUMP_EQUAL: u16 = 0x15;
    pub const JUMP_GREATER: u16 = 0x25;
    pub const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
    pub const RETURN: u16 = 0x06;
}

/// Four bytes of what a filter sees (struct seccomp_data): number, processor, place in the program, six arguments.
fn word(number: i64, arguments: [u64; 6], at: u32) -> u32 {
    let processor: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
    match at {
        0 => number as u32,
        4 => processor,
        16.. => {
            let argument = arguments[(at as usize - 16) / 8];
            if at.is_multiple_of(8) { argument as u32 } else { (argument >> 32) as u32 }
        }
        other => panic!("nothing is read at {other}"),
    }
}

fn run(program: &BpfProgram, number: i64, arguments: [u64; 6]) -> u32 {
    let (mut at, mut register) = (0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = program[at];
        at += 1;
        let is_met = match code {
            code::LOAD_WORD => {
                register = word(number, arguments, k);
                continue;
            }
            code::AND => {
                register &= k;
                continue;
            }
            code::JUMP => {
                at += k as usize;
                continue;
            }
            code::RETURN => return k,
            code::JUMP_EQUAL => register == k,
            code::JUMP_GREATER => register > k,
            code::JUMP_GREATER_OR_EQUAL => register >= k,
            other => panic!("{other:#x} is read by nobody here"),
        };
        at += usize::from(if is_met { jt } else { jf });
    }
}

/// As the kernel has it: an error goes before leave, and that of the filter that came last before others.
fn verdict(number: i64, arguments: [u64; 6]) -> CallVerdict {
    const ALLOW: u32 = 0x7fff_0000;
    const ERROR: u32 = 0x0005_0000;
    let filters = filters(PROCESS).expect("this processor has a table");
    let all = filters.iter().rev().map(|filter| run(filter, number, arguments));
    let error = all.into_iter().find(|action| *action != ALLOW);
    error.map_or(CallVerdict::Allowed, |action| {
        assert_eq!(action & 0xffff_0000, ERROR, "nothing is killed");
        CallVerdict::Error((action & 0xffff) as i32)
    })
}

#[test]
fn what_stands_in_no_table_is_unknown_and_what_is_forbidden_refused() {
    let needed: BTreeSet<i64> = call_table::needed().map(|call| call.number).collect();
    let forbidden: BTreeSet<i64> = call_table::forbidden().map(|call| call.number).collect();
    for number in 0..600 {
        // Enough to be of use: a thread, of this process, an internet socket.
        let arguments = match number {
            libc::SYS_clone => [libc::CLONE_THREAD as u64, 0, 0, 0, 0, 0],
            libc::SYS_socket => [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0],
            libc::SYS_socketpair => [libc::AF_UNIX as u64, 0, 0, 0, 0, 0],
            libc::SYS_ioctl => [0, libc::FIONBIO, 0, 0, 0, 0],
            libc::SYS_prctl => [libc::PR_SET_NAME as u64, 0, 0, 0, 0, 0],
            libc::SYS_tgkill => [u64::from(PROCESS), 1, 0, 0, 0, 0],
            _ => [0; 6],
        };
        let expect = match (forbidden.contains(&number), needed.contains(&number)) {
            (true, _) => CallVerdict::Error(libc::EPERM),
            (false, true) => CallVerdict::Allowed,
            (false, false) => CallVerdict::Error(libc::ENOSYS),
        };
        assert_eq!(verdict(number, arguments), expect, "{number}");
    }
    assert!(!needed.contains(&libc::SYS_clone3), "its flags cannot be seen");
}

#[test]
fn uses_that_serving_has_not_are_refused() {
    let refused = CallVerdict::Error(libc::EPERM);
    let check = |number, arguments: [u64; 3], is_allowed| {
        let [first, second, third] = arguments;
        let expect = if is_allowed { &CallVerdict::Allowed } else { &refused };
        assert_eq!(&verdict(number, [first, second, third, 0, 0, 0]), expect, "{number} {arguments:?}");
    };
    let family = |family: i32| [family as u64, libc::SOCK_RAW as u64, 0];
    for known in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        check(libc::SYS_socket, family(known), true);
    }
    for other in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, libc::AF_UNSPEC] {
        check(libc::SYS_socket, family(other), false);
    }
    let audit = 9;
    check(libc::SYS_socket, [libc::AF_NETLINK as u64, libc::SOCK_RAW as u64, audit], false);
    check(libc::SYS_socketpair, family(libc::AF_INET), false);
    let fork = libc::SIGCHLD as u64;
    check(libc::SYS_clone, [fork, 0, 0], false);
    check(libc::SYS_clone, [(libc::CLONE_VM | libc::CLONE_VFORK) as u64 | fork, 0, 0], false);
    let into_a_terminal = libc::TIOCSTI;
    check(libc::SYS_ioctl, [0, into_a_terminal, 0], false);
    check(libc::SYS_prctl, [libc::PR_SET_MM as u64, 0, 0], false);
    check(libc::SYS_prctl, [libc::PR_CAPBSET_DROP as u64, 0, 0], false);
    check(libc::SYS_tgkill, [1, 1, 9], false);
    check(libc::SYS_prlimit64, [0, 0, 0], true);
    check(libc::SYS_prlimit64, [u64::from(PROCESS), 0, 0], true);
    check(libc::SYS_prlimit64, [1, 0, 0], false);
    check(libc::SYS_setpriority, [libc::PRIO_PROCESS.into(), 0, 5], true);
    check(libc::SYS_setpriority, [libc::PRIO_PROCESS.into(), 1, 5], false);
    check(libc::SYS_setpriority, [libc::PRIO_USER.into(), 0, 5], false);
}
