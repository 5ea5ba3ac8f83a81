//! Lists the public API of a crate from rustdoc's JSON output, one item per line. The script
//! `.ci/public-api` compares the list with the committed one.

#![allow(clippy::print_stdout, reason = "the listing is the output")]

use std::error::Error;

use public_api::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args().nth(1).ok_or("usage: public_api FILE.json")?;
    let api = Builder::from_rustdoc_json(json)
        .omit_auto_derived_impls(true)
        .omit_auto_trait_impls(true)
        .omit_blanket_impls(true)
        .build()?;
    api.items().for_each(|item| println!("{item}"));
    Ok(())
}
