//! Lists the public API of a crate, one item per line, from the JSON output of rustdoc. The script
//! `.ci/public-api` compares it with the committed listing.

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
