//! Reads one SQLite database for the process that started it; the program does the same as `perihelion mcp sql-worker`.

fn main() -> std::process::ExitCode {
    match perihelion_sql::serve_worker() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(_) => std::process::ExitCode::FAILURE,
    }
}
