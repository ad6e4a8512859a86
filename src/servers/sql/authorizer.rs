//! SQLite's own permission check, asked while a statement is compiled; trusts nothing of the guard.
//!
//! The only file of the server that speaks to SQLite's C interface.
#![expect(unsafe_code, reason = "sqlx has no safe call for the authorizer, limits and db_config")]

use std::ffi::{CStr, c_char, c_int, c_void};

use libsqlite3_sys as ffi;
use sqlx::sqlite::LockedSqliteHandle;

use super::guard::{Dialect, is_allowed_function, is_allowed_table_function};

/// What statements on one connection may read.
pub struct Permissions {
    /// Lower-case names; empty permits every table but SQLite's own.
    pub tables: Vec<String>,
}

/// Bounds that SQLite enforces itself: (which, value).
const LIMITS: &[(i32, c_int)] = &[
    (ffi::SQLITE_LIMIT_LENGTH, 10_000_000),
    (ffi::SQLITE_LIMIT_SQL_LENGTH, 200_000),
    (ffi::SQLITE_LIMIT_EXPR_DEPTH, 1_000),
    (ffi::SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (ffi::SQLITE_LIMIT_ATTACHED, 0),
    (ffi::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (ffi::SQLITE_LIMIT_VARIABLE_NUMBER, 16),
    (ffi::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
];

/// Makes the connection answer to `permissions` for the rest of its life.
pub fn restrict(handle: &mut LockedSqliteHandle<'_>, permissions: &'static Permissions) {
    let raw = handle.as_raw_handle().as_ptr();
    // SAFETY: the lock keeps sqlx's worker away from the handle; every call takes plain integers, except
    // the authorizer's data, which lives as long as the process and is only read.
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
        let data = std::ptr::from_ref(permissions).cast_mut().cast::<c_void>();
        ffi::sqlite3_set_authorizer(raw, Some(authorize), data);
    }
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
    fn allow(
        &self,
        action: c_int,
        first: Option<&str>,
        second: Option<&str>,
        view: Option<&str>,
    ) -> bool {
        match action {
            ffi::SQLITE_SELECT | ffi::SQLITE_RECURSIVE => true,
            // A permitted view may read the tables it is made of.
            ffi::SQLITE_READ => self.reads(first) || (view.is_some() && self.reads(view)),
            ffi::SQLITE_FUNCTION => second.is_some_and(|name| {
                is_allowed_function(Dialect::Sqlite, &name.to_ascii_lowercase())
            }),
            _ => false,
        }
    }

    fn reads(&self, table: Option<&str>) -> bool {
        let Some(table) = table.map(str::to_ascii_lowercase) else { return false };
        is_allowed_table_function(Dialect::Sqlite, &table)
            || if self.tables.is_empty() {
                !table.starts_with("sqlite_") && !table.starts_with("pragma_")
            } else {
                self.tables.contains(&table)
            }
    }
}
