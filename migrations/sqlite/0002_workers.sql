-- Whether an answer came while the thread was busy: the end of its run then queues it.
ALTER TABLE thread ADD COLUMN woken INTEGER NOT NULL DEFAULT 0;

-- What workers look through: threads under way and threads queued, and no others.
CREATE INDEX thread_active ON thread (status)
    WHERE status IN ('queued', 'busy') AND root_id IS NULL;

-- As before, but the status, which is indexed now, is written only where it changes: a commit then
-- touches no page of the index.
DROP TRIGGER step_commit_insert;
CREATE TRIGGER step_commit_insert INSTEAD OF INSERT ON step_commit
BEGIN
    UPDATE thread SET head = NEW.seq, updated_at = NEW.at
        WHERE id = NEW.thread_id AND head = NEW.seq - 1 AND fence = NEW.fence;
    SELECT RAISE(ABORT, 'stale') WHERE changes() = 0;
    UPDATE thread SET status = NEW.status WHERE id = NEW.thread_id AND status <> NEW.status;
    INSERT INTO step (thread_id, seq, run, at, schema_version, codec, kind, hash, frontier, delta)
        VALUES (NEW.thread_id, NEW.seq, NEW.run, NEW.at, NEW.schema_version, NEW.codec, NEW.kind,
            NEW.hash, NEW.frontier, NEW.delta);
    DELETE FROM pending
        WHERE NEW.clears_pending AND thread_id = NEW.thread_id AND step <= NEW.seq;
END;
