//! The mathematical functions of SQLite, which the library that is linked leaves out, and `REGEXP`.
#![expect(unsafe_code, reason = "sqlx has no safe call for defining functions")]

use std::cell::RefCell;
use std::ffi::{CStr, c_int};

use libsqlite3_sys as ffi;

type Function =
    unsafe extern "C" fn(*mut ffi::sqlite3_context, c_int, *mut *mut ffi::sqlite3_value);

/// Reads an argument as a number; `None` for another value.
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

/// Answers with a number, or with NULL without one.
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

/// A mathematical function, by what it takes.
enum Math {
    Constant(f64),
    One(fn(f64) -> f64),
    Rounding(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}

static MATH: &[(&CStr, Math)] = &[
    (c"acos", Math::One(f64::acos)),
    (c"acosh", Math::One(f64::acosh)),
    (c"asin", Math::One(f64::asin)),
    (c"asinh", Math::One(f64::asinh)),
    (c"atan", Math::One(f64::atan)),
    (c"atan2", Math::Two(f64::atan2)),
    (c"atanh", Math::One(f64::atanh)),
    (c"ceil", Math::Rounding(f64::ceil)),
    (c"ceiling", Math::Rounding(f64::ceil)),
    (c"cos", Math::One(f64::cos)),
    (c"cosh", Math::One(f64::cosh)),
    (c"degrees", Math::One(f64::to_degrees)),
    (c"exp", Math::One(f64::exp)),
    (c"floor", Math::Rounding(f64::floor)),
    (c"ln", Math::One(|x| logarithm(x, f64::ln))),
    (c"log", Math::One(|x| logarithm(x, f64::log10))),
    (c"log", Math::Two(|base, x| logarithm(x, f64::ln) / logarithm(base, f64::ln))),
    (c"log10", Math::One(|x| logarithm(x, f64::log10))),
    (c"log2", Math::One(|x| logarithm(x, f64::log2))),
    (c"mod", Math::Two(|a, b| a % b)),
    (c"pi", Math::Constant(std::f64::consts::PI)),
    (c"pow", Math::Two(f64::powf)),
    (c"power", Math::Two(f64::powf)),
    (c"radians", Math::One(f64::to_radians)),
    (c"sin", Math::One(f64::sin)),
    (c"sinh", Math::One(f64::sinh)),
    (c"sqrt", Math::One(f64::sqrt)),
    (c"tan", Math::One(f64::tan)),
    (c"tanh", Math::One(f64::tanh)),
    (c"trunc", Math::Rounding(f64::trunc)),
];

/// Returns the logarithm of a number; only positive ones have one.
fn logarithm(x: f64, of: fn(f64) -> f64) -> f64 {
    if x > 0.0 { of(x) } else { f64::NAN }
}

extern "C" fn compute(
    context: *mut ffi::sqlite3_context,
    _: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite passes the function that was registered, and as many values as it takes.
    unsafe {
        let result = match &*ffi::sqlite3_user_data(context).cast::<Math>() {
            Math::Constant(number) => Some(*number),
            Math::Rounding(_)
                if ffi::sqlite3_value_numeric_type(*values) == ffi::SQLITE_INTEGER =>
            {
                let whole = ffi::sqlite3_value_int64(*values);
                return ffi::sqlite3_result_int64(context, whole);
            }
            Math::One(compute) | Math::Rounding(compute) => number(*values).map(compute),
            Math::Two(compute) => {
                let pair = number(*values).zip(number(*values.add(1)));
                pair.map(|(a, b)| compute(a, b))
            }
        };
        answer(context, result);
    }
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

/// Defines the functions on a connection.
///
/// # Safety
/// `raw` is an open connection that no other thread uses.
pub unsafe fn define(raw: *mut ffi::sqlite3) {
    let flags = ffi::SQLITE_UTF8 | ffi::SQLITE_DETERMINISTIC | ffi::SQLITE_INNOCUOUS;
    let define =
        |name: &'static CStr, arguments, data: Option<&'static Math>, function: Function| {
            let data =
                data.map_or(std::ptr::null_mut(), |math| std::ptr::from_ref(math).cast_mut());
            let function = Some(function);
            // SAFETY: name and data live as long as the program; the data is only read.
            unsafe {
                ffi::sqlite3_create_function_v2(
                    raw,
                    name.as_ptr(),
                    arguments,
                    flags,
                    data.cast(),
                    function,
                    None,
                    None,
                    None,
                )
            }
        };
    for (name, math) in MATH {
        let arguments = match math {
            Math::Constant(_) => 0,
            Math::One(_) | Math::Rounding(_) => 1,
            Math::Two(_) => 2,
        };
        define(name, arguments, Some(math), compute);
    }
    define(c"regexp", 2, None, regexp);
}
