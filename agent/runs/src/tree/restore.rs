//! Restores the recorded usage of a tree's runs after their process has stopped.

use std::sync::Arc;

use wattle_machine::Usage;

use super::{Node, RunTree};

/// The recorded usage of one run, without its descendants.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedUse {
    /// The usage of the run's model and programs.
    pub(crate) usage: Usage,
    /// Number of requests that the run's programs made with `ai`.
    pub(crate) ai_calls: u32,
    /// Number of tokens that these requests used.
    pub(crate) ai_tokens: u64,
    /// Number of images that the run's programs generated, excluding `repeated_images`.
    pub(crate) images: u32,
    /// Number of images that the run's programs generate again when the run is resumed.
    pub(crate) repeated_images: u32,
}

/// A recorded descendant of the run that is resumed.
pub(crate) struct RecordedRun<'a> {
    pub(crate) id: &'a str,
    /// The id of the parent run.
    pub(crate) parent: &'a str,
    /// The name of the run's agent.
    pub(crate) agent: &'a str,
    /// The settings that contain the run's limits.
    pub(crate) settings: wattle_machine::Settings,
    pub(crate) used: RecordedUse,
}

impl RunTree {
    /// Records that this process has driven the run from its start, so all of its recorded usage
    /// has already been charged.
    pub(crate) fn begin(&self) {
        let _nodes = self.shared.lock();
        self.node.budget().is_counted = true;
    }

    /// Charges the usage of the run from before it was resumed, except the part that this process
    /// has already charged. `answered` contains the ended child runs whose answers may be on the
    /// tape of the program that runs again, each with its usage.
    pub(crate) fn restore(&self, used: &RecordedUse, answered: &[(String, Usage)]) {
        let children = self.shared.lock();
        self.charge_recorded(&self.node, used);
        self.shared.images.release(used.repeated_images);
        // The usage that was reported since the last turn was recorded is reported again.
        _ = self.node.child_usage.take();
        for child in children.values() {
            if child.above.as_ref().is_some_and(|above| Arc::ptr_eq(above, &self.node)) {
                child.budget().is_reported = false;
            }
        }
        for (child, usage) in answered {
            if let Some(child) = children.get(child) {
                child.budget().is_reported = true;
            }
            self.node.child_usage.add(*usage);
        }
    }

    /// Adds a descendant of this run to the tree, unless the tree already contains it, and charges
    /// its recorded usage. `own` is the id of this run. A run must be added after its parent.
    pub(crate) fn restore_below(&self, own: &str, run: &RecordedRun<'_>) {
        let mut children = self.shared.lock();
        let above = match children.get(run.parent) {
            Some(above) => above,
            None if run.parent == own => &self.node,
            None => return,
        };
        let fresh = Arc::new(Node::below(above));
        let node = Arc::clone(children.entry(run.id.to_owned()).or_insert(fresh));
        {
            let mut budget = node.budget();
            run.agent.clone_into(&mut budget.agent);
            budget.max_tokens = run.settings.max_tokens_total;
            budget.max_cost = run.settings.max_cost;
        }
        self.charge_recorded(&node, &run.used);
    }

    /// Charges the part of a run's recorded usage that this process has not charged yet. The tree
    /// must be locked.
    fn charge_recorded(&self, node: &Node, used: &RecordedUse) {
        let known = node.budget().own;
        node.charge(used.usage.beyond(known));
        if !std::mem::replace(&mut node.budget().is_counted, true) {
            node.ai.charge(used.ai_calls, used.ai_tokens);
            self.shared.images.charge(used.images.saturating_add(used.repeated_images));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(prompt: u64) -> RecordedUse {
        let usage = Usage { prompt, ..Usage::default() };
        RecordedUse { usage, ..RecordedUse::default() }
    }

    fn run<'a>(id: &'a str, parent: &'a str, prompt: u64) -> RecordedRun<'a> {
        let settings = wattle_machine::Settings {
            max_tokens_total: (id == "middle").then_some(30),
            ..wattle_machine::Settings::default()
        };
        RecordedRun { id, parent, agent: id, settings, used: used(prompt) }
    }

    #[test]
    fn each_recorded_run_is_charged_once() {
        let tree = RunTree::default();
        for _ in 0..2 {
            tree.restore(&used(1), &[]);
            tree.restore_below("top", &run("middle", "top", 10));
            tree.restore_below("top", &run("leaf", "middle", 15));
        }
        let total = || tree.node.budget().used.prompt;
        assert_eq!(total(), 26);
        let middle = tree.child("top", "middle").unwrap();
        assert!(middle.over_budget().is_none());
        let leaf = middle.child("middle", "leaf").unwrap();
        leaf.charge(Usage { prompt: 5, ..Usage::default() });
        assert_eq!(total(), 31);
        let over = leaf.over_budget().unwrap().to_string();
        assert_eq!(over, "reached max_tokens_total (30) of the agent `middle` above it");
        assert_eq!(middle.over_budget().unwrap().to_string(), "reached max_tokens_total (30)");
        assert!(tree.over_budget().is_none());
        // Another process has driven the run in the meantime.
        leaf.charge_up_to(Usage { prompt: 22, ..Usage::default() });
        assert_eq!(total(), 33);
        // A known run can be asked again, but no new one.
        assert!(middle.child("middle", "leaf").is_ok());
        let refused = middle.child("middle", "other").err().unwrap();
        let reason = "no more agents can be asked: the run reached max_tokens_total (30)";
        assert_eq!(refused.reason, reason);
        assert!(tree.child("top", "other").is_ok());
    }

    #[test]
    fn images_that_are_generated_again_are_counted_once() {
        let tree = RunTree::default();
        let used = RecordedUse { repeated_images: 1, ..RecordedUse::default() };
        let below = RecordedRun { used: used.clone(), ..run("child", "top", 0) };
        let count = || format!("{:?}", tree.shared.images);
        let none = count();
        tree.restore_below("top", &below);
        assert_ne!(count(), none, "the child run may never go on");
        tree.child("top", "child").unwrap().restore(&used, &[]);
        assert_eq!(count(), none, "the child run generates it again");
    }

    #[test]
    fn the_usage_of_a_child_run_is_reported_once() {
        let (tree, usage) = (RunTree::default(), Usage { prompt: 7, ..Usage::default() });
        let child = tree.child("top", "child").unwrap();
        assert!(child.report() && !child.report());
        tree.restore(&used(0), &[]);
        assert!(child.report(), "the program asks again");
        tree.restore(&used(0), &[("child".to_owned(), usage)]);
        assert!(!child.report(), "the program finds the answer on its tape");
        assert_eq!(tree.child_usage().take(), usage);
        // This process has not seen the child run.
        tree.restore(&used(0), &[("other".to_owned(), usage)]);
        assert_eq!(tree.child_usage().take(), usage);
    }
}
