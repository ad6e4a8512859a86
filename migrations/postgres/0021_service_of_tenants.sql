-- What clients keep and what runs took is seen by its tenant alone, as people are since 0018.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['service_assistant', 'service_item', 'spending'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY of_tenant ON %I USING (
                tenant = (SELECT current_setting(''perihelion.tenant'', true))
                OR (SELECT current_setting(''perihelion.all_tenants'', true)) = ''on'')',
            name);
    END LOOP;
END $$;
