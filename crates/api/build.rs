//! Lists the files of the web UI, so that the program embeds them.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let built = variable("CARGO_MANIFEST_DIR").join("../../web/dist");
    println!("cargo:rerun-if-changed={}", built.display());
    let mut paths = std::fs::read_dir(&built)?
        .map(|file| Ok(file?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    let files = paths.iter().filter_map(|path| Some((path.file_name()?, path)));
    let listed: String =
        files.map(|(name, path)| format!("({name:?}, include_bytes!({path:?})),\n")).collect();
    std::fs::write(variable("OUT_DIR").join("page.rs"), format!("&[{listed}]"))
}
