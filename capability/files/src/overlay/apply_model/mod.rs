//! A model test of applying changes. A schedule contains one or two events, each of which occurs
//! just before a primitive operation. In an event, the user changes an entry, the disk fails or the
//! process ends. After every schedule, none of the user's bytes are lost, each file is completely
//! old or completely new, and no staged file remains.

mod fake_disk;

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::apply::apply_steps;
use super::layer::Content;
use super::plan::{Action, Step};
use crate::base::recover::{Origin, finish};
use crate::entry::{Change, ChangeKind, EntryKind};
use crate::error::FilesError;
use crate::path::RunPath;
use crate::stamp::{CurrentEntry, Stamp};
use fake_disk::{Event, FakeDisk, Node, World, current, tree};

const STAGING: &str = ".wattle-tmp-0123456789abcdef";

fn path(text: &str) -> RunPath {
    RunPath::parse(text).unwrap()
}

/// Returns the initial workdir: two files, a folder with two files, a link, and a file that becomes
/// a folder.
fn before(can_exchange: bool) -> World {
    let mut world = World { can_exchange, ..World::default() };
    for (name, data) in [("a", "old-a"), ("b", "old-b"), ("k", "old-k")] {
        world.file(name, data);
    }
    world.nodes.insert("d".into(), Node::Folder);
    world.file("d/x", "old-x");
    world.file("d/y", "old-y");
    world.nodes.insert("l".into(), Node::Link("a".into()));
    world.nodes.insert(STAGING.into(), Node::Folder);
    world
}

fn step(
    world: &World,
    at: &str,
    kind: ChangeKind,
    entry: EntryKind,
    action: Action,
    displaces: bool,
) -> Step {
    let seen = match current(world, at) {
        CurrentEntry::Absent => Stamp::Absent,
        CurrentEntry::File(stamp, _) => Stamp::File(stamp),
        CurrentEntry::Folder => Stamp::Tree(tree(world, at)),
        CurrentEntry::Link(target) => Stamp::Link(target),
        CurrentEntry::Other => Stamp::Other,
    };
    let change = Change { path: at.into(), kind, entry, size: 0 };
    Step { change, path: path(at), action, basis: path(at), seen, displaces }
}

fn content(text: &str) -> Action {
    Action::File { content: Content::new(text.as_bytes().to_vec()), mode: None }
}

/// Returns a plan for each type of change, paired with the path that the plan changes.
fn plans(world: &World) -> Vec<(&'static str, Vec<Step>)> {
    use ChangeKind::{Created, Deleted, Modified};
    use EntryKind::{File, Folder, Link};
    let step =
        |at: &str, kind, entry, action, displaces| step(world, at, kind, entry, action, displaces);
    vec![
        ("a", vec![step("a", Modified, File, content("new-a"), false)]),
        ("n", vec![step("n", Created, File, content("new-n"), false)]),
        ("b", vec![step("b", Deleted, File, Action::Remove, false)]),
        ("d", vec![step("d", Deleted, Folder, Action::Remove, false)]),
        ("l", vec![step("l", Modified, Link, Action::Link("b".into()), false)]),
        (
            "k",
            vec![
                step("k", Deleted, File, Action::Remove, true),
                step("k", Created, Folder, Action::Folder, true),
                step("k/new", Created, File, content("new-k"), true),
            ],
        ),
    ]
}

fn events(target: &str) -> Vec<Event> {
    let mut events: Vec<Event> = [
        Event::Edit,
        Event::EditKeepingTime,
        Event::Save,
        Event::Delete,
        Event::Move,
        Event::Folder,
        Event::Link,
    ]
    .into_iter()
    .map(|event| event(target.to_owned()))
    .collect();
    if target == "d" {
        events.extend([
            Event::Edit("d/x".into()),
            Event::Save("d/z".into()),
            Event::Delete("d/y".into()),
        ]);
    }
    events.extend([Event::Fail, Event::Crash]);
    events
}

type Results = Vec<(Step, Result<(), FilesError>)>;

/// Applies a plan while the events happen, and then recovers as the next process would. Returns the
/// final state, the results and the number of operations.
fn run(world: &World, steps: Vec<Step>, events: Vec<(usize, Event)>) -> (World, Results, usize) {
    let fake = FakeDisk(RefCell::new(World { events, ..world.clone() }));
    let staging = path(STAGING);
    let results = apply_steps(&fake, &staging, steps, |_| Ok(()));
    let mut recovered = finish(&fake, &staging, Origin::ThisProcess);
    let steps = fake.0.borrow().step;
    // If the recovery is interrupted too, later processes continue it.
    for _ in 0..4 {
        fake.0.borrow_mut().dead = false;
        if recovered.is_ok() || !fake.0.borrow().nodes.contains_key(STAGING) {
            break;
        }
        recovered = finish(&fake, &staging, Origin::Unknown);
    }
    (fake.0.into_inner(), results, steps)
}

