//! Finds one value: option, then environment, then file, then default, and checks it where it was found.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::strict::Error;

/// A type that a setting can have.
pub(super) trait Setting: Sized {
    /// Reads the value from the text of an option or an environment variable.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Adapts a value that stood in a settings file in `directory`: relative paths start there.
    fn placed_in(self, _directory: &Path) -> Self {
        self
    }
}

macro_rules! number_setting {
    ($($type:ty: $what:literal),*) => {$(
        impl Setting for $type {
            fn from_text(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|_| format!(concat!("expected ", $what, ": {}"), text))
            }
        }
    )*};
}
number_setting!(u32: "a whole number", u64: "a whole number", usize: "a whole number", f64: "a number");

impl Setting for String {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Setting for bool {
    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(format!("expected true or false: {text}")),
        }
    }
}

impl Setting for PathBuf {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(PathBuf::from(text))
    }

    fn placed_in(self, directory: &Path) -> Self {
        directory.join(self)
    }
}

impl Setting for SocketAddr {
    /// A port alone is one on loopback.
    fn from_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let named = text.strip_prefix("localhost:").unwrap_or(text);
        match named.parse::<u16>() {
            Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
            Err(_) => text.parse().map_err(|_| {
                format!("expected an address as IP:PORT, such as 127.0.0.1:9464: {text}")
            }),
        }
    }
}

impl<T: Setting> Setting for Option<T> {
    fn from_text(text: &str) -> Result<Self, String> {
        T::from_text(text).map(Some)
    }

    fn placed_in(self, directory: &Path) -> Self {
        self.map(|value| value.placed_in(directory))
    }
}

/// Refuses a value with a reason, or lets it pass.
pub(super) type Check<T> = fn(&T) -> Result<(), String>;

/// Where values may come from, in one load.
pub(super) struct Sources<'a> {
    /// Command-line options by settings key: (key, option's name, value).
    pub options: Vec<(&'static str, &'static str, String)>,
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The settings file, for errors and for relative paths.
    pub file: Option<&'a Path>,
}

impl Sources<'_> {
    /// Returns the environment variable's value; empty counts as unset.
    pub fn env(&self, variable: &str) -> Option<String> {
        (self.env)(variable).filter(|value| !value.trim().is_empty())
    }

    /// Finds the value of `key`.
    pub fn find<T: Setting>(
        &self,
        key: &str,
        variable: &str,
        in_file: Option<T>,
        check: Check<T>,
    ) -> Result<Option<T>, Error> {
        if let Some((_, option, text)) = self.options.iter().find(|(at, ..)| *at == key) {
            let value = T::from_text(text).and_then(|value| check(&value).map(|()| value));
            return value
                .map(Some)
                .map_err(|message| Error::Option { option: (*option).to_owned(), message });
        }
        if let Some(text) = self.env(variable) {
            let value = T::from_text(&text).and_then(|value| check(&value).map(|()| value));
            return value
                .map(Some)
                .map_err(|message| Error::Environment { variable: variable.to_owned(), message });
        }
        let Some(value) = in_file else { return Ok(None) };
        check(&value).map_err(|message| self.refuse(key, message))?;
        Ok(Some(value.placed_in(self.path().parent().unwrap_or(Path::new("")))))
    }

    /// Makes the error for a value that stands in the settings file.
    pub fn refuse(&self, key: &str, message: String) -> Error {
        Error::Value { path: self.path().to_owned(), key: key.to_owned(), message }
    }

    fn path(&self) -> &Path {
        self.file.unwrap_or(Path::new("perihelion.toml"))
    }
}

/// Declares a section: the resolved struct, its form in the file, and the list of its keys.
macro_rules! section {
    (
        $(#[$doc:meta])*
        $name:ident, $partial:ident, $table:literal {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr, $variable:literal, $check:expr;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[$field_doc])* #[doc = concat!("\n\nEnvironment: `", $variable, "`; default: `", stringify!($default), "`.")] pub $field: $type,)*
        }

        #[derive(Clone, Debug, Default, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $partial {
            $(pub $field: Option<$type>,)*
        }

        impl $name {
            pub(super) const KEYS: &'static [$crate::config::Key] = &[
                $($crate::config::Key {
                    table: $table,
                    key: stringify!($field),
                    variable: $variable,
                },)*
            ];

            pub(super) fn resolve(
                file: $partial,
                sources: &$crate::config::resolve::Sources<'_>,
            ) -> Result<Self, $crate::config::strict::Error> {
                Ok(Self {
                    $($field: sources
                        .find(concat!($table, ".", stringify!($field)), $variable, file.$field, $check)?
                        .unwrap_or_else(|| $default),)*
                })
            }
        }
    };
}
pub(super) use section;

/// Accepts every value.
pub(super) fn any<T>(_: &T) -> Result<(), String> {
    Ok(())
}

/// Refuses zero.
pub(super) fn positive<T: Default + PartialOrd>(value: &T) -> Result<(), String> {
    if *value > T::default() { Ok(()) } else { Err("must be greater than zero".to_owned()) }
}

/// Refuses zero where a value is given.
pub(super) fn positive_if_any<T: Default + PartialOrd>(value: &Option<T>) -> Result<(), String> {
    value.as_ref().map_or(Ok(()), positive)
}

/// Refuses what no wait can last: zero, negative, not a number, more than a year.
pub(super) fn seconds(value: &f64) -> Result<(), String> {
    if *value > 0.0 && *value <= 31_536_000.0 {
        Ok(())
    } else {
        Err(format!("must be a number of seconds greater than zero, at most a year: {value}"))
    }
}

/// As [`seconds`], where a value is given.
pub(super) fn seconds_if_any(value: &Option<f64>) -> Result<(), String> {
    value.as_ref().map_or(Ok(()), seconds)
}

/// Refuses a temperature outside 0 to 2.
pub(super) fn temperature(value: &Option<f64>) -> Result<(), String> {
    match value {
        Some(value) if !(0.0..=2.0).contains(value) => {
            Err(format!("must lie between 0 and 2: {value}"))
        }
        _ => Ok(()),
    }
}

/// Refuses what is not an http(s) address with a host.
pub(super) fn http_url(value: &Option<String>) -> Result<(), String> {
    let Some(value) = value else { return Ok(()) };
    match reqwest::Url::parse(value) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err("must not carry a user name or password; name a variable in api_key_env".to_owned())
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => Ok(()),
        _ => {
            Err("must be an http:// or https:// address, such as http://localhost:11434/v1"
                .to_owned())
        }
    }
}

/// Refuses an empty text.
pub(super) fn not_empty<T: AsRef<str>>(value: &T) -> Result<(), String> {
    if value.as_ref().trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(()) }
}
