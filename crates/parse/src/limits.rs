//! How much a document may take.

use serde::{Deserialize, Serialize};

use crate::{Error, Tesseract};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    pub input_bytes: usize,
    pub text_bytes: usize,
    /// Most bytes that a packed document may unpack to.
    pub unpacked_bytes: usize,
    /// Most pages of a PDF.
    pub pages: usize,
    /// The program that reads pictures; without it, they are skipped.
    pub tesseract: Option<Tesseract>,
}

/// How many times its size a document may unpack to; office documents reach about 30.
const RATIO: usize = 200;

/// Below this, the unpacked size of a document is not compared with its packed size.
const RATIO_FROM: usize = 16 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_bytes: 100 << 20,
            text_bytes: 32 << 20,
            unpacked_bytes: 512 << 20,
            pages: 5_000,
            tesseract: None,
        }
    }
}

impl Limits {
    /// Checks the size of a document.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::TooLarge`].
    pub fn check_input(&self, bytes: usize) -> Result<(), Error> {
        match bytes {
            0 => Err(Error::Empty),
            bytes if bytes > self.input_bytes => {
                Err(Error::TooLarge { bytes, most: self.input_bytes })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_text(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.text_bytes {
            return Err(Error::TooLarge { bytes, most: self.text_bytes });
        }
        Ok(())
    }

    /// Checks the unpacked size of a document of `packed` bytes.
    pub(crate) fn check_unpacked(&self, packed: usize, unpacked: u64) -> Result<(), Error> {
        let unpacked = usize::try_from(unpacked).unwrap_or(usize::MAX);
        let swollen = unpacked > RATIO_FROM && unpacked / RATIO > packed;
        if unpacked > self.unpacked_bytes || swollen {
            return Err(Error::Bomb { most: self.unpacked_bytes, ratio: RATIO });
        }
        Ok(())
    }

    pub(crate) fn check_pages(&self, pages: usize) -> Result<(), Error> {
        if pages > self.pages {
            return Err(Error::TooManyPages { pages, most: self.pages });
        }
        Ok(())
    }
}
