//! SQLite's own permission check, called while a statement is compiled; independent of the guard.
//!
//! With `functions` the only files that speak to SQLite's C interface.
#![expect(unsafe_code, reason = "sqlx has no safe call for the authorizer, limits and db_config")]

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use libsqlite3_sys as ffi;
use parking_lot::{Mutex, RwLock};
use perihelion_analysis::Dialect;
use perihelion_analysis::guard::{is_allowed_function, is_allowed_table_function};
use sqlx::sqlite::LockedSqliteHandle;

/// The readable names; all in lower case.
#[derive(Debug, Default)]
pub struct Permissions {
    rules: RwLock<Rules>,
    /// Names that the present statement gives to its own subqueries.
    defined: Mutex<HashSet<String>>,
}

#[derive(Debug, Default)]
pub struct Rules {
    /// Tables and views that the operator named; empty permits every one but SQLite's own.
    pub only: HashSet<String>,
    pub present: HashSet<String>,
    /// The hidden tables in which permitted full-text tables store their contents.
    pub full_text: HashSet<String>,
    /// Modules that can be read like tables without being in the schema.
    pub modules: HashSet<String>,
    /// (view, table) for every table that is read inside a permitted view.
    pub inside_views: HashSet<(String, String)>,
}

/// Bounds that SQLite enforces itself: (which, value).
const LIMITS: &[(i32, c_int)] = &[
    // A longer text or row is an error: what a function can be given bounds how long it takes.
    (ffi::SQLITE_LIMIT_LENGTH, 2_000_000),
    (ffi::SQLITE_LIMIT_SQL_LENGTH, 300_000),
    (ffi::SQLITE_LIMIT_EXPR_DEPTH, 1_000),
    (ffi::SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (ffi::SQLITE_LIMIT_ATTACHED, 0),
    (ffi::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (ffi::SQLITE_LIMIT_VARIABLE_NUMBER, 16),
    (ffi::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
];
/// Most memory that SQLite takes in one process.
const MAX_HEAP: i64 = 256 * 1024 * 1024;

/// Limits the memory of this process, and ends it with its parent.
pub fn contain_process() {
    // SAFETY: plain calls with integers; a refusal leaves things as they were.
    unsafe {
        ffi::sqlite3_hard_heap_limit64(MAX_HEAP);
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let most = 4 * 1024 * 1024 * 1024;
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        libc::setrlimit(libc::RLIMIT_AS, &raw const limit);
    }
}

/// Makes the connection answer to `permissions` for the rest of its life.
pub fn restrict(handle: &mut LockedSqliteHandle<'_>, permissions: &'static Permissions) {
    let raw = handle.as_raw_handle().as_ptr();
    // SAFETY: the lock keeps sqlx's worker away from the handle; every call takes plain integers, except
    // the authorizer's data, which lives as long as the process.
    unsafe {
        for (which, value) in LIMITS {
            ffi::sqlite3_limit(raw, *which, *value);
        }
        for (option, value) in [
            // An unknown column in double quotes is an error, not a piece of text.
            (ffi::SQLITE_DBCONFIG_DQS_DML, 0),
            (ffi::SQLITE_DBCONFIG_DEFENSIVE, 1),
            (ffi::SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        ] {
            ffi::sqlite3_db_config(raw, option, value as c_int, std::ptr::null_mut::<c_int>());
        }
        super::functions::define(raw);
        super::percentile::define(raw);
        let data = std::ptr::from_ref(permissions).cast_mut().cast::<c_void>();
        ffi::sqlite3_set_authorizer(raw, Some(authorize), data);
    }
}

/// Returns (view, table) for every table that reading the view reads.
pub fn inside_view(handle: &mut LockedSqliteHandle<'_>, view: &str) -> HashSet<(String, String)> {
    let mut found: HashSet<(String, String)> = HashSet::new();
    let quoted = format!("SELECT * FROM main.\"{}\"", view.replace('"', "\"\""));
    let Ok(sql) = CString::new(quoted) else { return found };
    let raw = handle.as_raw_handle().as_ptr();
    // SAFETY: the lock keeps sqlx's worker away; `found` outlives the authorizer, which is taken off before
    // it goes; the statement is compiled and not run.
    unsafe {
        // A view can call whatever a statement can.
        super::functions::define(raw);
        super::percentile::define(raw);
        let data = (&raw mut found).cast::<c_void>();
        ffi::sqlite3_set_authorizer(raw, Some(record), data);
        let mut statement = std::ptr::null_mut();
        ffi::sqlite3_prepare_v2(raw, sql.as_ptr(), -1, &raw mut statement, std::ptr::null_mut());
        ffi::sqlite3_finalize(statement);
        ffi::sqlite3_set_authorizer(raw, None, std::ptr::null_mut());
    }
    found
}

unsafe extern "C" fn record(
    data: *mut c_void,
    action: c_int,
    first: *const c_char,
    _: *const c_char,
    _: *const c_char,
    view: *const c_char,
) -> c_int {
    // SAFETY: `data` is the set of `inside_view`; SQLite passes C strings or null.
    let (found, table, view) =
        unsafe { (&mut *data.cast::<HashSet<(String, String)>>(), text(first), text(view)) };
    if action == ffi::SQLITE_READ
        && let (Some(table), Some(view)) = (table, view)
    {
        found.insert((view.to_ascii_lowercase(), table.to_ascii_lowercase()));
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn authorize(
    data: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    _database: *const c_char,
    view: *const c_char,
) -> c_int {
    // SAFETY: `data` is the `&'static Permissions` given to `restrict`; SQLite passes C strings or null.
    let (permissions, first, second, view) =
        unsafe { (&*data.cast::<Permissions>(), text(first), text(second), text(view)) };
    if permissions.allow(action, first, second, view) { ffi::SQLITE_OK } else { ffi::SQLITE_DENY }
}

/// # Safety
/// `pointer` is null or a C string that outlives the result.
unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}

impl Permissions {
    /// Replaces the rules, after the schema changed.
    pub fn set(&self, rules: Rules) {
        *self.rules.write() = rules;
    }

    pub fn begin(&self, sql: &str) {
        *self.defined.lock() = super::names::defined(sql);
    }

    fn allow(
        &self,
        action: c_int,
        first: Option<&str>,
        second: Option<&str>,
        view: Option<&str>,
    ) -> bool {
        match action {
            ffi::SQLITE_SELECT | ffi::SQLITE_RECURSIVE => true,
            ffi::SQLITE_READ => self.reads(first, view),
            ffi::SQLITE_FUNCTION => second.is_some_and(|name| {
                is_allowed_function(Dialect::Sqlite, &name.to_ascii_lowercase())
            }),
            // Full-text tables look whether their file changed.
            ffi::SQLITE_PRAGMA => {
                first.is_some_and(|name| name.eq_ignore_ascii_case("data_version"))
            }
            _ => false,
        }
    }

    fn reads(&self, table: Option<&str>, view: Option<&str>) -> bool {
        let Some(table) = table.map(str::to_ascii_lowercase) else { return false };
        let rules = self.rules.read();
        if is_allowed_table_function(Dialect::Sqlite, &table) {
            return true;
        }
        if table.starts_with("sqlite_") || table.starts_with("pragma_") {
            return false;
        }
        if !rules.present.contains(&table) {
            // A name of the statement's own, whose tables are asked for one by one.
            return !rules.modules.contains(&table);
        }
        if rules.only.is_empty() || rules.only.contains(&table) || rules.full_text.contains(&table)
        {
            return true;
        }
        let Some(view) = view.map(str::to_ascii_lowercase) else { return false };
        let own = self.defined.lock().contains(&view);
        // A permitted view may read the tables it is made of, unless the statement made up its name.
        !own && rules.inside_views.contains(&(view, table))
    }
}
