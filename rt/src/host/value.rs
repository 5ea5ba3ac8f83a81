//! The results of host functions. Each can be stored for a program, recorded on a tape, and
//! restored from the tape.

use wasmtime::WasmTy;

use super::Caller;
use super::heap::{reserve, store_bytes};
use crate::tape::RecordedValue;
use crate::{Code, Failure, Run};

/// A host function's result that a tape can record: a value or nothing.
pub trait Record {
    /// Returns the value that a tape records for the result.
    fn record(&self, run: &mut Run) -> RecordedValue;
}

impl Record for () {
    fn record(&self, _: &mut Run) -> RecordedValue {
        RecordedValue::Unit
    }
}

/// A value that a host function can return to a program.
pub trait Value: Record {
    /// The type that represents the value on the stack: the value's own type, or `i32` for a
    /// pointer or a boolean.
    type Raw: WasmTy + Default;

    /// Stores the value for the program and returns the stack value that represents it.
    ///
    /// # Errors
    /// `ENOMEM` if the program's memory is full.
    fn store(self, caller: &mut Caller<'_>) -> Result<Self::Raw, Failure>;

    /// Stores a recorded value for the program, as [`store`](Value::store) does.
    ///
    /// # Errors
    /// The same as for [`store`](Value::store), and [`wrong_recorded_type`] if the recorded value
    /// has a different type.
    fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<Self::Raw, Failure>;
}

/// Returns the failure for a recorded value whose type differs from the function's result type.
#[must_use]
pub fn wrong_recorded_type() -> Failure {
    Failure::new(Code::EBOUND, "the recording has another type of value than the function returns")
}

macro_rules! plain {
    ($($ty:ty, $recorded:ident;)*) => {$(
        impl Record for $ty {
            fn record(&self, _: &mut Run) -> RecordedValue { RecordedValue::$recorded(*self) }
        }
        impl Value for $ty {
            type Raw = $ty;
            fn store(self, _: &mut Caller<'_>) -> Result<$ty, Failure> { Ok(self) }
            fn restore(recorded: RecordedValue, _: &mut Caller<'_>) -> Result<$ty, Failure> {
                if let RecordedValue::$recorded(value) = recorded {
                    Ok(value)
                } else {
                    Err(wrong_recorded_type())
                }
            }
        }
    )*};
}
plain! { i32, Int; i64, Long; f64, Float; }

impl Record for bool {
    fn record(&self, _: &mut Run) -> RecordedValue {
        RecordedValue::Int(i32::from(*self))
    }
}

impl Value for bool {
    type Raw = i32;
    fn store(self, _: &mut Caller<'_>) -> Result<i32, Failure> {
        Ok(i32::from(self))
    }
    fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<i32, Failure> {
        i32::restore(recorded, caller)
    }
}

// Bytes are copied into the program's memory, and the program gets a pointer to them.
macro_rules! in_memory {
    ($($ty:ty),*) => {$(
        impl Record for $ty {
            fn record(&self, _: &mut Run) -> RecordedValue {
                RecordedValue::Bytes(AsRef::<[u8]>::as_ref(&**self).to_vec())
            }
        }
        impl Value for $ty {
            type Raw = i32;
            fn store(self, caller: &mut Caller<'_>) -> Result<i32, Failure> {
                let bytes = AsRef::<[u8]>::as_ref(&*self);
                store_bytes(caller, bytes)
            }
            fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<i32, Failure> {
                if let RecordedValue::Bytes(bytes) = recorded {
                    store_bytes(caller, &bytes)
                } else {
                    Err(wrong_recorded_type())
                }
            }
        }
    )*};
}
in_memory!(
    String,
    &'static str,
    Vec<u8>,
    std::borrow::Cow<'static, str>,
    std::sync::Arc<str>,
    std::sync::Arc<[u8]>
);

/// A block of the given size, in bytes, that is allocated in the program's memory. Its content is
/// arbitrary. The program gets the block's address, which is aligned to 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Allocation(pub u32);

impl Record for Allocation {
    fn record(&self, _: &mut Run) -> RecordedValue {
        RecordedValue::Long(i64::from(self.0))
    }
}

impl Value for Allocation {
    type Raw = i32;
    fn store(self, caller: &mut Caller<'_>) -> Result<i32, Failure> {
        reserve(caller, self.0 as usize).map(u32::cast_signed)
    }
    fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<i32, Failure> {
        match recorded {
            RecordedValue::Long(size) => {
                Allocation(u32::try_from(size).map_err(|_| wrong_recorded_type())?).store(caller)
            }
            _ => Err(wrong_recorded_type()),
        }
    }
}
