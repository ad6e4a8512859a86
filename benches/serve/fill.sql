-- Fills a database with threads that are at rest, as a service of that age has them: rows of every table that a run writes. Nobody
-- opens one of them: what steps and calls hold is noise, which compresses as badly as what is stored compressed.
--
--   psql -v threads=N -v steps=N -v effects=N -f fill.sql
--
-- Ids are in the order of time, as the program makes them. Of 100 threads 2 wait for a person and 1 failed; of 1,000 users each has
-- as many. The oldest are 90 days old, and of those that changed within a day the events are still there.
\set ON_ERROR_STOP on
\pset tuples_only on
SET perihelion.all_tenants = 'on';
SET synchronous_commit = off;

CREATE FUNCTION filler_id(number bigint, at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(number::text), 1, 3)
        || '8' || substr(md5(number::text), 4, 15))::uuid
$$;

CREATE FUNCTION noise(seed text, times integer) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT decode(repeat(md5(seed), times), 'hex')
$$;

-- Threads number `first` to `last` of `all_of_them`, the oldest first.
CREATE PROCEDURE fill(first bigint, last bigint, all_of_them bigint, steps integer, effects integer) LANGUAGE plpgsql AS $$
BEGIN
    CREATE TEMP TABLE filler ON COMMIT DROP AS
        SELECT number, at, filler_id(number, at) AS id, filler_id(-number, at) AS run
        FROM (
            SELECT number, now() - interval '1 minute' - (all_of_them - number) * (interval '90 days' / all_of_them) AS at
            FROM generate_series(first, last) AS number
        ) AS numbered;
    INSERT INTO thread (id, head, fence, created_at, updated_at, runs, status, graph, title, namespace, tenant, events, events_step)
        SELECT id, steps, 1, at, at, 1,
            CASE WHEN number % 100 < 2 THEN 'interrupted' WHEN number % 100 = 2 THEN 'failed' ELSE 'idle' END,
            'swarm', 'filler ' || number, '', 'default', steps * 3, steps FROM filler;
    INSERT INTO run (thread_id, id, started_at, ended_at, number, status, finish_reason)
        SELECT id, run, at, at, 1, CASE WHEN number % 100 = 2 THEN 'failed' ELSE 'done' END, 'done' FROM filler;
    INSERT INTO step (thread_id, run, seq, at, schema_version, codec, kind, hash, frontier, delta)
        SELECT id, run, seq, at, 1, 0, 'loop', noise(number || 'h' || seq, 2), '\x7b227461736b73223a5b5d7d',
            noise(number || ':' || seq, 18)
        FROM filler, generate_series(1, steps) AS seq;
    INSERT INTO effect (thread_id, step, started_at, ended_at, task, number, attempt, request_codec, outcome_codec, kind, status,
            name, key, request, outcome, request_sum, outcome_sum)
        SELECT id, 1 + (number_of - 1) * steps / effects, at, at, 0, 1, 1, 1, 1, 'model', 'done', 'supervisor',
            noise(number || 'k' || number_of, 2), noise(number || 'q' || number_of, 24), noise(number || 'a' || number_of, 14),
            noise(number || 's', 2), noise(number || 't', 2)
        FROM filler, generate_series(1, effects) AS number_of;
    INSERT INTO effect_count (thread_id, step, task, effects)
        SELECT DISTINCT id, 1 + (number_of - 1) * steps / effects, 0, 1 FROM filler, generate_series(1, effects) AS number_of;
    INSERT INTO snapshot (thread_id, seq, schema_version, codec, state, checksum)
        SELECT id, steps, 1, 1, noise(number || 'state', 120), noise(number || 'c', 2) FROM filler;
    INSERT INTO event (thread_id, run, first_id, step, at, events, codec, body)
        SELECT id, run, seq * 3 - 2, seq, at, 3, 1, noise(number || 'e' || seq, 30)
        FROM filler, generate_series(1, steps) AS seq WHERE at > now() - interval '1 day';
    INSERT INTO service_thread (thread_id, tenant, metadata, config, updated_at)
        SELECT id, 'default', jsonb_build_object('graph_id', 'swarm', 'assistant_id', 'swarm', 'user', 'u' || number % 1000), '{}', at
        FROM filler;
    INSERT INTO service_run (id, thread_id, assistant, tenant, status, multitask, kwargs, metadata, base_step, first_event,
            last_event, attempt, due_at, created_at, updated_at)
        SELECT run, id, '00000000-0000-0000-0000-000000000000', 'default',
            CASE WHEN number % 100 < 2 THEN 'interrupted' WHEN number % 100 = 2 THEN 'error' ELSE 'success' END, 'enqueue',
            jsonb_build_object('input', jsonb_build_object('messages', jsonb_build_array(
                jsonb_build_object('role', 'user', 'content', encode(noise(number || 'i', 24), 'base64'))))),
            '{}', 0, 0, steps * 3, 1, at, at, at FROM filler;
END
$$;

-- A transaction each, so that the server can write behind.
SELECT format('CALL fill(%s, %s, %s, %s, %s)', first, least(first + 19999, :threads), :threads, :steps, :effects)
    FROM generate_series(1, :threads, 20000) AS first \gexec

DROP PROCEDURE fill;
DROP FUNCTION filler_id, noise;
VACUUM ANALYZE thread, run, step, effect, effect_count, snapshot, event, service_thread, service_run, thread_mark;
CHECKPOINT;
\pset tuples_only off
SELECT relname AS table, reltuples::bigint AS rows, pg_size_pretty(pg_table_size(oid)) AS data, pg_size_pretty(pg_indexes_size(oid)) AS indexes
    FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND reltuples > 0 ORDER BY pg_total_relation_size(oid) DESC;
SELECT pg_size_pretty(pg_database_size(current_database())) AS size,
    pg_size_pretty(pg_database_size(current_database()) / :threads) AS "per thread";
