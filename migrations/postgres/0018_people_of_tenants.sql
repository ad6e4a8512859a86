-- What belongs to people is seen by their tenant alone, as documents are since 0017.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'person', 'session', 'api_key', 'audit', 'approval_request', 'workflows', 'skill', 'user_memory'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY of_tenant ON %I USING (
                tenant = (SELECT current_setting(''perihelion.tenant'', true))
                OR (SELECT current_setting(''perihelion.all_tenants'', true)) = ''on'')',
            name);
    END LOOP;
END $$;
