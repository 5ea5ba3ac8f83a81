//! Every schedule of small plans: somebody else acts, the disk fails or the process ends before each primitive operation, and before
//! each two of them. Whatever happens, nobody's bytes are lost, each file is whole, and nothing of the host's own is left over.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::io::Errno;

use super::apply::carry_out;
use super::error::FilesError;
use super::layer::Content;
use super::path::RunPath;
use super::plan::{Act, Step};
use super::primitives::{Disk, State};
use super::recover::finish;
use super::stamp::{FileStamp, Stamp};
use super::{Change, ChangeKind, EntryKind};

const WORKING: &str = ".wattle-tmp-0123456789abcdef";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File { inode: u64, data: String, modified: i64, changed: i64 },
    Folder,
    Link(String),
}

/// What happens before a primitive operation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    /// The user writes into a file that is there, in as many bytes.
    Edit(String),
    /// As that, and sets the time of the last change back.
    EditInSilence(String),
    /// The user saves a file as editors do: a new one, moved over what is there.
    Save(String),
    /// The user removes what is there, and writes it down as no longer wanted.
    Delete(String),
    /// The user moves what is there away.
    Move(String),
    /// The user puts a folder with a file in the place.
    Folder(String),
    /// The user puts a link in the place.
    Link(String),
    /// The operation fails once.
    Fail,
    /// The process ends.
    Crash,
}

#[derive(Clone, Default)]
struct World {
    nodes: BTreeMap<String, Node>,
    clock: i64,
    inodes: u64,
    step: usize,
    dead: bool,
    events: Vec<(usize, Event)>,
    /// What the user wrote and did not overwrite or remove.
    wanted: BTreeSet<String>,
    can_exchange: bool,
}

impl World {
    fn file(&mut self, path: &str, data: &str) {
        self.clock += 1;
        self.inodes += 1;
        let (inode, now) = (self.inodes, self.clock);
        self.nodes.insert(path.into(), Node::File { inode, data: data.into(), modified: now, changed: now });
    }

    fn below(&self, path: &str) -> Vec<String> {
        let inside = |other: &&String| *other == path || other.starts_with(&format!("{path}/"));
        self.nodes.keys().filter(inside).cloned().collect()
    }

    /// Takes out an entry with all below it.
    fn take(&mut self, path: &str) -> Vec<(String, Node)> {
        let all = self.below(path);
        all.into_iter().map(|at| (at[path.len()..].to_owned(), self.nodes.remove(&at).unwrap())).collect()
    }

    fn put(&mut self, path: &str, taken: Vec<(String, Node)>) {
        self.clock += 1;
        for (rest, mut node) in taken {
            if let (true, Node::File { changed, .. }) = (rest.is_empty(), &mut node) {
                *changed = self.clock;
            }
            self.nodes.insert(format!("{path}{rest}"), node);
        }
    }

    fn has_folder_for(&self, path: &str) -> bool {
        path.rsplit_once('/').is_none_or(|(folder, _)| self.nodes.get(folder) == Some(&Node::Folder))
    }

    /// The user no longer wants what is at a path.
    fn forget(&mut self, path: &str) {
        for (_, node) in self.take(path) {
            if let Node::File { data, .. } = node {
                self.wanted.remove(&data);
            }
        }
    }

    fn fresh(&mut self) -> String {
        self.clock += 1;
        let text = format!("user-{:07}", self.clock);
        self.wanted.insert(text.clone());
        text
    }

