//! The authority of a program, summarized for people: the resources that it may access, by kind.

use serde::Serialize;
use wattle_rt::{Argument, Program, Reach, Target};

/// The resources that a program may access outside its run. Each list is sorted and has no
/// duplicates.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Touched {
    /// The host functions that access resources outside the run, such as `fs.read`.
    pub functions: Vec<String>,
    /// The paths that the program may read.
    pub reads: Vec<String>,
    /// The paths that the program may write.
    pub writes: Vec<String>,
    /// The URLs that the program may request.
    pub urls: Vec<String>,
    /// The state keys that the program may access.
    pub keys: Vec<String>,
    /// The programs, agents and tools that the program may call.
    pub programs: Vec<String>,
    /// The operator's services that the program may use, such as the model.
    pub services: Vec<String>,
    /// The functions whose targets are known only at run time, each with the kind of its target,
    /// such as `fs.read: any path`.
    pub unknown: Vec<String>,
}

/// Returns the resources that a program may access.
#[must_use]
pub fn touched(program: &Program) -> Touched {
    let mut touched = Touched::default();
    let uses = program.authority().uses().iter();
    for one in uses.filter(|one| one.function.reaches_out()) {
        let function = format!("{}.{}", one.function.module, one.function.name);
        for reach in one.reaches() {
            match reach {
                Reach::Named(target, Argument::OneOf(texts)) => {
                    texts.iter().for_each(|text| touched.add(target, text.to_string()));
                }
                Reach::Named(target, Argument::Unknown) => touched.any(&function, target),
                Reach::Any(targets) => {
                    targets.iter().for_each(|target| touched.any(&function, *target));
                }
                Reach::Always(fixed) => touched.add(fixed.target, fixed.text.to_owned()),
            }
        }
        touched.functions.push(function);
    }
    for list in [
        &mut touched.functions,
        &mut touched.reads,
        &mut touched.writes,
        &mut touched.urls,
        &mut touched.keys,
        &mut touched.programs,
        &mut touched.services,
        &mut touched.unknown,
    ] {
        list.sort();
        list.dedup();
    }
    touched
}

impl Touched {
    fn add(&mut self, target: Target, text: String) {
        match target {
            Target::Url => self.urls.push(text),
            Target::Read | Target::ReadTree => self.reads.push(text),
            Target::Write => self.writes.push(text),
            Target::Tree => {
                self.reads.push(text.clone());
                self.writes.push(text);
            }
            Target::Key | Target::Keys => self.keys.push(text),
            Target::Program | Target::Agent | Target::Tool => self.programs.push(text),
            Target::Service(service) => self.services.push(service.name.to_owned()),
        }
    }

    fn any(&mut self, function: &str, target: Target) {
        let kind = match target {
            Target::Url => "URL",
            Target::Read | Target::ReadTree | Target::Write | Target::Tree => "path",
            Target::Key | Target::Keys => "key",
            Target::Program => "program",
            Target::Agent => "agent",
            Target::Tool => "tool",
            Target::Service(_) => "service",
        };
        self.unknown.push(format!("{function}: any {kind}"));
    }
}
