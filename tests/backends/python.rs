//! A virtual environment per backend, made once and kept under the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the directory of a package's programs, having installed it where it is not.
///
/// `PYTHON` names another interpreter than `python3`; a variable such as `MLFLOW_VERSION` another version.
pub fn programs(package: &str, version: &str) -> PathBuf {
    let name = package.rsplit('-').next().unwrap().to_uppercase();
    let version = set(&format!("{name}_VERSION")).unwrap_or_else(|| version.to_owned());
    let wanted = format!("{package}=={version}");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let home = target.join("backends").join(package);
    let mark = home.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return home.join("bin");
    }
    eprintln!("installing {wanted} with all it needs (about 900 MB) into {}", home.display());
    let python = set("PYTHON").unwrap_or_else(|| "python3".to_owned());
    let hint = "Python 3.10 or newer with its venv module is needed (Debian: apt-get install python3-venv)";
    run(Command::new(python).args(["-m", "venv"]).arg(&home), hint);
    let hint = "pip must reach PyPI, or an index that its own settings name";
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &wanted];
    run(Command::new(home.join("bin/python")).args(pip), hint);
    std::fs::write(mark, wanted).unwrap();
    home.join("bin")
}

fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

fn run(command: &mut Command, hint: &str) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{command:?}: {status:?}; {hint}"
    );
}