    fn act(&mut self, event: &Event) {
        match event {
            Event::Edit(path) | Event::EditInSilence(path) => {
                let silent = matches!(event, Event::EditInSilence(_));
                if !matches!(self.nodes.get(path), Some(Node::File { .. })) {
                    return;
                }
                let text = self.fresh();
                let now = self.clock;
                if let Some(Node::File { data, modified, changed, .. }) = self.nodes.get_mut(path) {
                    self.wanted.remove(data);
                    *data = text;
                    *changed = now;
                    if !silent {
                        *modified = now;
                    }
                }
            }
            Event::Save(path) if self.has_folder_for(path) => {
                self.forget(path);
                let text = self.fresh();
                self.file(path, &text);
            }
            Event::Delete(path) => self.forget(path),
            Event::Move(path) => {
                let taken = self.take(path);
                self.put(&format!("{path}.mine"), taken);
            }
            Event::Folder(path) if self.has_folder_for(path) => {
                self.forget(path);
                self.nodes.insert(path.clone(), Node::Folder);
                let text = self.fresh();
                self.file(&format!("{path}/inner"), &text);
            }
            Event::Link(path) if self.has_folder_for(path) => {
                self.forget(path);
                self.nodes.insert(path.clone(), Node::Link("elsewhere".into()));
            }
            _ => {}
        }
    }
}

struct Fake(RefCell<World>);

impl Fake {
    /// Lets happen what is to happen before the next operation.
    fn tick(&self) -> io::Result<std::cell::RefMut<'_, World>> {
        let mut world = self.0.borrow_mut();
        if world.dead {
            return Err(Errno::IO.into());
        }
        let step = world.step;
        world.step += 1;
        let due: Vec<Event> =
            world.events.iter().filter(|(at, _)| *at == step).map(|(_, event)| event.clone()).collect();
        let mut failed = false;
        for event in due {
            match event {
                Event::Crash => world.dead = true,
                Event::Fail => failed = true,
                event => world.act(&event),
            }
        }
        if failed || world.dead { Err(Errno::IO.into()) } else { Ok(world) }
    }
}

fn stamp(node: &Node) -> Option<FileStamp> {
    let Node::File { inode, data, modified, changed } = node else { return None };
    Some(FileStamp::for_tests(*inode, data.len() as u64, *modified, *changed))
}

fn state(world: &World, path: &str) -> State {
    match world.nodes.get(path) {
        None => State::Absent,
        Some(Node::Folder) => State::Folder,
        Some(Node::Link(target)) => State::Link(target.clone()),
        Some(node) => State::File(stamp(node).unwrap(), 0o644),
    }
}

fn tree(world: &World, path: &str) -> blake3::Hash {
    let text: Vec<String> =
        world.below(path).iter().skip(1).map(|at| format!("{}{:?}", &at[path.len()..], world.nodes[at])).collect();
    blake3::hash(text.join("\n").as_bytes())
}

impl Disk for Fake {
    fn state(&self, path: &RunPath) -> io::Result<State> {
        Ok(state(&*self.tick()?, path.as_str()))
    }

    fn digest(&self, path: &RunPath) -> io::Result<Option<blake3::Hash>> {
        match self.tick()?.nodes.get(path.as_str()) {
            Some(Node::File { data, .. }) => Ok(Some(blake3::hash(data.as_bytes()))),
            _ => Err(Errno::NOENT.into()),
        }
    }

    fn tree(&self, path: &RunPath) -> io::Result<blake3::Hash> {
        Ok(tree(&*self.tick()?, path.as_str()))
    }

    fn names(&self, path: &RunPath) -> io::Result<Vec<String>> {
        let world = self.tick()?;
        let below = world.below(path.as_str()).into_iter();
        Ok(below
            .filter_map(|at| at[path.as_str().len()..].strip_prefix('/').map(str::to_owned))
            .filter(|at| !at.contains('/'))
            .collect())
    }

    fn read(&self, path: &RunPath) -> io::Result<Vec<u8>> {
        match self.tick()?.nodes.get(path.as_str()) {
            Some(Node::File { data, .. }) => Ok(data.clone().into_bytes()),
            _ => Err(Errno::NOENT.into()),
        }
    }

