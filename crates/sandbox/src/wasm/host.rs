//! The host's state of one run, and the WASI functions that it answers.

use std::time::Duration;

use wasmtime::{Caller, Linker, Memory, ResourceLimiter};

use super::files::{Errno, Files};
use super::guest::Guest;
use super::open::OpenFiles;
use super::time::Random;
use super::{descriptors, paths, time};
use crate::Limits;

pub struct Host {
    pub memory: Option<Memory>,
    pub files: Files,
    pub open: OpenFiles,
    pub output: Output,
    pub random: Random,
    /// When the program began, for the program.
    pub started: Duration,
    /// How long it slept, without a real wait.
    pub slept: Duration,
    pub limits: Limits,
    pub violation: Option<String>,
    pub memory_refused: bool,
    pub arguments: Vec<String>,
    pub environment: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Stop {
    #[error("the program ended with status {0}")]
    Exit(i32),
    #[error("the program slept past its time limit")]
    Slept,
}

/// The printed output, up to a limit.
pub struct Output {
    pub bytes: Vec<u8>,
    pub limit: usize,
    pub is_cut: bool,
}

impl Output {
    pub fn take(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.bytes.len());
        self.is_cut |= bytes.len() > room;
        self.bytes.extend(bytes.iter().take(room));
    }
}

impl ResourceLimiter for Host {
    fn memory_growing(
        &mut self,
        _: usize,
        wanted: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = wanted <= self.limits.memory_bytes;
        self.memory_refused |= !granted;
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        _: usize,
        wanted: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(wanted <= 100_000)
    }
}

/// Turns an answer into the number that the guest reads.
pub fn number(answer: Result<(), Errno>) -> u32 {
    match answer {
        Ok(()) => Errno::Success as u32,
        Err(errno) => errno as u32,
    }
}

pub const WASI: &str = "wasi_snapshot_preview1";

/// Provides a function of WASI that answers with the number of an error.
macro_rules! wasi {
    ($linker:ident, $name:literal, |$guest:ident $(, $argument:tt: $type:ty)* $(,)?| $answer:expr) => {
        $linker.func_wrap(
            $crate::wasm::host::WASI,
            $name,
            |mut caller: wasmtime::Caller<'_, Host> $(, $argument: $type)*| {
                let answer = $crate::wasm::guest::Guest::of(&mut caller).and_then(|mut guest| {
                    let $guest = &mut guest;
                    $answer
                });
                $crate::wasm::host::number(answer)
            },
        )?;
    };
}
pub(super) use wasi;

/// Provides every function that the interpreter imports.
pub fn link(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    descriptors::link(linker)?;
    paths::link(linker)?;
    time::link(linker)?;
    link_process(linker)?;
    link_network(linker)
}

fn link_process(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    wasi!(linker, "args_sizes_get", |guest, count: u32, size: u32| {
        let words = guest.host.arguments.clone();
        put_sizes(guest, &words, count, size)
    });
    wasi!(linker, "args_get", |guest, list: u32, text: u32| {
        let words = guest.host.arguments.clone();
        put_words(guest, &words, list, text)
    });
    wasi!(linker, "environ_sizes_get", |guest, count: u32, size: u32| {
        let words = guest.host.environment.clone();
        put_sizes(guest, &words, count, size)
    });
    wasi!(linker, "environ_get", |guest, list: u32, text: u32| {
        let words = guest.host.environment.clone();
        put_words(guest, &words, list, text)
    });
    wasi!(linker, "random_get", |guest, at: u32, length: u32| {
        let mut random = std::mem::take(&mut guest.host.random);
        let filled = guest.bytes_mut(at, length).map(|bytes| random.fill(bytes));
        guest.host.random = random;
        filled
    });
    linker.func_wrap(WASI, "proc_exit", |status: u32| -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(Stop::Exit(status.cast_signed())))
    })?;
    linker.func_wrap(WASI, "sched_yield", || 0_u32)?;
    Ok(())
}

fn link_network(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(WASI, "sock_accept", |_: u32, _: u32, _: u32| Errno::NotSupported as u32)?;
    linker.func_wrap(WASI, "sock_recv", |_: u32, _: u32, _: u32, _: u32, _: u32, _: u32| {
        Errno::NotSupported as u32
    })?;
    linker.func_wrap(WASI, "sock_send", |_: u32, _: u32, _: u32, _: u32, _: u32| {
        Errno::NotSupported as u32
    })?;
    linker.func_wrap(WASI, "sock_shutdown", |_: u32, _: u32| Errno::NotSupported as u32)?;
    // The interpreter's own function for HTTP: it returns that the network cannot be reached.
    linker.func_wrap(
        "bashkit",
        "http_request",
        |mut caller: Caller<'_, Host>, _: u32, _: u32, _: u64, length: u32| -> u32 {
            caller.data_mut().violation = Some("the sandbox has no network".to_owned());
            if let Ok(mut guest) = Guest::of(&mut caller) {
                let _ = guest.put_u32(length, 0);
            }
            1
        },
    )?;
    linker.func_wrap("bashkit", "http_take", |_: u32, _: u32| 0_u32)?;
    Ok(())
}

fn put_sizes(guest: &mut Guest<'_>, words: &[String], count: u32, size: u32) -> Result<(), Errno> {
    let bytes: usize = words.iter().map(|word| word.len() + 1).sum();
    guest.put_u32(count, u32::try_from(words.len()).map_err(|_| Errno::TooBig)?)?;
    guest.put_u32(size, u32::try_from(bytes).map_err(|_| Errno::TooBig)?)
}

fn put_words(
    guest: &mut Guest<'_>,
    words: &[String],
    mut list: u32,
    mut text: u32,
) -> Result<(), Errno> {
    for word in words {
        guest.put_u32(list, text)?;
        guest.put(text, word.as_bytes())?;
        let end = text.checked_add(u32::try_from(word.len()).map_err(|_| Errno::TooBig)?);
        let end = end.ok_or(Errno::Invalid)?;
        guest.put(end, &[0])?;
        text = end.checked_add(1).ok_or(Errno::Invalid)?;
        list = list.checked_add(4).ok_or(Errno::Invalid)?;
    }
    Ok(())
}
