//! The declaration of a state: one macro that makes the struct, its update type and the reducers' wiring.

/// Declares a graph's state, its update type and one reducer per field.
///
/// Reducers: `append`, `overwrite`, `merge`, or `with(path)` for a function `fn(&mut T, T)`.
///
/// ```
/// use perihelion_engine::graph::Log;
/// fn add(current: &mut i64, more: i64) { *current += more; }
/// perihelion_engine::graph_state! {
///     /// What the counting graph knows.
///     pub struct Counting, update CountingUpdate, version 1 {
///         /// Everything said so far.
///         lines: Log<String> => append,
///         total: i64 => with(add),
///         last: Option<String> => overwrite,
///     }
/// }
/// use perihelion_engine::graph::State;
/// let mut state = Counting::default();
/// state.apply(CountingUpdate::new().lines(vec!["a".into()]).total(2));
/// state.apply(CountingUpdate::new().lines(vec!["b".into()]).total(3));
/// assert_eq!((state.lines.len(), state.total), (2, 5));
/// ```
///
/// An unknown field does not compile:
/// ```compile_fail
/// perihelion_engine::graph_state! { pub struct S, update U, version 1 { total: i64 => overwrite } }
/// let _ = U::new().totl(3);
/// ```
///
/// A reducer that does not fit its field does not compile either:
/// ```compile_fail
/// perihelion_engine::graph_state! { pub struct S, update U, version 1 { total: i64 => append } }
/// ```
///
/// Nor an unknown reducer:
/// ```compile_fail
/// perihelion_engine::graph_state! { pub struct S, update U, version 1 { total: i64 => sum } }
/// ```
///
/// When a field is renamed or changes its type, raise the version and name a function that rewrites
/// older stored forms (states and updates alike): `version 2, upcast path`, with
/// `fn(version: u32, stored: serde_json::Value) -> Result<serde_json::Value, E>`, where `E` is any error or a text.
///
/// List the fields that can contain a [`Blob`](crate::graph::Blob), so that its text is stored next to the state:
/// `version 1, blobs [papers]`.
#[macro_export]
macro_rules! graph_state {
    ($($declaration:tt)*) => {
        $crate::__graph_state! {
            ["perihelion_engine::__private::serde" "perihelion_engine::__private::present"]
            $($declaration)*
        }
    };
}

/// The same, with the paths to `serde` and to `present` that the caller's crate can name; not an interface.
#[doc(hidden)]
#[macro_export]
macro_rules! __graph_state {
    (
        [$serde:tt $present:tt]
        $(#[$meta:meta])*
        $vis:vis struct $State:ident, update $Update:ident, version $version:literal $(, upcast $upcast:path)?
        $(, blobs [$($kept:ident),+ $(,)?])? {
            $( $(#[$fmeta:meta])* $field:ident : $ty:ty => $reducer:ident $(($with:path))? ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Debug, Default,
            $crate::__private::serde::Serialize, $crate::__private::serde::Deserialize,
        )]
        #[serde(crate = $serde, default, deny_unknown_fields)]
        $vis struct $State {
            $( $(#[$fmeta])* pub $field: $ty, )+
        }

        #[doc = concat!("A partial update of [`", stringify!($State), "`]; fields left out stay as they are.")]
        #[derive(
            Clone, Debug, Default,
            $crate::__private::serde::Serialize, $crate::__private::serde::Deserialize,
        )]
        #[serde(crate = $serde, default, deny_unknown_fields)]
        $vis struct $Update {
            $(
                $(#[$fmeta])*
                #[serde(
                    skip_serializing_if = "Option::is_none",
                    deserialize_with = $present
                )]
                pub $field: ::core::option::Option<$crate::__graph_state!(@update [$ty] $reducer $(($with))?)>,
            )+
        }

        impl $Update {
            /// Makes an update without fields.
            pub fn new() -> Self {
                Self::default()
            }

            $(
                #[doc = concat!("Sets what is written to `", stringify!($field), "`.")]
                #[must_use]
                pub fn $field(
                    mut self,
                    value: $crate::__graph_state!(@update [$ty] $reducer $(($with))?),
                ) -> Self {
                    self.$field = ::core::option::Option::Some(value);
                    self
                }
            )+
        }

        impl ::core::convert::From<$Update> for $crate::graph::NodeOutput<$State> {
            /// Writes the update and follows the graph's edges.
            fn from(update: $Update) -> Self {
                Self::update(update)
            }
        }

        impl $crate::graph::Update for $Update {
            fn is_empty(&self) -> bool {
                true $( && self.$field.is_none() )+
            }

            $(
                fn each_blob_mut(&mut self, see: &mut dyn FnMut(&mut $crate::graph::Blob)) {
                    $( $crate::graph::Blobs::each_blob_mut(&mut self.$kept, see); )+
                }
            )?
        }

        impl $crate::graph::State for $State {
            type Update = $Update;
            const SCHEMA_VERSION: u32 = $version;

            fn apply(&mut self, update: $Update) {
                $(
                    if let ::core::option::Option::Some(value) = update.$field {
                        $crate::__graph_state!(@reduce [$ty] $reducer $(($with))? (&mut self.$field, value));
                    }
                )+
            }

            fn upcast(
                version: u32,
                stored: $crate::__private::Value,
            ) -> ::core::result::Result<$crate::__private::Value, $crate::graph::Cause> {
                $crate::__graph_state!(@upcast [$($upcast)?] version, stored)
            }

            $(
                fn each_blob(&self, see: &mut dyn FnMut(&$crate::graph::Blob)) {
                    $( $crate::graph::Blobs::each_blob(&self.$kept, see); )+
                }
            )?
        }
    };

    (@update [$ty:ty] append) => { <$crate::graph::Append as $crate::graph::Reducer<$ty>>::Update };
    (@update [$ty:ty] overwrite) => { $ty };
    (@update [$ty:ty] merge) => { <$crate::graph::Merge as $crate::graph::Reducer<$ty>>::Update };
    (@update [$ty:ty] with ($with:path)) => { $ty };
    (@update [$ty:ty] $($other:tt)+) => {
        compile_error!(concat!(
            "unknown reducer: ", stringify!($($other)+),
            "; the reducers are append, overwrite, merge and with(path)"
        ))
    };

    (@reduce [$ty:ty] append ($current:expr, $value:expr)) => {
        <$crate::graph::Append as $crate::graph::Reducer<$ty>>::reduce($current, $value)
    };
    (@reduce [$ty:ty] overwrite ($current:expr, $value:expr)) => { *$current = $value };
    (@reduce [$ty:ty] merge ($current:expr, $value:expr)) => {
        <$crate::graph::Merge as $crate::graph::Reducer<$ty>>::reduce($current, $value)
    };
    (@reduce [$ty:ty] with ($with:path) ($current:expr, $value:expr)) => { $with($current, $value) };

    (@upcast [$upcast:path] $version:expr, $stored:expr) => {
        ::core::result::Result::map_err($upcast($version, $stored), ::core::convert::Into::into)
    };
    (@upcast [] $version:expr, $stored:expr) => {{
        let _ = $version;
        ::core::result::Result::Ok($stored)
    }};

}