    fn check_writable(&self, path: &RunPath) -> io::Result<()> {
        match self.tick()?.nodes.get(path.as_str()) {
            Some(Node::File { .. }) => Ok(()),
            _ => Err(Errno::NOENT.into()),
        }
    }

    fn staging(&self, working: &RunPath, number: usize, _: &RunPath) -> io::Result<RunPath> {
        Ok(working.join(&format!("s{number}")).unwrap())
    }

    fn create(&self, path: &RunPath, data: &[u8], _: Option<u32>) -> io::Result<()> {
        let mut world = self.tick()?;
        if world.nodes.contains_key(path.as_str()) {
            return Err(Errno::EXIST.into());
        }
        if !world.has_folder_for(path.as_str()) {
            return Err(Errno::NOENT.into());
        }
        world.file(path.as_str(), std::str::from_utf8(data).unwrap());
        Ok(())
    }

    fn link(&self, path: &RunPath, target: &str) -> io::Result<()> {
        let mut world = self.tick()?;
        if world.nodes.contains_key(path.as_str()) {
            return Err(Errno::EXIST.into());
        }
        world.nodes.insert(path.as_str().into(), Node::Link(target.into()));
        Ok(())
    }

    fn make_folder(&self, path: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        match world.nodes.get(path.as_str()) {
            None => world.nodes.insert(path.as_str().into(), Node::Folder),
            Some(Node::Folder) => None,
            Some(_) => return Err(Errno::EXIST.into()),
        };
        Ok(())
    }

    fn rename_new(&self, from: &RunPath, to: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        if !world.nodes.contains_key(from.as_str()) || !world.has_folder_for(to.as_str()) {
            return Err(Errno::NOENT.into());
        }
        if world.nodes.contains_key(to.as_str()) {
            return Err(Errno::EXIST.into());
        }
        let taken = world.take(from.as_str());
        world.put(to.as_str(), taken);
        Ok(())
    }

    fn exchange(&self, one: &RunPath, other: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        if !world.can_exchange {
            return Err(Errno::INVAL.into());
        }
        if !world.nodes.contains_key(one.as_str()) || !world.nodes.contains_key(other.as_str()) {
            return Err(Errno::NOENT.into());
        }
        let (a, b) = (world.take(one.as_str()), world.take(other.as_str()));
        world.put(one.as_str(), b);
        world.put(other.as_str(), a);
        Ok(())
    }

    fn unlink(&self, path: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        match world.nodes.get(path.as_str()) {
            None => Err(Errno::NOENT.into()),
            Some(Node::Folder) => Err(Errno::ISDIR.into()),
            Some(_) => {
                world.nodes.remove(path.as_str());
                Ok(())
            }
        }
    }

    fn remove_folder(&self, path: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        match world.below(path.as_str()).len() {
            0 => Err(Errno::NOENT.into()),
            1 => {
                world.nodes.remove(path.as_str());
                Ok(())
            }
            _ => Err(Errno::NOTEMPTY.into()),
        }
    }

    fn sync(&self, _: &RunPath) -> io::Result<()> {
        self.tick().map(drop)
    }
}

fn path(text: &str) -> RunPath {
    RunPath::parse(text).unwrap()
}

/// The workdir before: two files, a folder with two, a link, and a file that is to become a folder.
fn before(can_exchange: bool) -> World {
    let mut world = World { can_exchange, ..World::default() };
    for (name, data) in [("a", "old-a"), ("b", "old-b"), ("k", "old-k")] {
        world.file(name, data);
    }
    world.nodes.insert("d".into(), Node::Folder);
    world.file("d/x", "old-x");
    world.file("d/y", "old-y");
    world.nodes.insert("l".into(), Node::Link("a".into()));
    world.nodes.insert(WORKING.into(), Node::Folder);
    world
}

