//! The functions that a statement may call. A list of the permitted, never of the forbidden.
//!
//! On Postgres a name alone would also find a user's function in `public`. So every call is written with the schema of
//! the function that is meant: `pg_catalog`, or that of the extension that brings it.

use sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Value,
};

use super::normal::take;
use super::{Policy, Refusal};
use crate::Dialect;

const OWN_SCHEMA: &str = "pg_catalog";

/// Functions of Postgres' grammar, which cannot have a schema.
const GRAMMAR: &str = "
    array coalesce current_date current_time current_timestamp greatest grouping least localtime
    localtimestamp nullif row
";

/// Functions of Postgres' extensions, by extension, and the number of their text arguments.
pub const OF_EXTENSIONS: &[(&str, &str, usize)] = &[
    ("fuzzystrmatch", "difference", 2),
    ("fuzzystrmatch", "levenshtein", 2),
    ("fuzzystrmatch", "soundex", 1),
    ("pg_trgm", "similarity", 2),
    ("pg_trgm", "word_similarity", 2),
    ("unaccent", "unaccent", 1),
];

const BOTH: &str = "
    abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling coalesce concat concat_ws cos cosh
    count cume_dist current_date current_time current_timestamp degrees dense_rank exp first_value
    floor lag last_value lead length ln log log10 lower ltrim max min mod nth_value ntile nullif
    octet_length percent_rank pi pow power radians rank replace round row_number rtrim sign sin sinh
    sqrt string_agg substr substring sum tan tanh trim trunc upper
";

/// The engine reports its operators `->` and `->>` as functions of these names.
const SQLITE: &str = "
    bm25 changes char date datetime format glob group_concat hex highlight if ifnull iif instr json
    json_array json_array_length json_error_position json_extract json_group_array json_group_object
    json_insert json_object json_patch json_pretty json_quote json_remove json_replace json_set
    json_type json_valid jsonb jsonb_array jsonb_extract jsonb_group_array jsonb_group_object
    jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set julianday
    last_insert_rowid like likelihood likely log2 match median percentile percentile_cont
    percentile_disc printf quote random regexp snippet soundex sqlite_version strftime subtype time
    timediff total total_changes typeof unhex unicode unistr unistr_quote unixepoch unlikely -> ->>
";

const POSTGRES: &str = "
    abbrev age any_value area array array_agg array_append array_cat array_dims array_fill
    array_length array_lower array_ndims array_position array_positions array_prepend array_remove
    array_replace array_to_json array_to_string array_upper ascii bit_and bit_count bit_length
    bit_or bit_xor bool_and bool_or box broadcast btrim cardinality cbrt center char_length
    character_length chr circle clock_timestamp corr cosd cot covar_pop covar_samp date date_add
    date_bin date_part date_subtract date_trunc datemultirange daterange decode diameter div encode
    erf erfc every extract factorial family format gcd gen_random_uuid get_bit get_byte greatest
    grouping hashtext hashtextextended height host hostmask inet_merge inet_same_family initcap
    int4multirange int4range int8multirange int8range isempty isfinite json_agg json_array_length
    json_build_array json_build_object json_extract_path json_extract_path_text json_object
    json_object_agg json_strip_nulls json_typeof jsonb_agg jsonb_array_length jsonb_build_array
    jsonb_build_object jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object
    jsonb_object_agg jsonb_path_exists jsonb_path_match jsonb_path_query_array
    jsonb_path_query_first jsonb_pretty jsonb_set jsonb_strip_nulls jsonb_typeof justify_days
    justify_hours justify_interval lcm least left localtime localtimestamp lower_inc lower_inf lpad
    make_date make_interval make_time make_timestamp make_timestamptz masklen md5 min_scale mode
    multirange netmask network normalize now num_nonnulls num_nulls nummultirange numnode numrange
    overlay percentile_cont percentile_disc pg_column_size pg_size_bytes pg_size_pretty pg_typeof
    phraseto_tsquery plainto_tsquery point position quote_ident quote_literal quote_nullable random
    range_agg range_intersect_agg range_merge regexp_count regexp_instr regexp_like regexp_match
    regexp_replace regexp_split_to_array regexp_substr regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat reverse right row row_to_json rpad scale
    set_masklen setweight sha224 sha256 sha384 sha512 sind split_part starts_with
    statement_timestamp stddev stddev_pop stddev_samp string_to_array strip strpos tand timeofday
    timezone to_ascii to_bin to_char to_date to_hex to_json to_jsonb to_number to_oct to_timestamp
    to_tsquery to_tsvector transaction_timestamp translate trim_array trim_scale ts_headline ts_rank
    ts_rank_cd tsmultirange tsrange tstzmultirange tstzrange tsvector_to_array unistr upper_inc
    upper_inf var_pop var_samp variance websearch_to_tsquery width_bucket
