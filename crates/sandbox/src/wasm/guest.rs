//! Reads and writes the guest's memory; every address comes from the guest and is checked.

use wasmtime::{AsContextMut, Caller};

use super::files::Errno;
use super::host::Host;

pub struct Guest<'a> {
    pub memory: &'a mut [u8],
    pub host: &'a mut Host,
}

impl<'a> Guest<'a> {
    /// Borrows both from a call of the guest.
    pub fn of(caller: &'a mut Caller<'_, Host>) -> Result<Self, Errno> {
        let memory = caller.data().memory.ok_or(Errno::Invalid)?;
        let (memory, host) = memory.data_and_store_mut(caller.as_context_mut());
        Ok(Self { memory, host })
    }

    pub fn bytes(&self, at: u32, length: u32) -> Result<&[u8], Errno> {
        let at = at as usize;
        self.memory.get(at..at.saturating_add(length as usize)).ok_or(Errno::Invalid)
    }

    pub fn bytes_mut(&mut self, at: u32, length: u32) -> Result<&mut [u8], Errno> {
        let at = at as usize;
        self.memory.get_mut(at..at.saturating_add(length as usize)).ok_or(Errno::Invalid)
    }

    pub fn put(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno> {
        let length = u32::try_from(bytes.len()).map_err(|_| Errno::Invalid)?;
        self.bytes_mut(at, length)?.copy_from_slice(bytes);
        Ok(())
    }

    pub fn put_u32(&mut self, at: u32, value: u32) -> Result<(), Errno> {
        self.put(at, &value.to_le_bytes())
    }

    pub fn put_u64(&mut self, at: u32, value: u64) -> Result<(), Errno> {
        self.put(at, &value.to_le_bytes())
    }

    pub fn u16(&self, at: u32) -> Result<u16, Errno> {
        let bytes = self.bytes(at, 2)?;
        Ok(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u16::from(*byte)))
    }

    pub fn u32(&self, at: u32) -> Result<u32, Errno> {
        let bytes = self.bytes(at, 4)?;
        Ok(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }

    pub fn u64(&self, at: u32) -> Result<u64, Errno> {
        let bytes = self.bytes(at, 8)?;
        Ok(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// Reads a list of buffers as (address, length).
    pub fn buffers(&self, at: u32, count: u32) -> Result<Vec<(u32, u32)>, Errno> {
        // The number that POSIX requires; the guest chooses the count, so it is limited.
        if count > 1024 {
            return Err(Errno::Invalid);
        }
        (0..count)
            .map(|n| {
                let entry = at.checked_add(n * 8).ok_or(Errno::Invalid)?;
                Ok((self.u32(entry)?, self.u32(entry.checked_add(4).ok_or(Errno::Invalid)?)?))
            })
            .collect()
    }

    pub fn path(&self, at: u32, length: u32) -> Result<String, Errno> {
        if length > 4096 {
            return Err(Errno::NameTooLong);
        }
        let text = std::str::from_utf8(self.bytes(at, length)?).map_err(|_| Errno::Invalid)?;
        Ok(text.to_owned())
    }
}
