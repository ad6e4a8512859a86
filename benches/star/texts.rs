//! The workload's texts: a pure function of stream, number and length.

use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// What the first digits of the SHA-256 over sample texts must be, or the workload is another one.
pub const CHECKSUM: &str = "e5f33792e963bfc9";

/// Which text of the state a stream fills.
#[derive(Clone, Copy, Debug)]
pub enum Stream {
    Supervisor = 0,
    Plan = 1,
    Message = 2,
    Result = 3,
    Entry = 4,
    Answer = 5,
    Task = 6,
    Input = 7,
}

const STREAMS: [Stream; 8] = [
    Stream::Supervisor,
    Stream::Plan,
    Stream::Message,
    Stream::Result,
    Stream::Entry,
    Stream::Answer,
    Stream::Task,
    Stream::Input,
];

impl Stream {
    /// Returns the length of this stream's texts in the workload, in bytes.
    pub fn length(self) -> usize {
        match self {
            Self::Message | Self::Result => 1024,
            Self::Entry => 64,
            _ => 200,
        }
    }
}

/// Sebastiano Vigna's splitmix64.
struct SplitMix64(u64);

impl SplitMix64 {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Texts, of which those of a run are made before the clock starts.
#[derive(Debug)]
pub struct Texts {
    words: Vec<String>,
    /// By stream, then by number.
    ready: Vec<Vec<Mutex<String>>>,
    /// Whether each text is asked for once only, and can be handed over instead of copied.
    once: bool,
}

impl Texts {
    /// Makes the vocabulary only; texts are then made when they are asked for.
    pub fn lazy() -> Self {
        Self { words: vocabulary(), ready: STREAMS.map(|_| Vec::new()).into(), once: false }
    }

    /// Makes every text of a run of so many rounds; for one thread each is handed over once.
    pub fn of_run(rounds: usize, threads: usize) -> Self {
        let mut texts = Self::lazy();
        texts.once = threads == 1;
        texts.ready = STREAMS
            .map(|stream| {
                let count = match stream {
                    Stream::Supervisor | Stream::Plan => rounds + 1,
                    Stream::Message | Stream::Result | Stream::Entry => rounds,
                    Stream::Answer | Stream::Task | Stream::Input => 1,
                };
                (0..count).map(|k| texts.make(stream, k, stream.length()).into()).collect()
            })
            .into();
        texts
    }

    /// Returns a text as a string of its own, as a model's answer would be.
    pub fn text(&self, stream: Stream, k: usize) -> String {
        let Some(text) = self.ready[stream as usize].get(k) else {
            return self.make(stream, k, stream.length());
        };
        let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
        // The first plan is written twice.
        if self.once && !matches!((stream, k), (Stream::Plan, 0)) {
            std::mem::take(&mut text)
        } else {
            text.clone()
        }
    }

    fn make(&self, stream: Stream, k: usize, length: usize) -> String {
        let mut random = SplitMix64((stream as u64) << 32 | k as u64);
        let mut text = String::with_capacity(length + 64);
        while text.len() < length {
            let mut draw = random.draw();
            for _ in 0..6 {
                text.push_str(&self.words[(draw & 1023) as usize]);
                text.push(' ');
                draw >>= 10;
            }
        }
        // Spaces stand between words only: a text that ends with its last word is one byte short.
        text.pop();
        text.truncate(length);
        text.shrink_to_fit();
        text
    }

    /// Returns the checksum over samples of every stream.
    pub fn checksum(&self) -> String {
        let mut hasher = Sha256::new();
        for stream in STREAMS {
            for k in [0, 1, 999] {
                hasher.update(self.make(stream, k, 1024));
            }
        }
        hasher.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn vocabulary() -> Vec<String> {
    let consonants = b"bcdfghjklmnprstv";
    let vowels = b"aeio";
    let mut random = SplitMix64(42);
    let mut word = || {
        let mut draw = random.draw();
        let syllables = 1 + draw % 3;
        draw >>= 8;
        let mut word = String::new();
        for _ in 0..syllables {
            word.push(consonants[(draw & 15) as usize].into());
            word.push(vowels[(draw >> 4 & 3) as usize].into());
            draw >>= 6;
        }
        word
    };
    (0..1024).map(|_| word()).collect()
}

/// Returns the bytes of all texts that a run of so many rounds writes, its input included.
pub fn payload(rounds: usize) -> usize {
    let per_round = [Stream::Message, Stream::Result, Stream::Entry];
    let per_turn = [Stream::Supervisor, Stream::Plan];
    let once = [Stream::Plan, Stream::Answer, Stream::Task, Stream::Input];
    let sum = |streams: &[Stream]| streams.iter().map(|stream| stream.length()).sum::<usize>();
    rounds * sum(&per_round) + (rounds + 1) * sum(&per_turn) + sum(&once)
}
