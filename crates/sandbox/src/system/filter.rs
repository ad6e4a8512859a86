//! The system call filter of a confined Python: no new processes, no sockets, no kernel interfaces.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::Error;

/// A thread of the same process, which libraries may start.
const CLONE_THREAD: u64 = 0x1_0000;

#[cfg(target_arch = "x86_64")]
mod calls {
    pub const CLONE: i64 = 56;
    /// Its flags are in memory, which filters cannot read; libraries fall back to `clone`.
    pub const CLONE3: i64 = 435;
    /// fork, vfork, socket, ptrace, mount, umount2, pivot_root, chroot, unshare, setns, bpf, keyctl, add_key, request_key,
    /// perf_event_open, userfaultfd, io_uring (setup, enter, register), open_by_handle_at, kexec_load, init_module,
    /// finit_module, delete_module, process_vm (readv, writev), personality, kill, tkill; and memory that belongs to no file and no
    /// address space, so that no bound counts it: memfd_create, memfd_secret, shmget, msgget, mq_open.
    pub const DENIED: &[i64] = &[
        57, 58, 41, 101, 165, 166, 155, 161, 272, 308, 321, 250, 248, 249, 298, 323, 425, 426, 427,
        304, 246, 175, 313, 176, 310, 311, 135, 62, 200, 319, 447, 29, 68, 240,
    ];
}

#[cfg(target_arch = "aarch64")]
mod calls {
    pub const CLONE: i64 = 220;
    pub const CLONE3: i64 = 435;
    /// As on the other architecture, which also has fork and vfork.
    pub const DENIED: &[i64] = &[
        198, 117, 40, 39, 41, 51, 97, 268, 280, 219, 217, 218, 241, 282, 425, 426, 427, 265, 104,
        105, 273, 106, 270, 271, 92, 129, 130, 279, 447, 194, 186, 180,
    ];
}

/// Compiles the filter into what bubblewrap reads.
///
/// # Errors
/// [`Error::Filter`] on a machine whose system calls are not known here.
pub fn program() -> Result<Vec<u8>, Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> =
        calls::DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let is_process =
        SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(CLONE_THREAD), 0)?;
    denied.insert(calls::CLONE, vec![SeccompRule::new(vec![is_process])?]);
    let refuse = SeccompAction::Errno(1);
    let first: BpfProgram =
        SeccompFilter::new(denied, SeccompAction::Allow, refuse, arch)?.try_into()?;
    // 38: the call is not there.
    let missing = BTreeMap::from([(calls::CLONE3, Vec::new())]);
    let absent = SeccompAction::Errno(38);
    let second: BpfProgram =
        SeccompFilter::new(missing, SeccompAction::Allow, absent, arch)?.try_into()?;
    Ok(joined(&second, &first))
}

/// Combines two filters: if the first one permits a call, the second one decides.
fn joined(first: &BpfProgram, second: &BpfProgram) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Each call has a second number if the kernel supports x32, and a list contains only one of them.
    const X32: u32 = 0x4000_0000;
    const MISSING: u32 = 0x0005_0026;
    push(&mut bytes, 0x20, 0, 0, 0);
    push(&mut bytes, 0x35, 0, 1, X32);
    push(&mut bytes, RETURN, 0, 0, MISSING);
    const ALLOW: u32 = 0x7fff_0000;
    const RETURN: u16 = 0x06;
    const JUMP: u16 = 0x05;
    let length = first.len();
    for (index, step) in first.iter().enumerate() {
        let rest = u32::try_from(length - index - 1).unwrap_or(0);
        let (code, value) =
            if step.code == RETURN && step.k == ALLOW { (JUMP, rest) } else { (step.code, step.k) };
        push(&mut bytes, code, step.jt, step.jf, value);
    }
    for step in second {
        push(&mut bytes, step.code, step.jt, step.jf, step.k);
    }
    bytes
}

fn push(bytes: &mut Vec<u8>, code: u16, jump_true: u8, jump_false: u8, value: u32) {
    bytes.extend(code.to_ne_bytes());
    bytes.extend([jump_true, jump_false]);
    bytes.extend(value.to_ne_bytes());
}
