-- Whether a row of a thread is visible is looked up for each row, in the primary key of `thread`. An EXISTS could also be
-- answered by reading all threads of the tenant at once, which the planner preferred for a few rows in a large table.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'step', 'snapshot', 'pending', 'effect', 'effect_count', 'run', 'event', 'trace_debt', 'blob'
    ] LOOP
        EXECUTE format(
            'ALTER POLICY of_thread ON %I USING (
                CASE WHEN (SELECT current_setting(''perihelion.all_tenants'', true)) = ''on'' THEN true
                ELSE (SELECT true FROM thread t WHERE t.id = thread_id) END)',
            name);
    END LOOP;
END $$;
