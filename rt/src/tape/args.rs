//! The arguments of a recorded call.

use std::fmt::{self, Write};

use crate::abi::Untyped;

/// Maximum length of the readable form of a call's arguments, in bytes.
const MAX_READABLE: usize = 200;

/// A builder for the digest and the readable form of a call's arguments.
#[derive(Default)]
pub struct Args {
    digest: blake3::Hasher,
    readable: String,
}

impl Args {
    /// Adds the next argument.
    pub fn add(&mut self, arg: &impl Arg) {
        if !self.readable.is_empty() {
            self.readable.push_str(", ");
        }
        arg.feed(self);
    }

    fn number(&mut self, kind: u8, bytes: &[u8], readable: &dyn fmt::Display) {
        self.digest.update(&[kind]).update(bytes);
        if self.readable.len() < MAX_READABLE {
            let _ = write!(self.readable, "{readable}");
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.digest.update(&[4]).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        if self.readable.len() < MAX_READABLE {
            let head = bytes.get(..MAX_READABLE).unwrap_or(bytes);
            let _ = write!(self.readable, "{:?}", String::from_utf8_lossy(head));
        }
    }

    pub(super) fn finish(mut self) -> ([u8; 16], String) {
        if self.readable.len() > MAX_READABLE {
            self.readable.truncate(self.readable.floor_char_boundary(MAX_READABLE));
            self.readable.push('…');
        }
        let mut digest = [0; 16];
        digest.iter_mut().zip(self.digest.finalize().as_bytes()).for_each(|(to, from)| *to = *from);
        (digest, self.readable)
    }
}

/// An argument of a host function.
pub trait Arg {
    /// Adds the argument to `args`.
    fn feed(&self, args: &mut Args);
}

macro_rules! args {
    ($($ty:ty: |$this:ident, $args:ident| $feed:expr;)*) => {$(
        impl Arg for $ty {
            fn feed(&self, $args: &mut Args) {
                let $this = self;
                $feed
            }
        }
    )*};
}
args! {
    i32: |this, args| args.number(0, &this.to_le_bytes(), this);
    i64: |this, args| args.number(1, &this.to_le_bytes(), this);
    f64: |this, args| args.number(2, &this.to_bits().to_le_bytes(), this);
    bool: |this, args| args.number(3, &[u8::from(*this)], this);
    &str: |this, args| args.bytes(this.as_bytes());
    String: |this, args| args.bytes(this.as_bytes());
    &[u8]: |this, args| args.bytes(this);
    Vec<u8>: |this, args| args.bytes(this);
    Untyped<'_>: |this, args| match this.bytes {
        Some(bytes) => args.bytes(bytes),
        None => args.number(0, &this.number.to_le_bytes(), &this.number),
    };
}

impl<T: Arg> Arg for Option<T> {
    fn feed(&self, args: &mut Args) {
        match self {
            Some(arg) => arg.feed(args),
            None => args.number(5, &[], &"null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_arguments_have_different_digests() {
        let finished = |add: &dyn Fn(&mut Args)| {
            let mut args = Args::default();
            add(&mut args);
            args.finish()
        };
        let all = [
            finished(&|_| {}),
            finished(&|args| args.add(&"")),
            finished(&|args| args.add(&"ab")),
            finished(&|args| (args.add(&"a"), args.add(&"b")).0),
            finished(&|args| args.add(&None::<&str>)),
            finished(&|args| args.add(&1i32)),
            finished(&|args| args.add(&1i64)),
            finished(&|args| args.add(&1f64)),
            finished(&|args| args.add(&true)),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().skip(at + 1).all(|other| other.0 != one.0), "{one:?}");
        }
        assert_eq!(all[3].1, "\"a\", \"b\"");
        let long = finished(&|args| args.add(&"ü".repeat(1_000)));
        assert!(long.1.len() <= MAX_READABLE + 3 && long.1.ends_with('…'), "{}", long.1);
    }
}
