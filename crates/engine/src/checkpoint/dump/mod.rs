//! A thread as a file: JSON Lines that any store can read back.
//!
//! Enter at [`ThreadDump`], [`write_dump`] and [`read_dump`]. Invariants: the JSON of deltas and outcomes keeps its
//! exact bytes, so that a thread's hash chain still matches after an import; the last line contains the digest of all
//! earlier lines. Deliberately absent: any repair, a file that was cut or altered is refused; and any secret, so anyone
//! who alters a file on purpose can make its digest again.

pub(super) mod lines;

use std::fmt::Display;
use std::io::{BufRead, Write};

pub(super) use self::lines::Form;
use self::lines::{Header, Line};
use super::{
    BlobRow, EffectRow, Error, PendingRow, Result, RunRow, SnapshotRow, StepRow, ThreadInfo, blobs,
};

/// A whole thread, independent of any store.
#[derive(Clone, Debug)]
pub struct ThreadDump {
    /// The thread itself.
    pub info: ThreadInfo,
    /// The oldest remaining step, if a truncation dropped earlier ones.
    pub snapshot: Option<SnapshotRow>,
    /// If steps were dropped: the states of the returns to earlier steps among `steps`, in order. For the archive also the
    /// newest snapshot.
    pub returned: Vec<SnapshotRow>,
    /// All steps to head, from 1 or from the one after `snapshot`, shared history included.
    pub steps: Vec<StepRow>,
    /// Pending writes of the step after the head.
    pub pending: Vec<PendingRow>,
    /// Recorded effects, in order.
    pub effects: Vec<EffectRow>,
    /// Runs, oldest first.
    pub runs: Vec<RunRow>,
    /// The texts that these rows and those of the children reference; only the thread at the top has texts.
    pub blobs: Vec<BlobRow>,
    /// The threads of subgraphs, flat, by namespace; they have no children.
    pub children: Vec<ThreadDump>,
}

impl ThreadDump {
    /// Returns the thread and the threads of its subgraphs.
    pub(super) fn family(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.children)
    }

    /// Returns the step up to which the steps of the thread were dropped.
    pub(super) fn base(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.seq)
    }
}

/// Newest format version that this binary reads; it writes it for a shortened thread with a return to an earlier step.
/// The first had no digest.
const VERSION: u32 = 4;

/// The version that it writes if there are separate texts.
const WITHOUT_RETURNS: u32 = 3;

/// The version before that, otherwise the same.
const WITHOUT_TEXTS: u32 = 2;

/// Writes a thread: a header, one row per line, the rows of its subgraphs' threads, and an end mark.
///
/// # Errors
/// [`Error::Damaged`] when a stored value cannot be decoded, [`Error::Export`] when the writer fails.
pub fn write_dump(dump: &ThreadDump, to: impl Write) -> Result<()> {
    write_as(Form::Thread, dump, to)
}

pub(super) fn write_as(form: Form, dump: &ThreadDump, mut to: impl Write) -> Result<()> {
    let mut lines = 0;
    let mut digest = blake3::Hasher::new();
    let mut put = |line: &Line| {
        lines += 1;
        let mut text = serde_json::to_vec(line).map_err(|e| Error::Export(e.into()))?;
        text.push(b'\n');
        digest.update(&text);
        to.write_all(&text).map_err(Error::Export)
    };
    // What has none of what came later is read by versions that knew nothing of it.
    let has_returns = dump.family().any(|it| !it.returned.is_empty());
    let version = if has_returns {
        VERSION
    } else if dump.blobs.is_empty() {
        WITHOUT_TEXTS
    } else {
        WITHOUT_RETURNS
    };
    put(&Line::Header(Header { format: form.name().to_owned(), version }))?;
    for thread in dump.family() {
        // These fields are of the store that the thread was in: the file has the shared steps itself.
        let info =
            ThreadInfo { owner: None, lease_until: None, forked_from: None, ..thread.info.clone() };
        put(&Line::Thread(Box::new(info)))?;
        if let Some(row) = &thread.snapshot {
            put(&Line::Snapshot(snapshot(form, row)?))?;
        }
        for row in &thread.returned {
            put(&Line::Returned(snapshot(form, row)?))?;
        }
        for row in &thread.steps {
            put(&Line::Step(Box::new(StepRow { delta: form.body(&row.delta)?, ..row.clone() })))?;
        }
        for row in &thread.pending {
            put(&Line::Pending(PendingRow { body: form.body(&row.body)?, ..*row }))?;
        }
        for row in &thread.effects {
            let request = form.body(&row.request)?;
            let outcome = row.outcome.as_ref().map(|it| form.body(it)).transpose()?;
            put(&Line::Effect(Box::new(EffectRow { request, outcome, ..row.clone() })))?;
        }
        for row in &thread.runs {
            put(&Line::Run(row.clone()))?;
        }
        for row in &thread.blobs {
            put(&Line::Blob(lines::Blob::new(row, form)?))?;
        }
    }
    let written = lines + 1;
    let digest = Some(digest.finalize().to_hex().to_string());
    let end = Line::End(lines::End { lines: written, digest });
    serde_json::to_writer(&mut to, &end).map_err(|e| Error::Export(e.into()))?;
    to.write_all(b"\n").and_then(|()| to.flush()).map_err(Error::Export)
}