fn step(world: &World, at: &str, kind: ChangeKind, entry: EntryKind, act: Act, displaces: bool) -> Step {
    let seen = match state(world, at) {
        State::Absent => Stamp::Absent,
        State::File(stamp, _) => Stamp::File(stamp),
        State::Folder => Stamp::Tree(tree(world, at)),
        State::Link(target) => Stamp::Link(target),
        State::Other => Stamp::Other,
    };
    let change = Change { path: at.into(), kind, entry, size: 0 };
    Step { change, path: path(at), act, guard: path(at), seen, displaces }
}

fn content(text: &str) -> Act {
    Act::File { content: Content::new(text.as_bytes().to_vec()), mode: None }
}

/// Each sort of change: what it is about, and its steps.
fn plans(world: &World) -> Vec<(&'static str, Vec<Step>)> {
    use ChangeKind::{Created, Deleted, Modified};
    use EntryKind::{File, Folder, Link};
    let step = |at: &str, kind, entry, act, displaces| step(world, at, kind, entry, act, displaces);
    vec![
        ("a", vec![step("a", Modified, File, content("new-a"), false)]),
        ("n", vec![step("n", Created, File, content("new-n"), false)]),
        ("b", vec![step("b", Deleted, File, Act::Remove, false)]),
        ("d", vec![step("d", Deleted, Folder, Act::Remove, false)]),
        ("l", vec![step("l", Modified, Link, Act::Link("b".into()), false)]),
        (
            "k",
            vec![
                step("k", Deleted, File, Act::Remove, true),
                step("k", Created, Folder, Act::Folder, true),
                step("k/new", Created, File, content("new-k"), true),
            ],
        ),
    ]
}

fn events(target: &str) -> Vec<Event> {
    let mut events: Vec<Event> =
        [Event::Edit, Event::EditInSilence, Event::Save, Event::Delete, Event::Move, Event::Folder, Event::Link]
            .into_iter()
            .map(|event| event(target.to_owned()))
            .collect();
    if target == "d" {
        events.extend([Event::Edit("d/x".into()), Event::Save("d/z".into()), Event::Delete("d/y".into())]);
    }
    events.extend([Event::Fail, Event::Crash]);
    events
}

type Outcomes = Vec<(Step, Result<(), FilesError>)>;

/// Carries a plan out while that happens, then ends what was begun, as the next process does. Gives how many operations it took.
fn run(world: &World, steps: Vec<Step>, events: Vec<(usize, Event)>) -> (World, Outcomes, usize) {
    let fake = Fake(RefCell::new(World { events, ..world.clone() }));
    let working = path(WORKING);
    let outcomes = carry_out(&fake, &working, steps, &BTreeSet::new());
    let mut ended = finish(&fake, &working);
    let steps = fake.0.borrow().step;
    // The next process, and one after it, where the first was ended or met a failure, too.
    for _ in 0..4 {
        fake.0.borrow_mut().dead = false;
        if ended.is_ok() || !fake.0.borrow().nodes.contains_key(WORKING) {
            break;
        }
        ended = finish(&fake, &working);
    }
    (fake.0.into_inner(), outcomes, steps)
}

