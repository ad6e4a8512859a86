//! The system call filter of a confined Python: no new processes, no sockets, no doors into the kernel.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::Error;

/// A thread of the same process, which libraries may start.
const CLONE_THREAD: u64 = 0x1_0000;

/// Numbers of the calls on one machine's architecture.
#[cfg(target_arch = "x86_64")]
mod calls {
    pub const CLONE: i64 = 56;
    /// Its flags lie in memory, where no filter can read them; libraries fall back to `clone`.
    pub const CLONE3: i64 = 435;
    /// fork, vfork, socket, ptrace, mount, umount2, pivot_root, chroot, unshare, setns, bpf, keyctl, add_key, request_key,
    /// perf_event_open, userfaultfd, io_uring (setup, enter, register), open_by_handle_at, kexec_load, init_module,
    /// finit_module, delete_module, process_vm (readv, writev), personality, kill, tkill.
    pub const DENIED: &[i64] = &[
        57, 58, 41, 101, 165, 166, 155, 161, 272, 308, 321, 250, 248, 249, 298, 323, 425, 426, 427,
        304, 246, 175, 313, 176, 310, 311, 135, 62, 200,
    ];
}

/// Numbers of the calls on one machine's architecture.
#[cfg(target_arch = "aarch64")]
mod calls {
    pub const CLONE: i64 = 220;
    pub const CLONE3: i64 = 435;
    /// As on the other architecture, which has fork and vfork besides.
    pub const DENIED: &[i64] = &[
        198, 117, 40, 39, 41, 51, 97, 268, 280, 219, 217, 218, 241, 282, 425, 426, 427, 265, 104,
        105, 273, 106, 270, 271, 92, 129, 130,
    ];
}

/// Compiles the filter into what bubblewrap reads.
///
/// # Errors
/// [`Error::Bubblewrap`] on a machine whose system calls are not known here.
pub fn program() -> Result<Vec<u8>, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Bubblewrap(error.to_string());
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| failed(&error))?;
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> =
        calls::DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let is_process =
        SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(CLONE_THREAD), 0);
    let is_process = is_process.map_err(|error| failed(&error))?;
    denied.insert(
        calls::CLONE,
        vec![SeccompRule::new(vec![is_process]).map_err(|error| failed(&error))?],
    );
    let refuse = SeccompAction::Errno(1);
    let filter = SeccompFilter::new(denied, SeccompAction::Allow, refuse, arch)
        .map_err(|error| failed(&error))?;
    let first: BpfProgram =
        filter.try_into().map_err(|error: seccompiler::BackendError| failed(&error))?;
    // 38: the call is not there.
    let missing = BTreeMap::from([(calls::CLONE3, Vec::new())]);
    let filter = SeccompFilter::new(missing, SeccompAction::Allow, SeccompAction::Errno(38), arch);
    let second: BpfProgram = filter
        .map_err(|error| failed(&error))?
        .try_into()
        .map_err(|error: seccompiler::BackendError| failed(&error))?;
    Ok(joined(&second, &first))
}

/// Puts one filter in front of another: where the first allows, the second decides.
fn joined(first: &BpfProgram, second: &BpfProgram) -> Vec<u8> {
    let mut bytes = Vec::new();
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
