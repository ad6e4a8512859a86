//! A line between a mail server and its client, on which a process is killed at a point that the test chooses.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What passes on all lines of a test together: each piece of bytes, in either direction, is one point.
#[derive(Default)]
pub struct Trap {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The process that is killed, and what passes before.
    armed: Option<(u32, usize)>,
    /// Points since the trap was set.
    passed: usize,
    is_sprung: bool,
}

impl Trap {
    /// Counts from now on, and kills the process before the point of that number passes.
    pub fn set(&self, process: u32, point: usize) {
        *self.state.lock().unwrap() = State { armed: Some((process, point)), ..State::default() };
    }

    /// Returns the points that passed since it was set, and lets everything pass again.
    pub fn lift(&self) -> usize {
        std::mem::take(&mut *self.state.lock().unwrap()).passed
    }

    /// Tells whether a piece may pass.
    fn passes(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let Some((process, point)) = state.armed else { return true };
        if !state.is_sprung && state.passed == point {
            state.is_sprung = true;
            let process = nix::unistd::Pid::from_raw(i32::try_from(process).unwrap());
            let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL);
        }
        state.passed += 1;
        !state.is_sprung
    }
}

/// Opens a line to a port of this machine and returns its own port.
pub fn line(to: u16, trap: &Arc<Trap>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let trap = Arc::clone(trap);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", to))) else {
                continue;
            };
            for (from, into) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client.try_clone().unwrap()),
            ] {
                let trap = Arc::clone(&trap);
                std::thread::spawn(move || carry(from, into, &trap));
            }
        }
    });
    port
}

fn carry(mut from: TcpStream, mut into: TcpStream, trap: &Trap) {
    let mut piece = [0; 16_384];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if !trap.passes() || into.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = into.shutdown(Shutdown::Both);
}
