//! The functions that a statement may call. A list of the permitted, never of the forbidden.

use crate::Dialect;

const BOTH: &str = "
    abs acos asin atan atan2 avg ceil ceiling coalesce concat concat_ws cos count cume_dist
    current_date current_time current_timestamp degrees dense_rank exp first_value floor lag
    last_value lead length ln log log10 lower ltrim max min mod nth_value ntile nullif
    octet_length percent_rank pi pow power radians rank replace round row_number rtrim sign sin
    sqrt string_agg substr substring sum tan trim trunc upper
";

const SQLITE: &str = "
    bm25 char date datetime format glob group_concat hex highlight ifnull iif instr json json_array
    json_array_length json_extract json_group_array json_group_object json_object json_patch
    json_pretty json_quote json_remove json_replace json_set json_type json_valid jsonb
    jsonb_extract jsonb_object julianday like likelihood likely log2 match median percentile
    percentile_cont percentile_disc printf quote random regexp snippet strftime subtype time timediff
    total typeof unicode unixepoch unlikely
";

const POSTGRES: &str = "
    age any_value array array_agg array_append array_cat array_dims array_length array_lower
    array_ndims array_position array_positions array_prepend array_remove array_replace
    array_to_json array_to_string array_upper ascii bit_and bit_length bit_or bit_xor bool_and
    bool_or btrim cardinality cbrt char_length character_length chr clock_timestamp corr covar_pop
    covar_samp date date_bin date_part date_trunc daterange div encode every extract format gcd
    gen_random_uuid generate_series generate_subscripts greatest grouping initcap int4range int8range
    isempty isfinite
    json_agg json_array_length json_build_array json_build_object json_extract_path
    json_extract_path_text json_object_agg json_typeof json_strip_nulls jsonb_agg jsonb_array_length
    jsonb_build_array jsonb_build_object jsonb_extract_path jsonb_extract_path_text
    jsonb_object_agg jsonb_object_keys jsonb_path_exists jsonb_path_match jsonb_path_query
    jsonb_path_query_array jsonb_path_query_first jsonb_pretty jsonb_set jsonb_strip_nulls
    jsonb_typeof json_object_keys justify_days justify_hours justify_interval lcm least left
    localtime localtimestamp lower_inc lower_inf lpad make_date make_interval make_time
    make_timestamp make_timestamptz md5 min_scale mode now num_nonnulls num_nulls numrange
    overlay percentile_cont percentile_disc phraseto_tsquery plainto_tsquery position random
    range_agg range_merge regexp_count regexp_instr regexp_like regexp_match regexp_matches
    regexp_replace regexp_split_to_array regexp_substr regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat reverse right row
    row_to_json rpad scale sha256 split_part starts_with statement_timestamp stddev stddev_pop
    stddev_samp string_to_array strpos timezone to_char to_date to_hex to_json to_jsonb to_number
    to_timestamp to_tsquery to_tsvector translate trim_array trim_scale ts_headline ts_rank
    ts_rank_cd tsrange tstzrange unnest upper_inc upper_inf var_pop var_samp variance
    websearch_to_tsquery width_bucket
";

const SQLITE_TABLES: &str = "
    json_each json_tree
";

const TSQL: &str = "
    ascii atn2 ceiling char charindex checksum_agg choose concat convert count_big datalength dateadd
    datediff datediff_big datefromparts datename datepart datetimefromparts datetrunc day eomonth
    format getdate getutcdate greatest grouping iif isdate isnull isnumeric json_query json_value
    least left len log log10 month nchar parse patindex percentile_cont percentile_disc quotename
    rand replicate reverse right round space square stdev stdevp str string_split stuff switchoffset
    sysdatetime sysdatetimeoffset sysutcdatetime todatetimeoffset translate try_cast try_convert
    unicode var varp year
";

const DUCKDB: &str = "
    any_value approx_count_distinct arg_max arg_min array_agg array_length bool_and bool_or
    concat contains corr date_add date_diff date_part date_sub date_trunc datediff datepart datetrunc day
    dayname dayofweek dayofyear ends_with epoch epoch_ms extract first format_number generate_series
    greatest hour if ifnull isfinite isnan last last_day least left len list list_aggregate
    list_contains list_distinct list_sort list_value make_date make_timestamp md5 median minute mode
    month monthname now now position prefix quantile quantile_cont quantile_disc quarter range
    regexp_extract regexp_full_match regexp_matches regexp_replace reverse right second split_part
    starts_with stddev stddev_pop stddev_samp string_split strftime strlen strpos strptime suffix
    time_bucket to_days to_months to_timestamp to_years today try_cast typeof unnest var_pop var_samp
    variance week weekday year
";

const TSQL_TABLES: &str = "
    generate_series string_split
";

const DUCKDB_TABLES: &str = "
    generate_series range unnest
";

const POSTGRES_TABLES: &str = "
    generate_series generate_subscripts json_array_elements json_array_elements_text json_each
    json_each_text json_object_keys json_to_record json_to_recordset jsonb_array_elements
    jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys jsonb_path_query
    jsonb_to_record jsonb_to_recordset regexp_matches regexp_split_to_table string_to_table unnest
";

/// Tells whether the function of that name, folded as the database folds it, may be called.
pub fn is_allowed_function(dialect: Dialect, name: &str) -> bool {
    listed(BOTH, name)
        || match dialect {
            // The engine reports its operators -> and ->> as functions of these names.
            Dialect::Sqlite => listed(SQLITE, name) || matches!(name, "->" | "->>"),
            // A function that yields rows may also stand in a select list.
            Dialect::Postgres => listed(POSTGRES, name) || listed(POSTGRES_TABLES, name),
            Dialect::TSql => listed(TSQL, name),
            Dialect::DuckDb => listed(DUCKDB, name),
        }
}

/// Tells whether the function of that name may stand in `FROM`.
pub fn is_allowed_table_function(dialect: Dialect, name: &str) -> bool {
    match dialect {
        Dialect::Sqlite => listed(SQLITE_TABLES, name),
        Dialect::Postgres => listed(POSTGRES_TABLES, name),
        Dialect::TSql => listed(TSQL_TABLES, name),
        Dialect::DuckDb => listed(DUCKDB_TABLES, name),
    }
}

fn listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}