";

const TSQL: &str = "
    ascii atn2 char charindex checksum_agg choose convert count_big datalength dateadd datediff
    datediff_big datefromparts datename datepart datetimefromparts datetrunc day eomonth format
    getdate getutcdate greatest grouping iif isdate isnull isnumeric json_query json_value least
    left len month nchar parse patindex percentile_cont percentile_disc quotename rand replicate
    reverse right space square stdev stdevp str stuff switchoffset sysdatetime sysdatetimeoffset
    sysutcdatetime todatetimeoffset translate try_cast try_convert unicode var varp year
";

const DUCKDB: &str = "
    any_value approx_count_distinct arg_max arg_min array_agg array_length bool_and bool_or contains
    corr date_add date_diff date_part date_sub date_trunc datediff datepart datetrunc day dayname
    dayofweek dayofyear ends_with epoch epoch_ms extract first format_number greatest hour if ifnull
    isfinite isnan last last_day least left len list list_aggregate list_contains list_distinct
    list_sort list_value make_date make_timestamp md5 median minute mode month monthname now
    position prefix quantile quantile_cont quantile_disc quarter regexp_extract regexp_full_match
    regexp_matches regexp_replace reverse right second split_part starts_with stddev stddev_pop
    stddev_samp string_split strftime strlen strpos strptime suffix time_bucket to_days to_months
    to_timestamp to_years today try_cast typeof var_pop var_samp variance week weekday year
";

const DUCKDB_TABLES: &str = "generate_series range unnest";

const POSTGRES_TABLES: &str = "
    generate_series generate_subscripts json_array_elements json_array_elements_text json_each
    json_each_text json_object_keys json_to_record json_to_recordset jsonb_array_elements
    jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys jsonb_path_query
    jsonb_to_record jsonb_to_recordset regexp_matches regexp_split_to_table string_to_table unnest
";

/// Returns the names of the functions that can be called, folded as in the database.
pub fn allowed_functions(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    // A function that yields rows may also stand in a select list, on some.
    let lists = match dialect {
        Dialect::Sqlite => [BOTH, SQLITE, ""],
        Dialect::Postgres => [BOTH, POSTGRES, POSTGRES_TABLES],
        Dialect::TSql => [BOTH, TSQL, ""],
        Dialect::DuckDb => [BOTH, DUCKDB, DUCKDB_TABLES],
    };
    lists.into_iter().flat_map(str::split_whitespace)
}

/// Returns whether the function of that name, folded as in the database, can be called.
pub fn is_allowed_function(dialect: Dialect, name: &str) -> bool {
    allowed_functions(dialect).any(|known| known == name)
}

/// Returns the name of the called function, folded as in the database, if it has no schema or the known one.
pub fn called(name: &ObjectName, dialect: Dialect, policy: &Policy) -> Option<String> {
    let folded = |part: &ObjectNamePart| part.as_ident().map(|ident| dialect.fold(ident));
    match name.0.as_slice() {
        [function] => folded(function),
        [schema, function] if dialect == Dialect::Postgres => {
            let schema = folded(schema)?;
            let function = folded(function)?;
            (schema == schema_of(&function, policy)?).then_some(function)
        }
        _ => None,
    }
}

