//! Tells the crate where its migrations are: beside it in a package, at the top of the repository otherwise.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let packaged = Path::new("migrations");
    let place = if packaged.exists() { packaged } else { Path::new("../../migrations") };
    println!("cargo::rustc-env=MIGRATIONS={}", place.canonicalize()?.display());
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
