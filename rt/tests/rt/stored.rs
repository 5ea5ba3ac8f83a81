//! Tests of programs whose machine code is stored in a folder.

use std::path::Path;
use std::sync::Arc;

use wattle_rt::{Exit, Grants, Limits, Runtime};

const PROGRAM: &str = "(i32.const 7)";

/// Runs the program in a new runtime, as a new process does, and returns its exit code.
async fn run(folder: &Path) -> Exit {
    let runtime = Runtime::new(&[], Limits { instances: 1, ..Limits::default() }).unwrap();
    let program = runtime.prepare_stored(PROGRAM, folder).await.unwrap();
    let again = runtime.prepare(PROGRAM).await.unwrap();
    assert_eq!((program.source(), runtime.cached()), (again.source(), 1));
    runtime.run(&program, &Arc::new(Grants::default()), Vec::new()).await.unwrap().exit
}

fn stored(folder: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_none()).collect()
}

#[tokio::test]
async fn another_process_loads_the_stored_program() {
    let folder = tempfile::tempdir().unwrap();
    let first = run(folder.path()).await;
    let files = stored(folder.path());
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let made = file.metadata().unwrap().modified().unwrap();
    assert_eq!(run(folder.path()).await, first);
    assert_eq!(stored(folder.path()), files);
    assert_eq!(file.metadata().unwrap().modified().unwrap(), made, "it was not compiled again");
    // A changed file is not executed.
    std::fs::write(file, "other code").unwrap();
    assert_eq!(run(folder.path()).await, first);
    assert_eq!(stored(folder.path()), files);
    assert_ne!(std::fs::read(file).unwrap(), b"other code");
}

#[tokio::test]
async fn without_a_usable_folder_a_program_runs_nevertheless() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let code = run(file.path()).await;
    assert!(matches!(code, Exit::Returned(code) if code.number() == 7), "{code:?}");
}
