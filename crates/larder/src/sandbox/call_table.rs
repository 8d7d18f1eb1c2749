//! The system calls that a larder makes once it serves, each beside those that it is used with. What is not here does not exist for it.
//!
//! It knows numbers; how the kernel is told is told elsewhere. A test runs a larder over all that it does and looks whether a call was refused.

/// A system call of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCall {
    pub name: &'static str,
    pub number: i64,
}

macro_rules! calls {
    ($($(#[$note:meta])* $name:ident: [$($call:ident)*];)*) => {
        $(
            $(#[$note])*
            pub const $name: &[SystemCall] = &[$(SystemCall { name: stringify!($call), number: libc::$call }),*];
        )*
    };
}

calls! {
    /// The allocator's, and those of stacks.
    MEMORY: [SYS_brk SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_madvise SYS_mincore SYS_membarrier SYS_memfd_create];
    /// Threads, and how they wait for one another. `clone` makes threads alone, see below; `clone3`, whose flags lie in memory, is unknown, and
    /// the C library does without.
    THREADS: [
        SYS_clone SYS_exit SYS_exit_group SYS_futex SYS_get_robust_list SYS_set_robust_list SYS_rseq SYS_set_tid_address SYS_gettid SYS_getpid
        SYS_getppid SYS_sched_yield SYS_sched_getaffinity SYS_sched_setaffinity SYS_sched_getparam SYS_sched_getscheduler SYS_getcpu SYS_prctl
    ];
    /// Signals that the process is sent, and those that it sends itself when it gives up.
    SIGNALS: [
        SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigpending SYS_rt_sigtimedwait SYS_sigaltstack SYS_restart_syscall SYS_tgkill
    ];
    /// Files that are read: roots, certificates, VCLs, /proc.
    READING: [
        SYS_openat SYS_openat2 SYS_close SYS_close_range SYS_read SYS_pread64 SYS_readv SYS_preadv SYS_preadv2 SYS_lseek SYS_fstat SYS_newfstatat
        SYS_statx SYS_statfs SYS_fstatfs SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_getdents64 SYS_getcwd SYS_fcntl SYS_dup SYS_dup3
        SYS_ioctl SYS_fadvise64 SYS_readahead
    ];
    /// Files that are written: logs, disks, the history, certificates that are ordered.
    WRITING: [
        SYS_write SYS_pwrite64 SYS_writev SYS_pwritev SYS_pwritev2 SYS_ftruncate SYS_fallocate SYS_fsync SYS_fdatasync
        SYS_copy_file_range SYS_flock SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_fchmod SYS_umask
    ];
    /// Bytes from files and pipes into sockets.
    PASSING: [SYS_sendfile SYS_splice SYS_tee SYS_pipe2];
    /// Sockets. Of which families is below.
    SOCKETS: [
        SYS_socket SYS_socketpair SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_shutdown SYS_getsockname SYS_getpeername
        SYS_setsockopt SYS_getsockopt SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_recvfrom SYS_recvmsg SYS_recvmmsg
    ];
    /// Waiting for any of them.
    WAITING: [
        SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2 SYS_ppoll SYS_pselect6 SYS_timerfd_create SYS_timerfd_settime
        SYS_timerfd_gettime
    ];
    /// What time it is, where the C library does not read it by itself.
    TIME: [SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday];
    /// What the system is like, who larder is in it, and how much it may take.
    SYSTEM: [
        SYS_uname SYS_sysinfo SYS_getrandom SYS_getrusage SYS_times SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid
        SYS_getgroups SYS_getpriority SYS_setpriority SYS_prlimit64
    ];
    /// By which it gives up more, until the last filter is there.
    GIVING_UP: [SYS_seccomp];
    /// What is refused as forbidden rather than unknown, for no C library does without it by another call: other programs, other processes,
    /// the kernel and its keys, what is mounted, more rights, the machine's clock and name.
    FORBIDDEN: [
        SYS_execve SYS_execveat SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_pidfd_open SYS_pidfd_getfd
        SYS_pidfd_send_signal SYS_kill SYS_tkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_kcmp SYS_unshare SYS_setns SYS_mount SYS_umount2
        SYS_pivot_root SYS_chroot SYS_open_tree SYS_move_mount SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr
        SYS_name_to_handle_at SYS_open_by_handle_at SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_io_uring_setup SYS_io_uring_enter
        SYS_io_uring_register SYS_add_key SYS_request_key SYS_keyctl SYS_init_module SYS_finit_module SYS_delete_module SYS_kexec_load SYS_reboot
        SYS_swapon SYS_swapoff SYS_acct SYS_quotactl SYS_syslog SYS_sethostname SYS_setdomainname SYS_settimeofday SYS_clock_settime
        SYS_clock_adjtime SYS_adjtimex SYS_personality SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setfsuid
        SYS_setfsgid SYS_setgroups SYS_capset SYS_mknodat SYS_linkat SYS_symlinkat SYS_fchownat SYS_fchown SYS_seccomp
    ];
}

#[cfg(target_arch = "x86_64")]
calls! {
    /// Older names of the same, which the C library still uses here.
    OLDER: [
        SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink SYS_mkdir SYS_rmdir SYS_unlink SYS_rename SYS_dup2 SYS_pipe SYS_poll SYS_select
        SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_getrlimit SYS_setrlimit SYS_time SYS_arch_prctl SYS_renameat SYS_sync_file_range
    ];
    /// And of what is refused.
    OLDER_FORBIDDEN: [SYS_fork SYS_vfork SYS_kexec_file_load SYS_iopl SYS_ioperm SYS_modify_ldt SYS_mknod SYS_link SYS_symlink SYS_chown SYS_lchown];
}

/// Numbers that the crate `libc` does not have (asm-generic/unistd.h). No other of the older names are here.
#[cfg(target_arch = "aarch64")]
pub const OLDER: &[SystemCall] =
    &[SystemCall { name: "SYS_renameat", number: 38 }, SystemCall { name: "SYS_sync_file_range", number: 84 }];

#[cfg(target_arch = "aarch64")]
calls! {
    /// And of what is refused.
    OLDER_FORBIDDEN: [SYS_kexec_file_load];
}

/// Of other processors nobody has looked which there are: no filter is made.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
calls! {
    OLDER: [];
    OLDER_FORBIDDEN: [];
}

pub const IS_COMPLETE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Everything that serving needs.
pub fn needed() -> impl Iterator<Item = &'static SystemCall> {
    [MEMORY, THREADS, SIGNALS, READING, WRITING, PASSING, SOCKETS, WAITING, TIME, SYSTEM, GIVING_UP, OLDER]
        .into_iter()
        .flatten()
}

/// Everything that is refused as forbidden.
pub fn forbidden() -> impl Iterator<Item = &'static SystemCall> {
    [FORBIDDEN, OLDER_FORBIDDEN].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_call_stands_in_the_table_twice() {
        let mut seen = BTreeSet::new();
        let twice: Vec<_> = needed().filter(|call| !seen.insert(call.number)).map(|call| call.name).collect();
        assert_eq!(twice, [""; 0]);
        let both: Vec<_> = forbidden().filter(|call| !seen.insert(call.number)).map(|call| call.name).collect();
        // It is needed to give it up.
        assert_eq!(both, ["SYS_seccomp"]);
    }
}
