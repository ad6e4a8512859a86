//! Running processes of this machine, known to each other by files: the status of their servers, and requests to
//! reload.
//!
//! A process locks its own file while it lives, so files of dead processes are ignored, and no process ID is used that
//! may belong to another process. No signal is sent: the request is a file as well.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use perihelion_engine::clock;
use perihelion_mcp::{Reloaded, ServerState};
use perihelion_settings::config;

/// How often it is looked for an answer.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    pub pid: u32,
    pub role: String,
    pub servers_file: PathBuf,
    pub database: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub reloaded: Reloaded,
    /// Why the file was not taken over, if it was not.
    pub refused: Option<String>,
    /// The problems of servers, one line each.
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Announcement {
    about: About,
    states: Vec<ServerState>,
    answered: Option<(Uuid, Answer)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub pid: u32,
    /// `worker` or `run`.
    pub role: String,
    pub servers_file: PathBuf,
    pub database: String,
    pub states: Vec<ServerState>,
    place: ProcessFiles,
}

#[derive(Debug)]
pub(super) struct Presence {
    place: ProcessFiles,
    announcement: Announcement,
    /// The content of the file, which is written only on a change.
    written: Option<Announcement>,
    _alive: File,
}

impl Presence {
    /// Makes this process visible; `None` if that is not possible, which has no other effect.
    pub fn announce(about: About) -> Option<Self> {
        let directory = config::processes_directory()?;
        match Self::begin(&directory, about) {
            Ok(presence) => Some(presence),
            Err(error) => {
                let directory = directory.display();
                tracing::debug!(%directory, %error, "cannot announce this process to others");
                None
            }
        }
    }

    fn begin(directory: &Path, about: About) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let place = ProcessFiles(directory.join(Uuid::new_v4().to_string()));
        // Locked before it has its name: one who looks in between would take this process for dead.
        let nameless = place.0.with_extension("starting");
        let alive = File::create(&nameless)?;
        alive.try_lock()?;
        let announcement = Announcement { about, states: Vec::new(), answered: None };
        let mut presence = Self { place, announcement, written: None, _alive: alive };
        presence.write();
        fs::rename(nameless, presence.place.alive())?;
        Ok(presence)
    }

    pub fn tell(&mut self, states: Vec<ServerState>) {
        self.announcement.states = states;
        self.write();
    }

    /// Returns the request to reload that was not answered yet.
    pub fn request(&self) -> Option<Uuid> {
        let request: Uuid = serde_json::from_slice(&fs::read(self.place.request()).ok()?).ok()?;
        let answered = self.announcement.answered.as_ref().map(|(request, _)| *request);
        (answered != Some(request)).then_some(request)
    }

    pub fn answer(&mut self, request: Uuid, answer: Answer) {
        self.announcement.answered = Some((request, answer));
        self.write();
    }

    fn write(&mut self) {
        if self.written.as_ref() == Some(&self.announcement) {
            return;
        }
        match self.place.write(&self.place.announcement(), &self.announcement) {
            Ok(()) => self.written = Some(self.announcement.clone()),
            Err(error) => {
                tracing::debug!(%error, "cannot publish the server status of this process")
            }
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.place.remove();
    }
}

/// Finds the running processes of this user on this machine; removes what dead ones left.
pub fn processes() -> Vec<Process> {
    config::processes_directory().map_or_else(Vec::new, |directory| processes_of(&directory))
}

fn processes_of(directory: &Path) -> Vec<Process> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let places = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "alive"));
    let mut found: Vec<Process> =
        places.filter_map(|path| ProcessFiles(path.with_extension("")).look()).collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// Makes a process read its servers file again and ask every server for its tools; returns the result.
///
/// `None` when it ended or did not answer in time.
pub async fn request_reload(process: &Process, patience: Duration) -> Option<Answer> {
    let request = Uuid::new_v4();
    let place = &process.place;
    place.write(&place.request(), &request).ok()?;
    let started = clock::monotonic();
    loop {
        match place.read()?.answered {
            Some((answered, answer)) if answered == request => return Some(answer),
            _ if started.elapsed() >= patience => return None,
            _ => clock::sleep(LOOK).await,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct ProcessFiles(PathBuf);

impl ProcessFiles {
    fn alive(&self) -> PathBuf {
        self.0.with_extension("alive")
    }

    fn announcement(&self) -> PathBuf {
        self.0.with_extension("json")
    }

    fn request(&self) -> PathBuf {
        self.0.with_extension("request")
    }

    fn remove(&self) {
        for file in [self.request(), self.announcement(), self.alive()] {
            // What cannot be removed is found dead by the next one who looks.
            let _ = fs::remove_file(file);
        }
    }

    /// Writes a file that readers see whole or not at all.
    fn write(&self, path: &Path, value: &impl Serialize) -> io::Result<()> {
        let fresh = self.0.with_extension(format!("{}.new", Uuid::new_v4()));
        fs::write(&fresh, serde_json::to_vec(value)?)?;
        fs::rename(&fresh, path).inspect_err(|_| {
            let _ = fs::remove_file(&fresh);
        })
    }

    fn read(&self) -> Option<Announcement> {
        serde_json::from_slice(&fs::read(self.announcement()).ok()?).ok()
    }

    fn look(&self) -> Option<Process> {
        let alive = File::open(self.alive()).ok()?;
        if alive.try_lock().is_ok() {
            self.remove();
            return None;
        }
        let Announcement { about, states, .. } = self.read()?;
        let About { pid, role, servers_file, database } = about;
        Some(Process { pid, role, servers_file, database, states, place: self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// S3.12
    #[test]
    fn a_process_that_starts_during_a_check_is_not_considered_dead() {
        let directory = tempfile::tempdir().unwrap();
        let about = About {
            pid: 1,
            role: "worker".into(),
            servers_file: PathBuf::new(),
            database: "memory:".into(),
        };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    processes_of(directory.path());
                }
            });
            for _ in 0..500 {
                let presence = Presence::begin(directory.path(), about.clone());
                let found = processes_of(directory.path());
                is_over.store(presence.is_err() || found.is_empty(), Ordering::Relaxed);
                assert!(presence.is_ok() && found.len() == 1, "{presence:?} {found:?}");
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