fn snapshot(form: Form, row: &SnapshotRow) -> Result<SnapshotRow> {
    let blobs = row.blobs.as_ref().map(|names| form.body(names)).transpose()?;
    Ok(SnapshotRow { state: form.body(&row.state)?, blobs, ..*row })
}

/// Reads what [`write_dump`] wrote. The hash chain is checked by the store that imports it.
///
/// # Errors
/// [`Error::Import`] with the number of the line that is missing, damaged, or not of such a file.
pub fn read_dump(from: impl BufRead) -> Result<ThreadDump> {
    read_as(Form::Thread, from)
}

pub(super) fn read_as(form: Form, from: impl BufRead) -> Result<ThreadDump> {
    let mut threads: Vec<ThreadDump> = Vec::new();
    let mut ended = false;
    let mut count = 0;
    let mut version = VERSION;
    let mut digest = blake3::Hasher::new();
    for (number, line) in (1_u64..).zip(from.lines()) {
        let wrong = |reason: &dyn Display| Error::Import(format!("line {number}: {reason}"));
        let line = line.map_err(|e| wrong(&e))?;
        count = number;
        let parsed: Result<Line, _> = serde_json::from_str(&line);
        if number == 1 {
            version = check_header(form, parsed.ok())?;
            digest.update(line.as_bytes()).update(b"\n");
            continue;
        }
        if ended {
            return Err(wrong(&"something follows the end of the thread"));
        }
        let row = parsed.map_err(|e| wrong(&format_args!("it is damaged: {e}")))?;
        match (row, threads.last_mut()) {
            (Line::Thread(info), _) => threads.push(empty(*info)),
            (Line::End(end), _) if end.lines != number => {
                let why = format_args!("{} lines were written, some are missing", end.lines);
                return Err(wrong(&why));
            }
            (Line::End(end), _) => {
                let is_whole = match &end.digest {
                    Some(written) => *written == digest.finalize().to_hex().as_str(),
                    None => version < 2,
                };
                if !is_whole {
                    return Err(wrong(&"the lines before it were altered"));
                }
                ended = true;
            }
            (Line::Header(_), _) => return Err(wrong(&"a second header")),
            (_, None) => return Err(wrong(&"a row precedes its thread")),
            (row, Some(thread)) => add(thread, row).map_err(|e| wrong(&e))?,
        }
        digest.update(line.as_bytes()).update(b"\n");
    }
    if !ended {
        return Err(Error::Import(match count {
            0 => "the file is empty".to_owned(),
            count => format!("line {}: the file ends before the thread does", count + 1),
        }));
    }
    let mut threads = threads.into_iter();
    let Some(mut top) = threads.next() else {
        return Err(Error::Import("line 2: there is no thread in the file".to_owned()));
    };
    top.children = threads.collect();
    match top.children.iter().find(|child| child.info.root != Some(top.info.id)) {
        Some(stranger) => Err(Error::Import(format!(
            "the thread {} does not belong to the thread {}",
            stranger.info.id, top.info.id
        ))),
        None => {
            blobs::keep_named(&mut top)?;
            Ok(top)
        }
    }
}

fn check_header(form: Form, line: Option<Line>) -> Result<u32> {
    match line {
        Some(Line::Header(header)) if header.format == form.name() && header.version <= VERSION => {
            Ok(header.version)
        }
        Some(Line::Header(header)) if header.format == form.name() => Err(Error::Import(format!(
            "line 1: the file has format version {}, this version reads {VERSION}; upgrade this binary",
            header.version
        ))),
        _ => Err(Error::Import("line 1: this is no exported thread".to_owned())),
    }
}

fn empty(info: ThreadInfo) -> ThreadDump {
    ThreadDump {
        info,
        snapshot: None,
        returned: Vec::new(),
        steps: Vec::new(),
        pending: Vec::new(),
        effects: Vec::new(),
        runs: Vec::new(),
        blobs: Vec::new(),
        children: Vec::new(),
    }
}

fn add(thread: &mut ThreadDump, line: Line) -> Result<()> {
    match line {
        Line::Snapshot(row) => thread.snapshot = Some(row),
        Line::Returned(row) => thread.returned.push(row),
        Line::Step(row) => thread.steps.push(*row),
        Line::Pending(row) => thread.pending.push(row),
        Line::Effect(row) => thread.effects.push(*row),
        Line::Run(row) => thread.runs.push(row),
        Line::Blob(row) => thread.blobs.push(row.into_row(thread.info.id)?),
        Line::Header(_) | Line::Thread(_) | Line::End(_) => {}
    }
    Ok(())
}
