-- Fills a database with threads that are at rest: rows as the program writes them, of which none is opened.
-- psql -v threads=N -v steps=N -f fill.sql
\timing on
\set ON_ERROR_STOP on
BEGIN;
SET LOCAL perihelion.all_tenants = 'on';
CREATE TEMP TABLE filler ON COMMIT DROP AS
    SELECT gen_random_uuid() AS id, number, now() - (number % 8640) * interval '10 seconds' - interval '1 day' AS at
    FROM generate_series(1, :threads) AS number;
INSERT INTO thread (id, head, fence, created_at, updated_at, runs, status, graph, title, namespace, tenant)
    SELECT id, :steps, 1, at, at, 1, 'idle', 'swarm', 'filler ' || number, '', 'default' FROM filler;
INSERT INTO step (thread_id, run, seq, at, schema_version, codec, kind, hash, frontier, delta)
    SELECT id, gen_random_uuid(), seq, at + seq * interval '1 second', 1, 0, 'loop', decode(md5(number::text), 'hex'),
        '\x7b7d', decode(repeat(md5(number || ':' || seq), 19), 'hex')
    FROM filler, generate_series(1, :steps) AS seq;
INSERT INTO service_thread (thread_id, tenant, metadata, config, updated_at)
    SELECT id, 'default', jsonb_build_object('graph_id', 'swarm', 'user', 'u' || number % 1000), '{}', at FROM filler;
INSERT INTO service_run (id, thread_id, assistant, tenant, status, multitask, kwargs, metadata, base_step, first_event,
        last_event, attempt, due_at, created_at, updated_at)
    SELECT gen_random_uuid(), id, '00000000-0000-0000-0000-000000000000', 'default', 'success', 'enqueue', '{}', '{}',
        0, 0, :steps, 1, at, at, at FROM filler;
COMMIT;
VACUUM ANALYZE thread;
VACUUM ANALYZE step;
VACUUM ANALYZE service_thread;
VACUUM ANALYZE service_run;
SELECT pg_size_pretty(pg_database_size(current_database())) AS size;
