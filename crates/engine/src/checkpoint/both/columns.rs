//! The columns that rows are read from, for the statements that read them.

/// Columns that [`thread`](super::decode::thread) reads.
macro_rules! thread_columns {
    () => {
        "id, root_id, parent_id, parent_seq, head, base, fence, lease_until, created_at, updated_at, \
         status, graph, title, namespace, tenant, owner, error"
    };
}
pub(in super::super) use thread_columns;

/// Columns that [`effect`](super::decode::effect) reads.
macro_rules! effect_columns {
    () => {
        "step, started_at, ended_at, task, number, attempt, request_codec, outcome_codec, kind, \
         status, name, key, request, outcome, request_sum, outcome_sum"
    };
}
pub(in super::super) use effect_columns;

/// Columns that [`run`](super::decode::run) reads.
macro_rules! run_columns {
    () => {
        "id, number, status, finish_reason, started_at, ended_at"
    };
}
pub(in super::super) use run_columns;

/// Columns that [`step`](super::decode::step) reads.
macro_rules! step_columns {
    () => {
        "seq, schema_version, codec, delta AS body, run, at, kind, hash, frontier"
    };
}
pub(in super::super) use step_columns;

/// Columns that [`snapshot`](super::decode::snapshot) reads, of the table `s`.
macro_rules! snapshot_columns {
    () => {
        "s.seq, s.schema_version, s.codec, s.state AS body, s.checksum, s.blobs_codec, s.blobs"
    };
}
pub(in super::super) use snapshot_columns;

/// Columns that [`blob`](super::decode::blob) reads.
macro_rules! blob_columns {
    () => {
        "thread_id, step, codec, hash, body"
    };
}
pub(in super::super) use blob_columns;
