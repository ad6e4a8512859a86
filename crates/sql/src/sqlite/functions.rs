//! The mathematical functions of SQLite, which the library that is linked leaves out, and `REGEXP`.
#![expect(unsafe_code, reason = "sqlx has no safe call for defining functions")]

use std::cell::RefCell;
use std::ffi::{CStr, c_int};

use libsqlite3_sys as ffi;

type Number = extern "C" fn(*mut ffi::sqlite3_context, c_int, *mut *mut ffi::sqlite3_value);

/// Reads an argument as a number; nothing where it is none.
///
/// # Safety
/// `value` comes from SQLite and is valid during the call.
pub(super) unsafe fn number(value: *mut ffi::sqlite3_value) -> Option<f64> {
    // SAFETY: as the caller promises.
    unsafe {
        let kind = ffi::sqlite3_value_numeric_type(value);
        matches!(kind, ffi::SQLITE_INTEGER | ffi::SQLITE_FLOAT)
            .then(|| ffi::sqlite3_value_double(value))
    }
}

/// Answers with a number, or with NULL where there is none.
///
/// # Safety
/// `context` comes from SQLite and is valid during the call.
pub(super) unsafe fn answer(context: *mut ffi::sqlite3_context, result: Option<f64>) {
    // SAFETY: as the caller promises.
    unsafe {
        match result {
            Some(number) if !number.is_nan() => ffi::sqlite3_result_double(context, number),
            _ => ffi::sqlite3_result_null(context),
        }
    }
}

macro_rules! of_one {
    ($($name:ident: $body:expr;)*) => {
        $(
            extern "C" fn $name(
                context: *mut ffi::sqlite3_context,
                _: c_int,
                values: *mut *mut ffi::sqlite3_value,
            ) {
                let compute: fn(f64) -> f64 = $body;
                // SAFETY: SQLite passes one value, as registered.
                unsafe { answer(context, number(*values).map(compute)) }
            }
        )*
    };
}

of_one! {
    acos: f64::acos;
    asin: f64::asin;
    atan: f64::atan;
    cos: f64::cos;
    degrees: f64::to_degrees;
    exp: f64::exp;
    ln: |x| if x > 0.0 { x.ln() } else { f64::NAN };
    log10: |x| if x > 0.0 { x.log10() } else { f64::NAN };
    log2: |x| if x > 0.0 { x.log2() } else { f64::NAN };
    radians: f64::to_radians;
    sin: f64::sin;
    sqrt: f64::sqrt;
    tan: f64::tan;
}

macro_rules! rounding {
    ($($name:ident: $body:expr;)*) => {
        $(
            extern "C" fn $name(
                context: *mut ffi::sqlite3_context,
                _: c_int,
                values: *mut *mut ffi::sqlite3_value,
            ) {
                let compute: fn(f64) -> f64 = $body;
                // SAFETY: SQLite passes one value, as registered.
                unsafe {
                    if ffi::sqlite3_value_numeric_type(*values) == ffi::SQLITE_INTEGER {
                        ffi::sqlite3_result_int64(context, ffi::sqlite3_value_int64(*values));
                    } else {
                        answer(context, number(*values).map(compute));
                    }
                }
            }
        )*
    };
}

rounding! {
    ceil: f64::ceil;
    floor: f64::floor;
    trunc: f64::trunc;
}

macro_rules! of_two {
    ($($name:ident: $body:expr;)*) => {
        $(
            extern "C" fn $name(
                context: *mut ffi::sqlite3_context,
                _: c_int,
                values: *mut *mut ffi::sqlite3_value,
            ) {
                let compute: fn(f64, f64) -> f64 = $body;
                // SAFETY: SQLite passes two values, as registered.
                unsafe {
                    let pair = number(*values).zip(number(*values.add(1)));
                    answer(context, pair.map(|(a, b)| compute(a, b)));
                }
            }
        )*
    };
}

of_two! {
    atan2: f64::atan2;
    logarithm: |base, x| if base > 0.0 && x > 0.0 { x.ln() / base.ln() } else { f64::NAN };
    modulo: |a, b| a % b;
    power: f64::powf;
}

extern "C" fn pi(context: *mut ffi::sqlite3_context, _: c_int, _: *mut *mut ffi::sqlite3_value) {
    // SAFETY: SQLite passes a valid context.
    unsafe { answer(context, Some(std::f64::consts::PI)) }
}

thread_local! {
    /// The pattern compiled last; a statement usually has one.
    static COMPILED: RefCell<Option<(String, regex::Regex)>> = const { RefCell::new(None) };
}

extern "C" fn regexp(
    context: *mut ffi::sqlite3_context,
    _: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    /// # Safety
    /// `value` comes from SQLite and is valid during the call.
    unsafe fn text<'a>(value: *mut ffi::sqlite3_value) -> Option<&'a str> {
        // SAFETY: as the caller promises; SQLite ends its texts with a zero.
        unsafe {
            let pointer = ffi::sqlite3_value_text(value);
            if pointer.is_null() { None } else { CStr::from_ptr(pointer.cast()).to_str().ok() }
        }
    }
    // SAFETY: SQLite passes two values, as registered; both live until the call returns.
    unsafe {
        let (Some(pattern), Some(subject)) = (text(*values), text(*values.add(1))) else {
            ffi::sqlite3_result_null(context);
            return;
        };
        let found = COMPILED.with_borrow_mut(|compiled| {
            if compiled.as_ref().is_none_or(|(known, _)| known != pattern) {
                *compiled = regex::Regex::new(pattern).ok().map(|re| (pattern.to_owned(), re));
            }
            compiled.as_ref().map(|(_, expression)| expression.is_match(subject))
        });
        match found {
            Some(found) => ffi::sqlite3_result_int(context, c_int::from(found)),
            None => {
                let message = c"invalid regular expression";
                ffi::sqlite3_result_error(context, message.as_ptr(), -1);
            }
        }
    }
}

const FUNCTIONS: &[(&CStr, c_int, Number)] = &[
    (c"acos", 1, acos),
    (c"asin", 1, asin),
    (c"atan", 1, atan),
    (c"atan2", 2, atan2),
    (c"ceil", 1, ceil),
    (c"ceiling", 1, ceil),
    (c"cos", 1, cos),
    (c"degrees", 1, degrees),
    (c"exp", 1, exp),
    (c"floor", 1, floor),
    (c"ln", 1, ln),
    (c"log", 1, log10),
    (c"log", 2, logarithm),
    (c"log10", 1, log10),
    (c"log2", 1, log2),
    (c"mod", 2, modulo),
    (c"pi", 0, pi),
    (c"pow", 2, power),
    (c"power", 2, power),
    (c"radians", 1, radians),
    (c"regexp", 2, regexp),
    (c"sin", 1, sin),
    (c"sqrt", 1, sqrt),
    (c"tan", 1, tan),
    (c"trunc", 1, trunc),
];

/// Defines the functions on a connection.
///
/// # Safety
/// `raw` is an open connection that no other thread uses.
pub unsafe fn define(raw: *mut ffi::sqlite3) {
    let flags = ffi::SQLITE_UTF8 | ffi::SQLITE_DETERMINISTIC | ffi::SQLITE_INNOCUOUS;
    for (name, arguments, function) in FUNCTIONS {
        // SAFETY: the name lives as long as the program; the function keeps nothing.
        unsafe {
            ffi::sqlite3_create_function_v2(
                raw,
                name.as_ptr(),
                *arguments,
                flags,
                std::ptr::null_mut(),
                Some(*function),
                None,
                None,
                None,
            );
        }
    }
}
