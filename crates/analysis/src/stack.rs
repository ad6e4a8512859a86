//! A stack that is large enough for the trees of statements, which chains of operators and UNIONs make as deep as they are long.

/// Bytes of it; only what is used of it becomes memory.
const SIZE: usize = 128 << 20;

/// Does work on a large stack. The trees are dropped there too, so `work` must not return them.
pub fn on_large_stack<T: Send>(work: impl Fn() -> T + Sync) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(SIZE).spawn_scoped(scope, &work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // There are no more threads; most statements need no large stack.
            Err(_) => work(),
        }
    })
}
