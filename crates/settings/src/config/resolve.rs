//! Finds one value: option, then environment, then file, then default, and checks it at its source.

use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::de::{DeserializeOwned, IntoDeserializer as _, value};

use super::strict::{Error, Invalid};

/// A key of the settings file and the environment variable that goes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub table: &'static str,
    pub key: &'static str,
    pub variable: &'static str,
}

pub(super) trait Setting: DeserializeOwned {
    /// Reads the value from the text of an option or an environment variable; by default as the file's text.
    fn from_text(text: &str) -> Result<Self, Invalid> {
        word(text)
    }

    /// Adapts a value from a settings file in `directory`: relative paths start there.
    fn placed_in(self, _directory: &Path) -> Self {
        self
    }
}

pub(super) fn word<T: DeserializeOwned>(text: &str) -> Result<T, Invalid> {
    let word: value::StrDeserializer<'_, value::Error> = text.trim().into_deserializer();
    Ok(T::deserialize(word)?)
}

/// Reads a list from the text of an option or an environment variable: its items are separated by commas.
pub(super) fn list<T: DeserializeOwned>(text: &str) -> Result<T, Invalid> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    Ok(T::deserialize(value::SeqDeserializer::<_, value::Error>::new(items))?)
}

macro_rules! parsed_setting {
    ($($type:ty: $expected:literal),*) => {$(
        impl Setting for $type {
            fn from_text(text: &str) -> Result<Self, Invalid> {
                let refused = |_| Invalid::Expected { expected: $expected, found: text.to_owned() };
                text.trim().parse().map_err(refused)
            }
        }
    )*};
}
parsed_setting!(u32: "a whole number", u64: "a whole number", usize: "a whole number", f64: "a number");

impl Setting for String {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        Ok(text.to_owned())
    }
}

impl Setting for bool {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        match text.trim() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(Invalid::Expected { expected: "true or false", found: text.to_owned() }),
        }
    }
}

impl Setting for PathBuf {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        Ok(Self::from(text))
    }

    fn placed_in(self, directory: &Path) -> Self {
        directory.join(self)
    }
}

impl Setting for SocketAddr {
    /// A port alone is one on loopback.
    fn from_text(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        if let Ok(port) = text.strip_prefix("localhost:").unwrap_or(text).parse::<u16>() {
            return Ok((Ipv4Addr::LOCALHOST, port).into());
        }
        text.parse().map_err(|_| Invalid::Expected {
            expected: "an address as IP:PORT, such as 127.0.0.1:9464",
            found: text.to_owned(),
        })
    }
}

impl<T: Setting> Setting for Option<T> {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        T::from_text(text).map(Some)
    }

    fn placed_in(self, directory: &Path) -> Self {
        self.map(|value| value.placed_in(directory))
    }
}

pub(super) struct Sources<'a> {
    /// Command-line options by settings key: (key, option's name, value).
    pub options: &'a [(Cow<'static, str>, &'static str, String)],
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The settings file, for errors and for relative paths.
    pub file: Option<&'a Path>,
}

impl Sources<'_> {
    /// Returns the environment variable's value; empty counts as unset.
    pub fn env(&self, variable: &str) -> Option<String> {
        (self.env)(variable).filter(|value| !value.trim().is_empty())
    }

    pub fn secret(&self, variable: &str) -> Option<SecretString> {
        self.env(variable).map(|value| value.trim().to_owned().into())
    }

    pub fn find<T: Setting>(
        &self,
        key: &str,
        variable: &str,
        in_file: Option<T>,
        check: impl Fn(&T) -> Result<(), Invalid>,
    ) -> Result<Option<T>, Error> {
        let checked = |value: T| check(&value).map(|()| Some(value));
        if let Some((_, option, text)) = self.options.iter().find(|(at, ..)| *at == key) {
            let option = (*option).to_owned();
            let value = T::from_text(text).and_then(checked);
            return value.map_err(|source| Error::Option { option, source });
        }
        if let Some(text) = self.env(variable) {
            let variable = variable.to_owned();
            let value = T::from_text(&text).and_then(checked);
            return value.map_err(|source| Error::Environment { variable, source });
        }
        let Some(value) = in_file else { return Ok(None) };
        check(&value).map_err(|source| self.refuse(key, source))?;
        Ok(Some(value.placed_in(self.path().parent().unwrap_or(Path::new("")))))
    }

    pub fn refuse(&self, key: &str, source: Invalid) -> Error {
        Error::value(self.path(), key, source)
    }

    fn path(&self) -> &Path {
        self.file.unwrap_or(Path::new("perihelion.toml"))
    }
}

/// A table of the settings file, with what goes before its values.
pub(super) trait Section: Sized {
    type File: Default + DeserializeOwned;
    const KEYS: &'static [Key];

    fn resolve(file: Self::File, sources: &Sources<'_>) -> Result<Self, Error>;
}

/// Declares a section: the resolved struct, its form in the file, and the list of its keys.
///
/// The text after `beside` has the form of the file alone.
macro_rules! section {
    (
        $(#[$doc:meta])*
        $name:ident, $partial:ident, $table:literal {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr, $variable:literal, $check:expr;)*
        }
        $(beside { $($other:ident: $other_type:ty;)* })?
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
            $($(pub $other: $other_type,)*)?
        }

        impl $crate::config::resolve::Section for $name {
            type File = $partial;
            const KEYS: &'static [$crate::config::Key] = &[
                $($crate::config::Key {
                    table: $table,
                    key: stringify!($field),
                    variable: $variable,
                },)*
            ];

            fn resolve(
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

pub(super) fn any<T>(_: &T) -> Result<(), Invalid> {
    Ok(())
}

pub(super) fn if_any<T>(
    check: impl Fn(&T) -> Result<(), Invalid>,
) -> impl Fn(&Option<T>) -> Result<(), Invalid> {
    move |value| value.as_ref().map_or(Ok(()), &check)
}

pub(super) fn positive<T: Default + PartialOrd>(value: &T) -> Result<(), Invalid> {
    if *value > T::default() { Ok(()) } else { Err(Invalid::NotPositive) }
}

/// Refuses what no wait can last: zero, negative, not a number, more than a year.
pub(super) fn seconds(value: &f64) -> Result<(), Invalid> {
    let is_wait = *value > 0.0 && *value <= 31_536_000.0;
    if is_wait { Ok(()) } else { Err(Invalid::Seconds(*value)) }
}

pub(super) fn temperature(value: &f64) -> Result<(), Invalid> {
    if (0.0..=2.0).contains(value) { Ok(()) } else { Err(Invalid::Temperature(*value)) }
}

/// Rejects an address that is not http(s) with a host.
pub(super) fn http_url(value: &(impl AsRef<str> + ?Sized)) -> Result<(), Invalid> {
    http_address(value.as_ref(), "http://localhost:11434/v1", "api_key_env")
}

/// Rejects an address that is not http(s) with a host, and one with a password; use the key `credentials` for that.
pub(super) fn http_address(
    value: &str,
    example: &'static str,
    credentials: &'static str,
) -> Result<(), Invalid> {
    match reqwest::Url::parse(value) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(Invalid::Credentials(credentials))
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => Ok(()),
        _ => Err(Invalid::NotHttp(example)),
    }
}

pub(super) fn not_empty<T: AsRef<str>>(value: &T) -> Result<(), Invalid> {
    if value.as_ref().trim().is_empty() { Err(Invalid::Empty) } else { Ok(()) }
}
