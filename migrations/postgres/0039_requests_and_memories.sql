-- When a user's memories were forgotten: what was said before that time is not stored later. Of the name, there is a hash.
CREATE TABLE user_forgotten (
    tenant    text NOT NULL,
    person    text NOT NULL,
    name_hash text NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (tenant, person, name_hash)
);
ALTER TABLE user_forgotten ENABLE ROW LEVEL SECURITY;
ALTER TABLE user_forgotten FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON user_forgotten USING (
    tenant = (SELECT current_setting('perihelion.tenant', true))
    OR (SELECT current_setting('perihelion.all_tenants', true)) = 'on');

-- A request reaches a graph as its client wrote it: jsonb keeps neither the order of fields nor how a number is written.
ALTER TABLE service_run ALTER COLUMN kwargs TYPE json USING kwargs::json;
ALTER TABLE service_cron ALTER COLUMN work DROP DEFAULT;
ALTER TABLE service_cron ALTER COLUMN payload TYPE json USING payload::json;
ALTER TABLE service_cron ALTER COLUMN work TYPE json USING work::json;
ALTER TABLE service_cron ALTER COLUMN work SET DEFAULT '{}';
