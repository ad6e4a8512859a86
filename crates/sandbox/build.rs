//! Embeds CPython, compiled to native code, with its standard library.

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "wasm")]
    embed()?;
    Ok(())
}

/// How hard to compress; harder ones take minutes where the compressor itself is not optimized, and save a tenth.
#[cfg(feature = "wasm")]
const LEVEL: i32 = 9;

#[cfg(feature = "wasm")]
fn embed() -> std::io::Result<()> {
    let folder = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let code = bashkit_cpython_wasm::cwasm_bytes();
    std::fs::write(folder.join("python.cwasm.zst"), zstd::bulk::compress(code, LEVEL)?)?;
    std::fs::write(folder.join("python.zip"), bashkit_cpython_wasm::STDLIB_ZIP)?;
    println!("cargo:rustc-env=PYTHON_CODE_HASH={}", blake3::hash(code).to_hex());
    println!("cargo:rustc-env=PYTHON_CODE_SIZE={}", code.len());
    println!("cargo:rustc-env=PYTHON_LIBRARY_PATH={}", bashkit_cpython_wasm::STDLIB_ZIP_PATH);
    println!("cargo:rustc-env=PYTHON_VERSION={}", bashkit_cpython_wasm::PYTHON_VERSION);
    Ok(())
}
