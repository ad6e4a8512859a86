//! A child process that runs graphs, and calls to it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child as Process, Command};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::frames::{Answer, Frame};

/// Unread frames of a call before the child waits.
const READ_AHEAD: usize = 1024;

/// Maximum bytes of a frame; the child has the same limit.
const LONGEST: usize = 256 << 20;

/// How long a cancelled run may take to end before its process is killed, because a thread in it cannot be.
const GRACE: Duration = Duration::from_secs(5);

/// A child process, which is killed after the host and the last call have dropped it.
pub struct Child {
    out: mpsc::UnboundedSender<Value>,
    calls: Mutex<HashMap<u64, mpsc::Sender<Frame>>>,
    newest: AtomicU64,
    gone: CancellationToken,
    process: Process,
}

impl Child {
    /// Starts a child, which shares the standard error of this process, and its variables except for secret ones.
    ///
    /// # Errors
    /// [`Error::Start`].
    pub fn start(python: &Path, root: &Path, secret: &[String]) -> Result<Arc<Self>, Error> {
        let failed = |source| Error::Start { python: python.to_owned(), source };
        let (ours, theirs) = Pair::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let mut command = Command::new(python);
        command
            .args(["-m", "perihelion.host"])
            .current_dir(root)
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .process_group(0);
        // The settings of the server contain secrets, which the code of graphs does not need.
        let is_own = |name: &OsString| {
            let name = name.to_string_lossy();
            name.starts_with("PERIHELION_") || secret.iter().any(|one| *one == name)
        };
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_own(name)) {
            command.env_remove(name);
        }
        let process = command.spawn().map_err(failed)?;
        drop(command);
        let (read, write) = UnixStream::from_std(ours).map_err(failed)?.into_split();
        let (out, orders) = mpsc::unbounded_channel();
        let child = Arc::new(Self {
            out,
            calls: Mutex::default(),
            newest: AtomicU64::new(0),
            gone: CancellationToken::new(),
            process,
        });
        tokio::spawn(send(write, orders));
        let weak = Arc::downgrade(&child);
        let gone = child.gone.clone();
        tokio::spawn(async move {
            let mut read = read;
            while let Some(answer) = receive(&mut read).await {
                let Some(child) = weak.upgrade() else { break };
                let to = child.calls.lock().get(&answer.call).cloned();
                if let Some(to) = to {
                    // A dropped call receives no more frames.
                    let _ = to.send(answer.frame).await;
                }
            }
            gone.cancel();
            if let Some(child) = weak.upgrade() {
                child.calls.lock().clear();
            }
        });
        Ok(child)
    }

    /// Returns whether its process has ended.
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Begins a call.
    pub fn call(self: &Arc<Self>, op: &str, mut order: Value) -> Call {
        let id = self.newest.fetch_add(1, Ordering::Relaxed);
        let (to, frames) = mpsc::channel(READ_AHEAD);
        self.calls.lock().insert(id, to);
        order["call"] = json!(id);
        order["op"] = json!(op);
        if self.is_gone() || self.out.send(order).is_err() {
            self.calls.lock().remove(&id);
        }
        Call { id, is_run: op == "run", child: Arc::clone(self), frames }
    }

    /// Kills its process with all that it has started.
    fn kill(&self) {
        if let Some(id) = self.process.id().and_then(|id| i32::try_from(id).ok()) {
            // It fails if all of them have ended.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running call; dropping it cancels its work in the child.
pub struct Call {
    id: u64,
    is_run: bool,
    child: Arc<Child>,
    frames: mpsc::Receiver<Frame>,
}

impl Call {
    /// Waits for the next frame; a Python exception is an error.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::Python`].
    pub async fn next(&mut self) -> Result<Frame, Error> {
        match self.frames.recv().await {
            Some(Frame::Error { error, message, traceback }) => {
                Err(Error::Python { kind: error, message, traceback })
            }
            Some(frame) => Ok(frame),
            None => Err(Error::Gone),
        }
    }

    /// Lets the child continue after a step.
    pub fn proceed(&self) {
        let _ = self.child.out.send(json!({ "call": self.id, "op": "next" }));
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let id = self.id;
        let child = Arc::clone(&self.child);
        let mut frames = std::mem::replace(&mut self.frames, mpsc::channel(1).1);
        let _ = child.out.send(json!({ "call": id, "op": "cancel" }));
        let Some(runtime) = Handle::try_current().ok().filter(|_| self.is_run) else {
            child.calls.lock().remove(&id);
            return;
        };
        runtime.spawn(async move {
            let ended =
                async { while let Some(Frame::Event(_) | Frame::Step(_)) = frames.recv().await {} };
            if tokio::time::timeout(GRACE, ended).await.is_err() {
                tracing::warn!("a cancelled run of a graph does not end; its process is replaced");
                child.kill();
            }
            child.calls.lock().remove(&id);
        });
    }
}

async fn send(mut to: OwnedWriteHalf, mut orders: mpsc::UnboundedReceiver<Value>) {
    while let Some(order) = orders.recv().await {
        let data = order.to_string();
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes();
        if to.write_all(&length).await.is_err() || to.write_all(data.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads a frame; `None` if the child has ended or sent an invalid frame.
async fn receive(from: &mut OwnedReadHalf) -> Option<Answer> {
    let length = from.read_u32().await.ok()? as usize;
    if length > LONGEST {
        tracing::error!(length, "the process of the graphs sent a frame that is too long");
        return None;
    }
    let mut data = vec![0; length];
    from.read_exact(&mut data).await.ok()?;
    let error = match serde_json::from_slice(&data) {
        Ok(answer) => return Some(answer),
        Err(error) => error,
    };
    tracing::error!(%error, "the process of the graphs sent an invalid frame");
    // Other calls are not affected by a value that cannot be read.
    let Addressed { call } = serde_json::from_slice(&data).ok()?;
    let message = format!("a value of the graph cannot be read: {error}");
    let kind = "ValueError".to_owned();
    Some(Answer { call, frame: Frame::Error { error: kind, message, traceback: String::new() } })
}

/// The address of a frame.
#[derive(Deserialize)]
struct Addressed {
    call: u64,
}