/// Checks the invariants that hold after every schedule of events.
fn check(start: &World, end: &World, results: &Results, target: &str) -> Result<(), String> {
    if let Some(left) = end.nodes.keys().find(|at| at.starts_with(".wattle-tmp")) {
        return Err(format!("`{left}` is left over"));
    }
    let all: BTreeSet<&str> = end
        .nodes
        .values()
        .filter_map(
            |node| if let Node::File { data, .. } = node { Some(data.as_str()) } else { None },
        )
        .collect();
    if let Some(lost) = end.wanted.iter().find(|text| !all.contains(text.as_str())) {
        return Err(format!("the user's `{lost}` is lost"));
    }
    if let Some(torn) =
        all.iter().find(|text| !["old-", "new-", "user-"].iter().any(|head| text.starts_with(head)))
    {
        return Err(format!("`{torn}` is neither old nor new"));
    }
    let disturbed = !end.events.is_empty();
    for (step, result) in results {
        let now = end.nodes.get(step.path.as_str());
        if !disturbed {
            result.as_ref().map_err(|why| format!("undisturbed, {}: {why}", step.change))?;
        }
        let by_others =
            end.events.iter().any(|(_, event)| !matches!(event, Event::Fail | Event::Crash));
        if by_others {
            continue;
        }
        // If only the disk failed or the process ended, each change reported as done has been made.
        let done = match &step.action {
            Action::Remove => now.is_none() || step.displaces,
            Action::Folder => now == Some(&Node::Folder),
            Action::Link(target) => now == Some(&Node::Link(target.clone())),
            Action::File { content, .. } => {
                matches!(now, Some(Node::File { data, .. }) if data.as_bytes() == content.as_ref())
            }
        };
        if result.is_ok() && !done {
            return Err(format!("{} is reported as done and is not", step.change));
        }
        let whole = start
            .nodes
            .get(step.path.as_str())
            .map(|node| (node, end.nodes.get(step.path.as_str())));
        if let Some((Node::File { data: old, .. }, Some(Node::File { data, .. }))) = whole
            && data != old
            && !done
        {
            return Err(format!("`{target}` is neither the old nor the new one"));
        }
    }
    Ok(())
}

/// Applies a plan while the events happen and checks the result.
fn assert_nothing_is_lost(
    start: &World,
    steps: Vec<Step>,
    events: Vec<(usize, Event)>,
    target: &str,
) {
    let (end, results, _) = run(start, steps, events.clone());
    let checked = check(start, &end, &results, target);
    let can_exchange = start.can_exchange;
    assert_eq!(checked, Ok(()), "{events:?}, exchange: {can_exchange}\n{:#?}", end.nodes);
}

#[test]
fn one_event_during_a_plan_of_all_changes_loses_nothing() {
    for can_exchange in [true, false] {
        let start = before(can_exchange);
        let all = || plans(&start).into_iter().flat_map(|(_, steps)| steps).collect::<Vec<_>>();
        let (end, results, count) = run(&start, all(), Vec::new());
        check(&start, &end, &results, "all").unwrap();
        assert!(count > 60, "{count}");
        let mut schedules = 0;
        for at in 0..=count {
            for target in ["a", "n", "b", "d", "l", "k"] {
                for event in events(target) {
                    assert_nothing_is_lost(&start, all(), vec![(at, event)], target);
                    schedules += 1;
                }
            }
        }
        assert!(schedules > 3_000, "{schedules}");
    }
}

/// Returns pairs of events, most of which act on the path `target`.
fn pairs(target: &str) -> Vec<(Event, Event)> {
    use Event::{Crash, Delete, Edit, EditKeepingTime, Fail, Folder, Save};
    let at = |event: fn(String) -> Event| event(target.to_owned());
    let first = [at(Edit), at(EditKeepingTime), at(Save), at(Delete), Fail, Crash];
    let then = [at(Edit), at(Save), at(Delete), at(Folder), Fail, Crash];
    first.iter().flat_map(|one| then.iter().map(|other| (one.clone(), other.clone()))).collect()
}

/// Maximum distance between two events that can affect each other, in operations.
const MAX_DISTANCE: usize = 10;

#[test]
fn two_events_during_each_change_lose_nothing() {
    for can_exchange in [true, false] {
        let start = before(can_exchange);
        for (number, (target, _)) in plans(&start).iter().enumerate() {
            // Only these two plans exchange entries.
            if !can_exchange && !["a", "l"].contains(target) {
                continue;
            }
            let steps = || plans(&start).swap_remove(number).1;
            let (_, _, count) = run(&start, steps(), Vec::new());
            for first in 0..=count {
                for (second, (one, other)) in (first..first + MAX_DISTANCE)
                    .flat_map(|at| pairs(target).into_iter().map(move |pair| (at, pair)))
                {
                    let events = vec![(first, one), (second, other)];
                    assert_nothing_is_lost(&start, steps(), events, target);
                }
            }
        }
    }
}
