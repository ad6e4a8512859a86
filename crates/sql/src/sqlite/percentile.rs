//! The medians and percentiles of SQLite, which the library that is linked leaves out.
#![expect(unsafe_code, reason = "sqlx has no safe call for defining functions")]

use std::ffi::{CStr, c_int};

use libsqlite3_sys as ffi;

use super::functions::{answer, number};

#[derive(Default)]
struct Seen {
    numbers: Vec<f64>,
    /// The part of the numbers below the answer, from 0 to 1.
    part: f64,
}

/// The parameters in an aggregate's name.
#[derive(Clone, Copy)]
struct Kind {
    whole: f64,
    /// It interpolates between two numbers.
    is_between: bool,
}

static PERCENTILE: Kind = Kind { whole: 100.0, is_between: true };
static CONTINUOUS: Kind = Kind { whole: 1.0, is_between: true };
static DISCRETE: Kind = Kind { whole: 1.0, is_between: false };

/// Returns the number below which that part of the values is; `None` without values.
fn percentile(seen: &mut Seen, kind: Kind) -> Option<f64> {
    let last = seen.numbers.len().checked_sub(1)?;
    seen.numbers.sort_by(f64::total_cmp);
    let place = seen.part * last as f64;
    let below = (place.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let low = seen.numbers[below];
    let high = seen.numbers[above];
    let between = place - below as f64;
    Some(if kind.is_between && between > 0.0 { low + (high - low) * between } else { low })
}

/// Refuses the call.
///
/// # Safety
/// `context` comes from SQLite and is valid during the call.
unsafe fn refuse(context: *mut ffi::sqlite3_context, why: &CStr) {
    // SAFETY: as the caller promises; SQLite copies the text.
    unsafe { ffi::sqlite3_result_error(context, why.as_ptr(), -1) }
}

extern "C" fn step(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite passes as many values as registered, and the kind that was registered with them. The context
    // is zeroed memory of this aggregate's own, which has the box from its first row until `done` takes it.
    unsafe {
        let kind = *ffi::sqlite3_user_data(context).cast::<Kind>();
        let mut part = 0.5;
        if count > 1 {
            let given = *values.add(1);
            let given = number(given).map(|given| given / kind.whole);
            match given.filter(|given| (0.0..=1.0).contains(given)) {
                Some(given) => part = given,
                None => {
                    let why = c"the part of a percentile is not within its bounds";
                    return refuse(context, why);
                }
            }
        }
        let size = size_of::<*mut Seen>() as c_int;
        let place = ffi::sqlite3_aggregate_context(context, size).cast::<*mut Seen>();
        if place.is_null() {
            return ffi::sqlite3_result_error_nomem(context);
        }
        if (*place).is_null() {
            *place = Box::into_raw(Box::new(Seen { numbers: Vec::new(), part }));
        }
        let seen = &mut **place;
        if seen.part != part {
            return refuse(context, c"the part of a percentile must be the same for all rows");
        }
        match number(*values) {
            Some(number) => seen.numbers.push(number),
            None if ffi::sqlite3_value_type(*values) == ffi::SQLITE_NULL => {}
            None => refuse(context, c"a percentile is made of numbers"),
        }
    }
}

/// Takes a row out again that a window has left.
extern "C" fn undo(
    context: *mut ffi::sqlite3_context,
    _: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: as in `step`, which SQLite called with these values before.
    unsafe {
        let place = ffi::sqlite3_aggregate_context(context, 0).cast::<*mut Seen>();
        let Some(seen) = place.as_ref().and_then(|place| place.as_mut()) else { return };
        let Some(left) = number(*values) else { return };
        if let Some(at) = seen.numbers.iter().position(|number| *number == left) {
            seen.numbers.remove(at);
        }
    }
}

/// Answers with the percentile of the rows so far.
extern "C" fn value(context: *mut ffi::sqlite3_context) {
    // SAFETY: as in `step`.
    unsafe {
        let kind = *ffi::sqlite3_user_data(context).cast::<Kind>();
        let place = ffi::sqlite3_aggregate_context(context, 0).cast::<*mut Seen>();
        let seen = place.as_ref().and_then(|place| place.as_mut());
        answer(context, seen.and_then(|seen| percentile(seen, kind)));
    }
}

extern "C" fn done(context: *mut ffi::sqlite3_context) {
    value(context);
    // SAFETY: as in `step`; SQLite calls this once for each aggregate, also after an error.
    unsafe {
        let place = ffi::sqlite3_aggregate_context(context, 0).cast::<*mut Seen>();
        if !place.is_null() && !(*place).is_null() {
            drop(Box::from_raw(std::mem::replace(&mut *place, std::ptr::null_mut())));
        }
    }
}

/// Defines the aggregates on a connection.
///
/// # Safety
/// `raw` is an open connection that no other thread uses.
pub unsafe fn define(raw: *mut ffi::sqlite3) {
    let flags = ffi::SQLITE_UTF8 | ffi::SQLITE_DETERMINISTIC | ffi::SQLITE_INNOCUOUS;
    let all: [(&CStr, c_int, &'static Kind); 4] = [
        (c"median", 1, &CONTINUOUS),
        (c"percentile", 2, &PERCENTILE),
        (c"percentile_cont", 2, &CONTINUOUS),
        (c"percentile_disc", 2, &DISCRETE),
    ];
    for (name, arguments, kind) in all {
        // SAFETY: the name and the kind live as long as the program, and the kind is only read.
        unsafe {
            ffi::sqlite3_create_window_function(
                raw,
                name.as_ptr(),
                arguments,
                flags,
                std::ptr::from_ref(kind).cast_mut().cast(),
                Some(step),
                Some(done),
                Some(value),
                Some(undo),
                None,
            );
        }
    }
}
