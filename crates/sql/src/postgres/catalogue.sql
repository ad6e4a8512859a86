-- Each relation that may be read, as a table of the catalogue, with those of its columns and keys that may be read.
WITH relation AS (
    SELECT c.oid, c.relkind, n.nspname, c.relname, json_build_object(
        'schema', n.nspname, 'name', c.relname, 'unqualified', pg_table_is_visible(c.oid)) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
      AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
      AND has_schema_privilege(n.oid, 'USAGE')
      AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))
), shown_column AS (
    SELECT a.attrelid AS relation, json_agg(json_build_object(
        'name', a.attname,
        -- A type of the database's own has its kind in parentheses.
        'data_type', format_type(a.atttypid, a.atttypmod) || CASE WHEN t.oid < 16384 THEN '' ELSE CASE t.typcategory
            WHEN 'S' THEN ' (text)' WHEN 'E' THEN ' (enum)' WHEN 'N' THEN ' (number)' WHEN 'D' THEN ' (date)'
            WHEN 'B' THEN ' (bool)' ELSE '' END END,
        'nullable', NOT a.attnotnull,
        'comment', col_description(a.attrelid, a.attnum::int)) ORDER BY a.attnum) AS columns
    FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE has_column_privilege(r.oid, a.attnum, 'SELECT')
    GROUP BY a.attrelid
), key AS (
    SELECT k.conname, k.contype, k.conrelid AS relation,
        (SELECT json_agg(a.attname ORDER BY u.place) FROM unnest(k.conkey) WITH ORDINALITY u(number, place)
         JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.number) AS columns,
        f.name AS other,
        (SELECT json_agg(a.attname ORDER BY u.place) FROM unnest(k.confkey) WITH ORDINALITY u(number, place)
         JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number) AS other_columns
    FROM pg_constraint k JOIN relation r ON r.oid = k.conrelid LEFT JOIN relation f ON f.oid = k.confrelid
    WHERE (k.contype IN ('p', 'u') OR (k.contype = 'f' AND f.oid IS NOT NULL))
      AND NOT EXISTS (SELECT 1 FROM unnest(k.conkey) number WHERE NOT has_column_privilege(r.oid, number, 'SELECT'))
), keys AS (
    SELECT relation,
        (json_agg(columns) FILTER (WHERE contype = 'p')) -> 0 AS primary_key,
        json_agg(columns ORDER BY conname) FILTER (WHERE contype = 'u') AS uniques,
        json_agg(json_build_object('columns', columns, 'table', other, 'to', other_columns) ORDER BY conname)
            FILTER (WHERE contype = 'f') AS foreign_keys
    FROM key GROUP BY relation
)
-- Joined, because a subquery per table reads all columns and keys each time.
SELECT json_build_object(
    'name', r.name,
    'is_view', r.relkind IN ('v', 'm'),
    'comment', obj_description(r.oid, 'pg_class'),
    'columns', coalesce(c.columns, '[]'),
    'primary_key', coalesce(k.primary_key, '[]'),
    'unique', coalesce(k.uniques, '[]'),
    'foreign_keys', coalesce(k.foreign_keys, '[]'))
FROM relation r LEFT JOIN shown_column c ON c.relation = r.oid LEFT JOIN keys k ON k.relation = r.oid
ORDER BY r.nspname, r.relname
