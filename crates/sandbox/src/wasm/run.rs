//! One run: an instance, polled until it ends or its time does.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use wasmtime::{Store, Trap};

use super::Interpreter;
use super::files::{Files, Node, RUN, WORK};
use super::host::{Host, Output, Stop};
use super::open::OpenFiles;
use super::time::Random;
use crate::program::{NO_REPORT, shown_files};
use crate::request::{DRIVER, report, request};
use crate::{Error, Fault, FaultType, Limits, Outcome, Program, clock};

pub const WASM_STACK: usize = 4 << 20;
/// Stack that the guest's calls and the host's functions share.
pub const HOST_STACK: usize = 6 << 20;
pub const OUTCOME: &str = "outcome.json";
const START: &[u8] =
    b"import marshal\nwith open('/run/driver.bin', 'rb') as file:\n    exec(marshal.load(file))\n";
const COMPILE: &[u8] = b"import marshal\nwith open('/run/source.py', encoding='utf-8') as file:\n    code = compile(file.read(), '/run/driver.py', 'exec')\nwith open('/run/outcome.json', 'wb') as file:\n    marshal.dump(code, file)\n";
/// Fuel between two looks at the clock, a few milliseconds' worth.
const SLICE: u64 = 2_000_000;

enum End {
    Returned,
    Trapped(wasmtime::Error),
    TimedOut,
}

impl Interpreter {
    /// Runs a program.
    ///
    /// # Errors
    /// [`Error::Interpreter`] if no instance can be made.
    pub fn run(&self, program: &Program, limits: &Limits) -> Result<Outcome, Error> {
        let mut files = Files::new(limits.file_bytes, limits.files);
        files.put(RUN, "driver.py", Node::Fixed(START));
        files.put(RUN, "driver.bin", Node::Data(Arc::clone(&self.driver)));
        let request = request(program, limits, true, Vec::new())?;
        files.put(RUN, "request.json", Node::Data(Arc::new(request)));
        files.put_report(RUN, OUTCOME);
        let (mut host, end) = self.call(host(program, limits, files))?;
        Ok(outcome(&mut host, end))
    }

    /// Has the interpreter compile the driver, which takes it longer than most programs.
    ///
    /// # Errors
    /// [`Error::Interpreter`] if it does not.
    pub fn compiled_driver(&self) -> Result<Vec<u8>, Error> {
        let program = Program::default();
        let limits = Limits::default();
        let mut files = Files::new(limits.file_bytes, limits.files);
        files.put(RUN, "driver.py", Node::Fixed(COMPILE));
        files.put(RUN, "source.py", Node::Fixed(DRIVER.as_bytes()));
        files.put_report(RUN, OUTCOME);
        let (host, _) = self.call(host(&program, &limits, files))?;
        written(&host)
            .filter(|code| !code.is_empty())
            .ok_or_else(|| Error::Interpreter("it does not compile its driver".into()))
    }

    fn call(&self, host: Host) -> Result<(Host, End), Error> {
        let failed = |error: wasmtime::Error| Error::Interpreter(error.into());
        let mut store = Store::new(&self.engine, host);
        store.limiter(|host| host);
        store.set_fuel(u64::MAX).map_err(failed)?;
        store.fuel_async_yield_interval(Some(SLICE)).map_err(failed)?;
        let end = self.drive(&mut store)?;
        Ok((store.into_data(), end))
    }

    fn drive(&self, store: &mut Store<Host>) -> Result<End, Error> {
        let started = clock::monotonic();
        let limit = store.data().limits.time;
        // The sleep of a guest is counted by the host's own functions; what is measured here is work.
        let call = async {
            let instance = self.instance.instantiate_async(&mut *store).await?;
            let memory = instance.get_memory(&mut *store, "memory");
            store.data_mut().memory = memory;
            let run = instance.get_typed_func::<(), i32>(&mut *store, "bashkit_run")?;
            run.call_async(&mut *store, ()).await
        };
        let mut call = pin!(call);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match call.as_mut().poll(&mut context) {
                Poll::Ready(Ok(_)) => return Ok(End::Returned),
                Poll::Ready(Err(error)) => return Ok(End::Trapped(error)),
                Poll::Pending if started.elapsed() >= limit => return Ok(End::TimedOut),
                Poll::Pending => {}
            }
        }
    }
}

fn host(program: &Program, limits: &Limits, files: Files) -> Host {
    Host {
        memory: None,
        files,
        open: OpenFiles::new(),
        output: Output { bytes: Vec::new(), limit: limits.output_bytes, is_cut: false },
        random: Random::new(program.seed),
        started: program.clock,
        slept: std::time::Duration::ZERO,
        limits: *limits,
        violation: None,
        memory_refused: false,
        arguments: ["python3", "/run/driver.py", "/run"].map(str::to_owned).to_vec(),
        environment: ["PWD=/work", "HOME=/work", "TMPDIR=/tmp", "LANG=C.UTF-8", "TZ=UTC"]
            .map(str::to_owned)
            .to_vec(),
    }
}

fn written(host: &Host) -> Option<Vec<u8>> {
    let mut files = host.files.below(RUN).into_iter();
    files.find(|(name, _)| name == OUTCOME).map(|(_, bytes)| bytes.to_vec())
}

fn outcome(host: &mut Host, end: End) -> Outcome {
    let mut outcome = Outcome::printed(&host.output.bytes, host.output.is_cut);
    let work = host.files.below(WORK);
    outcome.files = shown_files(work.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())));
    let stop = match &end {
        End::Trapped(error) => error.downcast_ref::<Stop>(),
        End::Returned | End::TimedOut => None,
    };
    let has_ended = matches!(end, End::Returned) || matches!(stop, Some(Stop::Exit(_)));
    let report = written(host).and_then(|bytes| report(&bytes));
    if let Some(report) = report.filter(|_| has_ended) {
        report.into_outcome(&mut outcome, host.violation.as_deref());
        return outcome;
    }
    outcome.error = Some(match (&end, stop) {
        (End::TimedOut, _) | (_, Some(Stop::Slept)) => Fault::timeout(&host.limits),
        (End::Returned, _) => unreported(host, NO_REPORT),
        (End::Trapped(_), Some(Stop::Exit(_))) => {
            unreported(host, "the program ended the interpreter with os._exit or abort")
        }
        (End::Trapped(error), None) => match error.downcast_ref::<Trap>() {
            Some(Trap::StackOverflow) => unreported(
                host,
                "RecursionError: the calls are nested deeper than the sandbox's stack",
            ),
            _ => unreported(host, "the program crashed the interpreter"),
        },
    });
    outcome
}

fn unreported(host: &Host, message: &str) -> Fault {
    if host.memory_refused {
        let message = "the program needs more memory than the sandbox grants";
        return Fault::new(FaultType::MemoryLimit, message);
    }
    Fault::new(FaultType::PythonError, message)
}
