//! The limits on skills, which are also part of messages.

/// Maximum length of a skill's name, in bytes.
pub(crate) const MAX_SKILL_NAME: usize = 64;

/// Maximum number of skills in a folder.
pub(crate) const MAX_SKILLS: usize = 500;

/// Maximum number of files and folders of a skill.
pub(crate) const MAX_SKILL_FILES: usize = 500;

/// Maximum total size of the files of a skill, in bytes.
pub(crate) const MAX_SKILL_BYTES: u64 = 16 << 20;

/// Maximum size of `SKILL.md`, in bytes.
pub(crate) const MAX_SKILL_FILE: u64 = 128 << 10;

/// Maximum number of nested folders in a skill.
pub(crate) const MAX_SKILL_DEPTH: usize = 8;
