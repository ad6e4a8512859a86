-- One table or view as a table of the catalogue: ?1 is its name, ?2 whether it is a view.
WITH info AS (SELECT * FROM pragma_table_info(?1))
SELECT json_object(
    'name', json_object('schema', 'main', 'name', ?1, 'unqualified', json('true')),
    'is_view', json(iif(?2, 'true', 'false')),
    'columns', json((SELECT json_group_array(json_object(
        'name', name, 'data_type', type, 'nullable', json(iif("notnull", 'false', 'true'))) ORDER BY cid) FROM info)),
    'primary_key', json((SELECT json_group_array(name ORDER BY pk) FROM info WHERE pk > 0)),
    'unique', json((SELECT json_group_array(json(columns) ORDER BY seq) FROM (
        SELECT l.seq, json_group_array(i.name ORDER BY i.seqno) AS columns
        FROM pragma_index_list(?1) l, pragma_index_info(l.name) i
        WHERE l."unique" AND NOT l.partial
        -- An index of expressions has no column that is unique by itself.
        GROUP BY l.seq HAVING count(i.name) = count(*)))),
    'foreign_keys', json((SELECT json_group_array(json_object(
        'columns', json(columns),
        'table', json_object('schema', 'main', 'name', "table", 'unqualified', json('true')),
        'to', json("to")) ORDER BY id) FROM (
        SELECT id, "table", json_group_array("from" ORDER BY seq) AS columns, json_group_array("to" ORDER BY seq) AS "to"
        FROM (SELECT id, seq, "table", "from",
                     coalesce("to", (SELECT p.name FROM pragma_table_info(f."table") p WHERE p.pk = f.seq + 1)) AS "to"
              FROM pragma_foreign_key_list(?1) f)
        WHERE "to" IS NOT NULL GROUP BY id))))
