//! Access to a guest's memory. Every address and length is checked.

use super::CallResult;
use crate::errno::Errno;

/// Memory of the calling guest.
pub(super) struct Memory<'a>(pub(super) &'a mut [u8]);

/// Maximum number of buffers in one vectored read or write.
const MAX_BUFFERS: u32 = 1024;
/// Maximum size of one read or write, in bytes. The guest repeats the call for the rest.
const MAX_TRANSFER: usize = 1 << 20;

impl Memory<'_> {
    pub(super) fn bytes(&self, at: u32, len: u32) -> Result<&[u8], Errno> {
        let at = at as usize;
        let len = len as usize;
        self.0.get(at..).and_then(|rest| rest.get(..len)).ok_or(Errno::FAULT)
    }

    pub(super) fn bytes_mut(&mut self, at: u32, len: u32) -> Result<&mut [u8], Errno> {
        let at = at as usize;
        let len = len as usize;
        self.0.get_mut(at..).and_then(|rest| rest.get_mut(..len)).ok_or(Errno::FAULT)
    }

    pub(super) fn put(&mut self, at: u32, data: &[u8]) -> CallResult {
        let len = u32::try_from(data.len()).map_err(|_| Errno::OVERFLOW)?;
        self.bytes_mut(at, len)?.copy_from_slice(data);
        Ok(())
    }

    pub(super) fn put_u32(&mut self, at: u32, value: u32) -> CallResult {
        self.put(at, &value.to_le_bytes())
    }

    pub(super) fn put_u64(&mut self, at: u32, value: u64) -> CallResult {
        self.put(at, &value.to_le_bytes())
    }

    fn array<const N: usize>(&self, at: u32) -> Result<[u8; N], Errno> {
        let bytes = self.bytes(at, N as u32)?;
        bytes.try_into().map_err(|_| Errno::FAULT)
    }

    pub(super) fn u8(&self, at: u32) -> Result<u8, Errno> {
        Ok(u8::from_le_bytes(self.array(at)?))
    }

    pub(super) fn u16(&self, at: u32) -> Result<u16, Errno> {
        Ok(u16::from_le_bytes(self.array(at)?))
    }

    pub(super) fn u32(&self, at: u32) -> Result<u32, Errno> {
        Ok(u32::from_le_bytes(self.array(at)?))
    }

    pub(super) fn u64(&self, at: u32) -> Result<u64, Errno> {
        Ok(u64::from_le_bytes(self.array(at)?))
    }

    /// Reads a UTF-8 string, such as a path.
    pub(super) fn text(&self, at: u32, len: u32) -> Result<&str, Errno> {
        std::str::from_utf8(self.bytes(at, len)?).map_err(|_| Errno::ILSEQ)
    }

    /// Reads the list of buffers of a vectored read or write. If their total size exceeds
    /// [`MAX_TRANSFER`], shortens or omits the last buffers.
    ///
    /// ```text
    /// buffer    address u32, length u32
    /// ```
    pub(super) fn buffers(&self, at: u32, count: u32) -> Result<Vec<(u32, u32)>, Errno> {
        if count > MAX_BUFFERS {
            return Err(Errno::INVAL);
        }
        let mut buffers = Vec::with_capacity(count as usize);
        let mut room = MAX_TRANSFER as u32;
        for index in 0..count {
            let entry =
                index.checked_mul(8).and_then(|skip| at.checked_add(skip)).ok_or(Errno::FAULT)?;
            let start = self.u32(entry)?;
            let len = self.u32(entry.checked_add(4).ok_or(Errno::FAULT)?)?;
            self.bytes(start, len)?;
            let len = len.min(room);
            room -= len;
            if len > 0 {
                buffers.push((start, len));
            }
        }
        Ok(buffers)
    }

    /// Writes data into the buffers, in order.
    pub(super) fn scatter(&mut self, buffers: &[(u32, u32)], mut data: &[u8]) -> CallResult {
        for (at, len) in buffers {
            let (now, rest) = data.split_at(data.len().min(*len as usize));
            self.put(*at, now)?;
            data = rest;
        }
        Ok(())
    }

    /// Returns the contents of the buffers, in order.
    pub(super) fn gather(&self, buffers: &[(u32, u32)]) -> Result<Vec<u8>, Errno> {
        let mut all = Vec::new();
        for (at, len) in buffers {
            all.extend_from_slice(self.bytes(*at, *len)?);
        }
        Ok(all)
    }

    /// Writes consecutive NUL-terminated strings, and a table of their addresses, for `args_get`
    /// and `environ_get`.
    pub(super) fn put_texts<'t>(
        &mut self,
        mut pointers: u32,
        mut at: u32,
        texts: impl Iterator<Item = &'t [u8]>,
    ) -> CallResult {
        for text in texts {
            self.put_u32(pointers, at)?;
            self.put(at, text)?;
            let end = u32::try_from(text.len())
                .ok()
                .and_then(|len| at.checked_add(len))
                .ok_or(Errno::FAULT)?;
            self.put(end, &[0])?;
            at = end.checked_add(1).ok_or(Errno::FAULT)?;
            pointers = pointers.checked_add(4).ok_or(Errno::FAULT)?;
        }
        Ok(())
    }
}
