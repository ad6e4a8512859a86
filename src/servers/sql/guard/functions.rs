//! The functions that a statement may call. A list of the permitted, never of the forbidden.

use super::Dialect;

const BOTH: &str = "
    abs acos asin atan atan2 avg ceil ceiling coalesce concat concat_ws cos count cume_dist
    current_date current_time current_timestamp degrees dense_rank exp first_value floor lag
    last_value lead length ln log log10 lower ltrim max min mod nth_value ntile nullif
    octet_length percent_rank pi pow power radians rank replace round row_number rtrim sign sin
    sqrt string_agg substr substring sum tan trim trunc upper
";

const SQLITE: &str = "
    char date datetime format glob group_concat hex ifnull iif instr json json_array
    json_array_length json_extract json_group_array json_group_object json_object json_type
    json_valid julianday like likelihood likely log2 printf quote strftime time timediff total
    typeof unicode unixepoch unlikely
";

const POSTGRES: &str = "
    age array_agg array_length array_position array_to_string ascii bit_length bool_and bool_or
    btrim cardinality cbrt char_length character_length chr corr covar_pop covar_samp date_bin
    date_part date_trunc div every extract generate_series greatest grouping initcap isfinite
    json_agg json_array_length json_build_array json_build_object json_extract_path
    json_extract_path_text json_object_agg json_typeof jsonb_agg jsonb_array_length
    jsonb_build_array jsonb_build_object jsonb_extract_path jsonb_extract_path_text
    jsonb_object_agg jsonb_typeof justify_days justify_hours justify_interval least left
    localtime localtimestamp make_date make_interval make_time make_timestamp md5 mode now
    overlay percentile_cont percentile_disc position regexp_count regexp_match regexp_replace
    regexp_split_to_array regr_intercept regr_r2 regr_slope reverse right split_part starts_with
    stddev stddev_pop stddev_samp string_to_array strpos to_char to_date to_number to_timestamp
    translate unnest var_pop var_samp variance width_bucket
";

const SQLITE_TABLES: &str = "
    json_each json_tree
";

const POSTGRES_TABLES: &str = "
    generate_series json_array_elements json_array_elements_text json_each json_each_text
    jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text
    regexp_split_to_table string_to_table unnest
";

/// Tells whether the function of that name, folded as the database folds it, may be called.
pub fn is_allowed_function(dialect: Dialect, name: &str) -> bool {
    listed(BOTH, name)
        || match dialect {
            // The engine reports its operators -> and ->> as functions of these names.
            Dialect::Sqlite => listed(SQLITE, name) || matches!(name, "->" | "->>"),
            Dialect::Postgres => listed(POSTGRES, name),
        }
}

/// Tells whether the function of that name may stand in `FROM`.
pub fn is_allowed_table_function(dialect: Dialect, name: &str) -> bool {
    match dialect {
        Dialect::Sqlite => listed(SQLITE_TABLES, name),
        Dialect::Postgres => listed(POSTGRES_TABLES, name),
    }
}

fn listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}
