//! Tests of the memory of an overlay, which is charged to an account.

use std::sync::{Arc, Mutex};

use wattle_files::{ErrorKind, Files, FilesError, MemoryCharge, OVERLAY_LIMIT};
use wattle_lang::Code;

use crate::common::base;

/// An account with a limit. Clones share it.
#[derive(Clone, Debug)]
struct Account {
    held: Arc<Mutex<u64>>,
    limit: u64,
}

#[derive(Debug)]
struct Charge {
    account: Account,
    bytes: u64,
}

impl Account {
    fn new(limit: u64) -> Account {
        Account { held: Arc::default(), limit }
    }

    fn held(&self) -> u64 {
        *self.held.lock().unwrap()
    }

    fn open(&self) -> Box<Charge> {
        Box::new(Charge { account: self.clone(), bytes: 0 })
    }
}

impl MemoryCharge for Charge {
    fn resize(&mut self, bytes: u64) -> Result<(), String> {
        let mut held = self.account.held.lock().unwrap();
        let all = *held - self.bytes + bytes;
        if all > self.account.limit {
            return Err(format!("the account holds {held} of {}", self.account.limit));
        }
        (*held, self.bytes) = (all, bytes);
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        *self.account.held.lock().unwrap() -= self.bytes;
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, FilesError>) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Full, Code::ENOMEM));
    assert!(error.to_string().contains("the account holds"), "{error}");
}

#[test]
fn each_change_is_charged_until_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("old"), vec![7; 20_000]).unwrap();
    let account = Account::new(50_000);
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.write("early", b"before the charge").unwrap();
    assert!(!files.is_charged());
    files.charge(account.open()).unwrap();
    assert!(files.is_charged());
    let changes: &[&dyn Fn()] = &[
        &|| files.write("a", &[0; 10_000]).unwrap(),
        &|| files.write("a", &[0; 5_000]).unwrap(),
        &|| files.append("a", &[0; 1_000]).unwrap(),
        &|| files.append("old", b"more").unwrap(),
        &|| files.rename("old", "new").unwrap(),
        &|| files.truncate("new", 100).unwrap(),
        &|| files.mkdir("d/e").unwrap(),
        &|| files.discard("new").unwrap(),
        &|| files.remove("a").unwrap(),
        &|| files.rename("early", "d/e/late").unwrap(),
    ];
    for (step, change) in changes.iter().enumerate() {
        change();
        assert_eq!(account.held(), files.used(), "after step {step}");
    }
    assert!(account.held() > 0);
    drop(files);
    assert_eq!(account.held(), 0);
}

#[test]
fn a_change_for_which_there_is_no_memory_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("big"), vec![7; 100_000]).unwrap();
    let account = Account::new(50_000);
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.charge(account.open()).unwrap();
    refused(files.write("f", &[0; 50_000]));
    refused(files.append("big", b"x"));
    refused(files.rename("big", "huge"));
    refused(files.write_at("sparse", 50_000, b"x"));
    assert_eq!((account.held(), files.used()), (0, 0));
    assert!(files.changes().unwrap().is_empty());
    files.write("f", &[0; 40_000]).unwrap();
    refused(files.append("f", &[0; 20_000]));
    files.rename("f", "g").unwrap();
    files.write("g", &[0; 45_000]).unwrap();
    files.remove("g").unwrap();
    files.write("h", &[0; 45_000]).unwrap();
}

#[test]
fn restored_files_are_charged_and_move_to_the_account_of_the_next_run() {
    let before = Files::overlay(None, OVERLAY_LIMIT);
    before.write("a", &[0; 30_000]).unwrap();
    let delta = before.take_delta().unwrap();
    let small = Account::new(10_000);
    let files = Files::overlay(None, OVERLAY_LIMIT);
    files.charge(small.open()).unwrap();
    refused(files.restore(&delta));
    let (one, other) = (Account::new(60_000), Account::new(60_000));
    let files = Files::overlay(None, OVERLAY_LIMIT);
    files.charge(one.open()).unwrap();
    files.restore(&delta).unwrap();
    assert_eq!(one.held(), files.used());
    files.charge(other.open()).unwrap();
    assert_eq!((one.held(), other.held()), (0, files.used()));
    // The memory is not charged twice in between.
    files.charge(other.open()).unwrap();
    refused(files.charge(small.open()));
    assert_eq!((other.held(), files.is_charged()), (0, false));
}
