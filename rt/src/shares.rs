//! Shares: the parts of a resource of the process that its owners may use.
//!
//! Groups of runs, such as the tenants of a server, share a process with its operator. A limit of
//! the process alone would let one group use up a resource. Each group therefore gets at most its
//! share, and all groups together leave a reserve to the operator.

use std::collections::HashMap;
use std::sync::Arc;

/// The owner of work in a process, to which the resources that the work uses are attributed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The operator of the process, who may use every resource up to the limit of the process.
    Operator,
    /// A group of runs that shares the process with others. The string is the group's name.
    Group(Arc<str>),
}

/// The division of a resource among the owners. The unit is that of the resource.
///
/// ```
/// use wattle_rt::Shares;
/// let shares = Shares::of(64);
/// assert_eq!((shares.all(), shares.groups(), shares.group()), (64, 56, 32));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    all: usize,
    group: usize,
}

impl Shares {
    /// Divides a resource of which the process has `all`. A group may use half of it, but always at
    /// least 1.
    #[must_use]
    pub fn of(all: usize) -> Shares {
        Shares { all, group: (all / 2).max(1) }
    }

    /// Sets the maximum for one group.
    #[must_use]
    pub fn with_group(self, group: usize) -> Shares {
        Shares { group, ..self }
    }

    /// Returns the maximum for all owners together.
    #[must_use]
    pub fn all(self) -> usize {
        self.all
    }

    /// Returns the maximum for all groups together. The rest is reserved for the operator: an
    /// eighth, and at least 1 of 4 or more.
    #[must_use]
    pub fn groups(self) -> usize {
        let reserve = if self.all < 4 { 0 } else { (self.all / 8).max(1) };
        self.all - reserve
    }

    /// Returns the maximum for one group.
    #[must_use]
    pub fn group(self) -> usize {
        self.group
    }
}

/// The limit that prevents an owner from using more of a resource. The number is the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The resource is used up, or the rest of it is reserved for the operator.
    Process(usize),
    /// The group uses its whole share.
    Group(usize),
}

/// Counts the units of a resource that each owner uses.
#[derive(Debug)]
pub struct Usage {
    shares: Shares,
    all: usize,
    /// The units that all groups use.
    shared: usize,
    /// The units of each group that uses some.
    groups: HashMap<Arc<str>, usize>,
}

impl Usage {
    /// Creates a count of 0 for each owner.
    #[must_use]
    pub fn new(shares: Shares) -> Usage {
        Usage { shares, all: 0, shared: 0, groups: HashMap::new() }
    }

    /// Checks that the owner may use one more unit.
    ///
    /// # Errors
    /// The limit that it would exceed.
    pub fn check(&self, owner: &Owner) -> Result<(), Full> {
        let shares = self.shares;
        if self.all >= shares.all {
            return Err(Full::Process(shares.all));
        }
        let Owner::Group(name) = owner else { return Ok(()) };
        if self.shared >= shares.groups() {
            return Err(Full::Process(shares.groups()));
        }
        match self.groups.get(name) {
            Some(own) if *own >= shares.group => Err(Full::Group(shares.group)),
            None if shares.group == 0 => Err(Full::Group(0)),
            _ => Ok(()),
        }
    }

    /// Counts one more unit for the owner.
    ///
    /// # Errors
    /// The limit that it would exceed. In that case, nothing is counted.
    pub fn take(&mut self, owner: &Owner) -> Result<(), Full> {
        self.check(owner)?;
        self.all += 1;
        if let Owner::Group(name) = owner {
            self.shared += 1;
            match self.groups.get_mut(name) {
                Some(own) => *own += 1,
                None => _ = self.groups.insert(Arc::clone(name), 1),
            }
        }
        Ok(())
    }

    /// Counts one unit less for the owner, who must have [taken](Usage::take) it.
    pub fn give_back(&mut self, owner: &Owner) {
        self.all = self.all.saturating_sub(1);
        let Owner::Group(name) = owner else { return };
        self.shared = self.shared.saturating_sub(1);
        if let Some(own) = self.groups.get_mut(name) {
            *own -= 1;
            if *own == 0 {
                self.groups.remove(name);
            }
        }
    }

    /// Returns the number of units that are not in use.
    #[must_use]
    pub fn free(&self) -> usize {
        self.shares.all.saturating_sub(self.all)
    }

    /// Returns true if all free units are reserved for the operator.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.shared >= self.shares.groups()
    }

    /// Returns the names of the groups that use their whole share.
    pub fn full_groups(&self) -> impl Iterator<Item = &str> {
        let is_full = |(_, own): &(&Arc<str>, &usize)| **own >= self.shares.group;
        self.groups.iter().filter(is_full).map(|(name, _)| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_leaves_half_to_the_others_and_all_groups_leave_some_to_the_operator() {
        let fill = |usage: &mut Usage, owner: &Owner| {
            std::iter::from_fn(|| usage.take(owner).ok()).count()
        };
        let group = |name: &str| Owner::Group(name.into());
        for (all, share, groups) in [(1, 1, 1), (2, 1, 2), (4, 2, 3), (16, 8, 14), (64, 32, 56)] {
            let mut usage = Usage::new(Shares::of(all));
            assert_eq!(fill(&mut usage, &group("a")), share, "{all}");
            let others: usize = ["b", "c"].iter().map(|name| fill(&mut usage, &group(name))).sum();
            assert_eq!(share + others, groups, "{all}");
            assert!(usage.is_reserved());
            assert_eq!(fill(&mut usage, &Owner::Operator), all - groups, "{all}");
            assert_eq!(usage.check(&Owner::Operator), Err(Full::Process(all)));
            usage.give_back(&group("a"));
            assert_eq!(fill(&mut usage, &Owner::Operator), 1, "{all}");
        }
    }
}
