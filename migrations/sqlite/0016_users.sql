-- Whose things are: keys made by a key, threads, and crons with who made them.
ALTER TABLE api_key ADD COLUMN made_by BLOB;
-- The user whose thread it is; it does not change.
ALTER TABLE service_thread ADD COLUMN user_id TEXT;
-- Who made the cron, as they proved it; and why it does not run any more.
ALTER TABLE service_cron ADD COLUMN maker TEXT;
ALTER TABLE service_cron ADD COLUMN paused TEXT;
-- Whether a delivery tells that its run goes on, and not that it has ended.
ALTER TABLE service_delivery ADD COLUMN under_way INTEGER NOT NULL DEFAULT 0;