/// What must hold whatever happened.
fn check(start: &World, end: &World, outcomes: &Outcomes, target: &str) -> Result<(), String> {
    if let Some(left) = end.nodes.keys().find(|at| at.starts_with(".wattle-tmp")) {
        return Err(format!("`{left}` is left over"));
    }
    let all: BTreeSet<&str> = end
        .nodes
        .values()
        .filter_map(|node| if let Node::File { data, .. } = node { Some(data.as_str()) } else { None })
        .collect();
    if let Some(lost) = end.wanted.iter().find(|text| !all.contains(text.as_str())) {
        return Err(format!("the user's `{lost}` is lost"));
    }
    if let Some(torn) = all.iter().find(|text| !["old-", "new-", "user-"].iter().any(|head| text.starts_with(head))) {
        return Err(format!("`{torn}` is neither old nor new"));
    }
    let disturbed = !end.events.is_empty();
    for (step, outcome) in outcomes {
        let now = end.nodes.get(step.path.as_str());
        if !disturbed {
            outcome.as_ref().map_err(|why| format!("undisturbed, {}: {why}", step.change))?;
        }
        let by_others = end.events.iter().any(|(_, event)| !matches!(event, Event::Fail | Event::Crash));
        if by_others {
            continue;
        }
        // Only the disk failed or the process ended: what is reported as done is done.
        let done = match &step.act {
            Act::Remove => now.is_none() || step.displaces,
            Act::Folder => now == Some(&Node::Folder),
            Act::Link(target) => now == Some(&Node::Link(target.clone())),
            Act::File { content, .. } => {
                matches!(now, Some(Node::File { data, .. }) if data.as_bytes() == content.as_ref())
            }
        };
        if outcome.is_ok() && !done {
            return Err(format!("{} is reported as done and is not", step.change));
        }
        let whole = start.nodes.get(step.path.as_str()).map(|node| (node, end.nodes.get(step.path.as_str())));
        if let Some((Node::File { data: old, .. }, Some(Node::File { data, .. }))) = whole
            && data != old
            && !done
        {
            return Err(format!("`{target}` is neither the old nor the new one"));
        }
    }
    Ok(())
}

#[test]
fn every_single_event_in_a_plan_of_all_sorts_loses_nothing() {
    for can_exchange in [true, false] {
        let start = before(can_exchange);
        let all = || plans(&start).into_iter().flat_map(|(_, steps)| steps).collect::<Vec<_>>();
        let (end, outcomes, count) = run(&start, all(), Vec::new());
        check(&start, &end, &outcomes, "all").unwrap();
        assert!(count > 60, "{count}");
        let mut schedules = 0;
        for at in 0..=count {
            for target in ["a", "n", "b", "d", "l", "k"] {
                for event in events(target) {
                    let events = vec![(at, event)];
                    let (end, outcomes, _) = run(&start, all(), events.clone());
                    let checked = check(&start, &end, &outcomes, target);
                    assert_eq!(checked, Ok(()), "{events:?}, exchange: {can_exchange}\n{:#?}", end.nodes);
                    schedules += 1;
                }
            }
        }
        assert!(schedules > 3_000, "{schedules}");
    }
}

/// What happens first and what follows it, in a pair of events.
fn pairs(target: &str) -> Vec<(Event, Event)> {
    use Event::{Crash, Delete, Edit, EditInSilence, Fail, Folder, Save};
    let at = |event: fn(String) -> Event| event(target.to_owned());
    let first = [at(Edit), at(EditInSilence), at(Save), at(Delete), Fail, Crash];
    let then = [at(Edit), at(Save), at(Delete), at(Folder), Fail, Crash];
    first.iter().flat_map(|one| then.iter().map(|other| (one.clone(), other.clone()))).collect()
}

/// Two events within that many operations act on each other; beyond, each is as if it were alone.
const NEAR: usize = 10;

#[test]
fn every_two_events_in_each_sort_of_change_lose_nothing() {
    for can_exchange in [true, false] {
        let start = before(can_exchange);
        for (number, (target, _)) in plans(&start).iter().enumerate() {
            // Only these two exchange anything.
            if !can_exchange && !["a", "l"].contains(target) {
                continue;
            }
            let steps = || plans(&start).swap_remove(number).1;
            let (_, _, count) = run(&start, steps(), Vec::new());
            for first in 0..=count {
                for (second, (one, other)) in
                    (first..first + NEAR).flat_map(|at| pairs(target).into_iter().map(move |pair| (at, pair)))
                {
                    let events = vec![(first, one), (second, other)];
                    let (end, outcomes, _) = run(&start, steps(), events.clone());
                    let checked = check(&start, &end, &outcomes, target);
                    assert_eq!(checked, Ok(()), "{events:?}, exchange: {can_exchange}\n{:#?}", end.nodes);
                }
            }
        }
    }
}