/// Returns the schema for a call on Postgres; `None` for functions of its grammar.
fn schema_of<'a>(function: &str, policy: &'a Policy) -> Option<&'a str> {
    if listed(GRAMMAR, function) {
        return None;
    }
    if is_allowed_function(Dialect::Postgres, function) {
        return Some(OWN_SCHEMA);
    }
    policy.extensions.get(function).map(String::as_str)
}

/// Returns whether the function that [`called`] named can have this number of arguments.
pub fn may_call(name: &str, arguments: usize, dialect: Dialect, policy: &Policy) -> bool {
    let of_extension = || {
        dialect == Dialect::Postgres
            && policy.extensions.contains_key(name)
            && OF_EXTENSIONS.iter().any(|(_, known, texts)| *known == name && *texts == arguments)
    };
    is_allowed_function(dialect, name) || of_extension()
}

/// Writes a function's name with its schema, where Postgres would look it up.
pub fn placed(name: &mut ObjectName, dialect: Dialect, policy: &Policy) {
    let [function] = name.0.as_slice() else { return };
    let Some(function) = function.as_ident().filter(|_| dialect == Dialect::Postgres) else {
        return;
    };
    let function = dialect.fold(function);
    let Some(schema) = schema_of(&function, policy) else { return };
    *name = ObjectName::from([schema, &function].map(|part| Ident::with_quote('"', part)).to_vec());
}

/// Writes a call on Postgres so that it means one function only.
///
/// # Errors
/// [`Refusal::Function`] for an extension's function with arguments that are not plain.
pub fn place(function: &mut Function, dialect: Dialect, policy: &Policy) -> Result<(), Refusal> {
    if dialect != Dialect::Postgres || function.args == FunctionArguments::None {
        return Ok(());
    }
    let name = called(&function.name, dialect, policy).unwrap_or_default();
    placed(&mut function.name, dialect, policy);
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    // The form is a word of the grammar there, and a text for the function.
    if name == "normalize"
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(form))) = list.args.get_mut(1)
        && let Expr::Identifier(word) = form
        && ["NFC", "NFD", "NFKC", "NFKD"].iter().any(|known| word.value.eq_ignore_ascii_case(known))
    {
        *form = Expr::Value(Value::SingleQuotedString(word.value.to_ascii_uppercase()).into());
    }
    if policy.extensions.contains_key(&name) && !is_allowed_function(dialect, &name) {
        for argument in &mut list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(text)) = argument else {
                return Err(Refusal::Function(name));
            };
            // Texts, so that another function of that name with other arguments is never nearer.
            if !matches!(text, Expr::Cast { data_type: DataType::Text, .. }) {
                let expr = Box::new(take(text));
                let data_type = DataType::Text;
                *text = Expr::Cast { kind: CastKind::Cast, expr, data_type, format: None };
            }
        }
    }
    Ok(())
}

pub fn is_allowed_table_function(dialect: Dialect, name: &str) -> bool {
    let list = match dialect {
        Dialect::Sqlite => "json_each json_tree",
        Dialect::Postgres => POSTGRES_TABLES,
        Dialect::TSql => "generate_series string_split",
        Dialect::DuckDb => DUCKDB_TABLES,
    };
    listed(list, name)
}

fn listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_listed_once() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::TSql, Dialect::DuckDb] {
            let mut names: Vec<&str> = allowed_functions(dialect).collect();
            names.sort_unstable();
            let repeated: Vec<&&str> =
                names.windows(2).filter(|two| two[0] == two[1]).map(|two| &two[0]).collect();
            assert!(repeated.is_empty(), "{dialect:?}: {repeated:?}");
        }
    }
}
