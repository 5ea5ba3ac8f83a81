//! The commands for authors of programs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Files, names of catalog programs, or `-` for stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Apply safe fixes to the files; `-` prints the fixed program
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print the resources that each program can access
    #[arg(long)]
    pub(crate) authority: bool,
    /// Print the findings as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `expand`.
#[derive(Debug, Args)]
pub(crate) struct ExpandArgs {
    /// The program; `-` reads it from stdin
    pub(crate) file: PathBuf,
}

/// The commands of `workbook`.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkbookCommand {
    /// Run a workbook and print its exports as JSON
    Run {
        /// The workbook, in TOML or Org; `-` reads it from stdin
        file: PathBuf,
        /// Print the whole outcome as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the components with their inputs and exports
    List {
        /// The workbook; `-` reads it from stdin
        file: PathBuf,
        /// Print the components as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a workbook and compile its programs without running them
    Lint {
        /// The workbook; `-` reads it from stdin
        file: PathBuf,
    },
    /// Write the programs of a workbook into files
    Tangle {
        /// The workbook; `-` reads it from stdin
        file: PathBuf,
        /// Write the files into this folder
        #[arg(long, default_value = ".")]
        dir: PathBuf,
    },
    /// Apply a jq filter to the array of all components
    Query {
        /// The workbook; `-` reads it from stdin
        file: PathBuf,
        /// The filter, such as `map(.name)`
        filter: String,
    },
}

/// The commands of `catalog`.
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// List the programs
    List {
        /// Print the programs as JSON
        #[arg(long)]
        json: bool,
    },
    /// Find programs about a topic, the most relevant first
    Search {
        /// The words to search for
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
        /// Print the programs as JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a working program as a starting point
    New(NewArgs),
    /// Run the examples of programs with their fixtures
    Test {
        /// Program names, files and folders [default: the whole catalog]
        #[arg(value_name = "NAME|FILE|DIR")]
        what: Vec<String>,
        /// Print the results as JSON
        #[arg(long)]
        json: bool,
    },
    /// Format program files in the standard layout
    Fmt(FmtArgs),
    /// Show one program: its usage, its examples and its text
    Show {
        /// The program's name
        name: String,
        /// Print the program as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The commands of `skills`.
#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills, and whether they are used
    List {
        /// Print the skills as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one skill: its description, its instructions and its files
    Show {
        /// The skill's name
        name: String,
        /// Print the skill as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check that skills are valid and that their programs compile
    Check {
        /// Skills and folders [default: all skills]
        #[arg(value_name = "NAME|DIR")]
        what: Vec<String>,
        /// Print the problems as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a new skill, as a starting point
    New(NewSkillArgs),
    /// Write the programs of a catalog folder as a skill
    Export(ExportArgs),
}

/// Arguments of `skills new`.
#[derive(Debug, Args)]
pub(crate) struct NewSkillArgs {
    /// The skill's name: lowercase letters, digits and hyphens
    pub(crate) name: String,
    /// Write here [default: the last folder of skills, else .agents/skills]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print the skill's folder as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `skills export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The folder of programs
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Use this name for the skill [default: the folder's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Set the skill's description [default: what its programs do]
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Write here [default: the last folder of skills, else .agents/skills]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print the skill's folder as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The commands of `agents`.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents
    List {
        /// Print the agents as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one agent: its declaration, its step limit and its programs
    Show {
        /// The agent's name or title
        name: String,
        /// Print the agent as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check that agents can be used
    Check {
        /// Agents [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print the problems as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run the examples of agents, from recordings or with a model
    Test(AgentsTestArgs),
    /// Write a new agent, as a starting point
    New {
        /// The agent's name: lowercase letters, digits, `_`, `-` and `.`
        name: String,
        /// Write to this folder [default: the last folder of agents, else .]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Arguments of `agents test`.
#[derive(Debug, Args)]
pub(crate) struct AgentsTestArgs {
    /// Agents [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Ask this model instead of playing the recordings
    #[arg(long, value_name = "NAME", conflicts_with = "recorded")]
    pub(crate) model: Option<String>,
    /// Play the recordings, even if an endpoint is configured
    #[arg(long)]
    pub(crate) recorded: bool,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `catalog new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The program's name: lowercase letters, digits, `_` and `.`
    pub(crate) name: String,
    /// Write to this folder [default: the last catalog folder, else .]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print the file's path as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `catalog fmt`.
#[derive(Debug, Args)]
pub(crate) struct FmtArgs {
    /// Files and folders; `-` is stdin [default: the catalog folders]
    #[arg(value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,
    /// List the files that would change, and fail if there are any
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the result for each file as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
