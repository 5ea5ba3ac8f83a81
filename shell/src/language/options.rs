//! The options of a shell.

/// Options of `set` and `shopt`. All are disabled by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) errexit: bool,
    pub(crate) nounset: bool,
    pub(crate) xtrace: bool,
    pub(crate) noglob: bool,
    pub(crate) noclobber: bool,
    pub(crate) allexport: bool,
    pub(crate) noexec: bool,
    pub(crate) pipefail: bool,
    pub(crate) nullglob: bool,
    pub(crate) globstar: bool,
    pub(crate) extglob: bool,
    pub(crate) dotglob: bool,
    pub(crate) nocaseglob: bool,
    pub(crate) nocasematch: bool,
    pub(crate) inherit_errexit: bool,
    pub(crate) xpg_echo: bool,
}

impl Options {
    /// Returns the option with this name. Returns `None` if the option is unknown or has no effect
    /// in this shell.
    pub(crate) fn by_name(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "allexport" => &mut self.allexport,
            "errexit" => &mut self.errexit,
            "noclobber" => &mut self.noclobber,
            "noexec" => &mut self.noexec,
            "noglob" => &mut self.noglob,
            "nounset" => &mut self.nounset,
            "pipefail" => &mut self.pipefail,
            "xtrace" => &mut self.xtrace,
            "dotglob" => &mut self.dotglob,
            "extglob" => &mut self.extglob,
            "globstar" => &mut self.globstar,
            "inherit_errexit" => &mut self.inherit_errexit,
            "nocaseglob" => &mut self.nocaseglob,
            "nocasematch" => &mut self.nocasematch,
            "nullglob" => &mut self.nullglob,
            "xpg_echo" => &mut self.xpg_echo,
            _ => return None,
        })
    }
}
