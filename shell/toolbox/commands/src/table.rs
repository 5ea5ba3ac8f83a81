//! The table of commands, by name.

use std::ffi::OsString;

use crate::{awk, find, grep, jq, pack, sed, small, text};

/// The function of a command. It takes the words, with the name first, and returns the exit status.
pub(crate) type Run = fn(&[String]) -> i32;

macro_rules! uutils {
    ($($command:ident)*) => {
        /// The commands of uutils, by the names of their crates.
        const UUTILS: &[(&str, Run)] = &[$((stringify!($command), |words| {
            let name = words.first().map_or("", String::as_str);
            _ = uucore::locale::setup_localization(if name == "[" { "test" } else { name });
            $command::uumain(words.iter().map(OsString::from).collect::<Vec<_>>().into_iter())
        })),*];
    };
}

uutils! {
    uu_arch uu_b2sum uu_base32 uu_base64 uu_basename uu_basenc uu_cat uu_cksum uu_comm uu_cp
    uu_csplit uu_cut uu_date uu_dirname uu_echo uu_expand uu_expr uu_factor uu_false uu_fmt
    uu_fold uu_head uu_join uu_link uu_ln uu_ls uu_md5sum uu_mkdir uu_mktemp uu_mv uu_nl uu_nproc
    uu_numfmt uu_od uu_paste uu_pathchk uu_pr uu_printenv uu_printf uu_ptx uu_pwd uu_readlink
    uu_realpath uu_rm uu_rmdir uu_seq uu_sha1sum uu_sha224sum uu_sha256sum uu_sha384sum
    uu_sha512sum uu_shred uu_shuf uu_sleep uu_split uu_sum uu_tail uu_tee uu_test uu_touch uu_tr
    uu_true uu_truncate uu_tsort uu_unexpand uu_uniq uu_unlink uu_wc uu_yes
}

/// The commands of this crate.
const COMMANDS: &[(&str, Run)] = &[
    ("awk", awk::run),
    ("chmod", text::chmod),
    ("cmp", text::cmp),
    ("column", text::column),
    ("dd", text::dd),
    ("diff", text::diff),
    ("dos2unix", text::dos2unix),
    ("du", text::du),
    ("egrep", grep::run),
    ("env", small::env),
    ("fgrep", grep::run),
    ("find", find::run),
    ("gawk", awk::run),
    ("grep", grep::run),
    ("groups", small::groups),
    ("gunzip", pack::gzip),
    ("gzip", pack::gzip),
    ("hd", text::hexdump),
    ("hexdump", text::hexdump),
    ("hostname", small::hostname),
    ("id", small::id),
    ("jq", jq::run),
    ("less", text::less),
    ("mawk", awk::run),
    ("more", text::less),
    ("nice", small::nice),
    ("nohup", small::nohup),
    ("rev", text::rev),
    ("sed", sed::run),
    ("sort", text::sort),
    ("sponge", text::sponge),
    ("stat", text::stat),
    ("strings", text::strings),
    ("stty", small::stty),
    ("sync", small::sync),
    ("tac", text::tac),
    ("tar", pack::tar),
    ("timeout", small::timeout),
    ("tree", text::tree),
    ("tty", small::tty),
    ("uname", small::uname),
    ("unix2dos", text::unix2dos),
    ("unzip", pack::unzip),
    ("which", small::which),
    ("whoami", small::whoami),
    ("xargs", small::xargs),
    ("xxd", text::xxd),
    ("zcat", pack::gzip),
    ("zip", pack::zip),
];

/// Returns the function of a command, or `None` if there is no command with this name.
pub(crate) fn find(name: &str) -> Option<Run> {
    let uutils = if name == "[" { "test" } else { name };
    let own = COMMANDS.iter().find(|(known, _)| *known == name);
    let found =
        own.or_else(|| UUTILS.iter().find(|(known, _)| known.strip_prefix("uu_") == Some(uutils)));
    found.map(|(_, run)| *run)
}
