mod common;
#[test]
fn try_one() {
    let source = std::fs::read_to_string("/tmp/t1.wat").unwrap();
    match wattle_lang::assemble(&source, &common::host()) {
        Ok(p) => { println!("{}", p.module); println!("{:?}", p.encode().map(|b| wasmparser::Validator::new().validate_all(&b).map(|_|()).map_err(|e| e.to_string()))); }
        Err(d) => println!("{d}"),
    }
}
