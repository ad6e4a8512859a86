-- Which relation shows rows of which other one, as a pair.
WITH RECURSIVE relation AS (
    SELECT c.oid, json_build_object(
        'schema', n.nspname, 'name', c.relname, 'unqualified', pg_table_is_visible(c.oid)) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
), use AS (
    -- What a view, materialized or not, is made of: relations, functions and operators.
    SELECT r.ev_class AS shows, d.refclassid AS kind, d.refobjid AS read
    FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE r.ev_type = '1' AND NOT (d.refclassid = 'pg_class'::regclass AND d.refobjid = r.ev_class)
), direct AS (
    SELECT shows, read FROM use WHERE kind = 'pg_class'::regclass
    UNION SELECT inhparent, inhrelid FROM pg_inherits
    -- A function can read any table, unless it comes with an extension that reads none.
    UNION SELECT shows, NULL FROM use
    WHERE kind IN ('pg_proc'::regclass, 'pg_operator'::regclass) AND read >= 16384 AND NOT EXISTS (
        SELECT 1 FROM pg_depend e JOIN pg_extension x ON x.oid = e.refobjid
        WHERE e.classid = use.kind AND e.objid = use.read AND e.refclassid = 'pg_extension'::regclass
          AND e.deptype = 'e' AND x.extname NOT IN ('dblink', 'tablefunc', 'xml2'))
), shown AS (
    SELECT oid AS shows, oid AS read FROM relation
    UNION SELECT s.shows, d.read FROM shown s JOIN direct d ON d.shows = s.read
), all_of AS (
    -- A row of a child or a partition is a row of its parents, too.
    SELECT shows, read FROM shown
    UNION SELECT a.shows, i.inhparent FROM all_of a JOIN pg_inherits i ON i.inhrelid = a.read
)
SELECT json_build_array(s.name, r.name)
FROM all_of a JOIN relation s ON s.oid = a.shows LEFT JOIN relation r ON r.oid = a.read
WHERE a.read IS DISTINCT FROM a.shows AND (a.read IS NULL OR r.oid IS NOT NULL)
