//! Compressed bodies of answers over HTTP.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Undoes the encodings of a header `content-encoding`, and those that a text has without being named; returns at most
/// `most` bytes and whether there were more.
///
/// An interrupted body returns the received part, and one with a wrong encoding stays unchanged. A body whose media
/// type is that of a compressed file stays one.
pub fn unpacked(mut bytes: Vec<u8>, encodings: &str, media: &str, most: usize) -> (Vec<u8>, bool) {
    let is_file = ["zip", "zstd", "tar", "octet-stream"].iter().any(|kind| media.contains(kind));
    let mut is_cut = false;
    // The last one was applied last.
    let mut named = encodings.rsplit(',').map(|name| name.trim().to_ascii_lowercase());
    // Some bytes unpack to themselves.
    let mut guesses = if is_file { 0..0 } else { 0..2 };
    while let Some(encoding) = named.next().or_else(|| guesses.next().and_then(|_| unnamed(&bytes)))
    {
        let packed = bytes.as_slice();
        let read = match encoding.as_str() {
            "gzip" | "x-gzip" => read(MultiGzDecoder::new(packed), most),
            // The standard means zlib's format, and some send the stream without it.
            "deflate" if matches!(packed.first(), Some(b'{' | b'[')) => None,
            "deflate" => read(ZlibDecoder::new(packed), most)
                .or_else(|| read(DeflateDecoder::new(packed), most)),
            "br" => read(brotli_decompressor::Decompressor::new(packed, 4096), most),
            "zstd" => zstd::stream::read::Decoder::new(packed).ok().and_then(|it| read(it, most)),
            _ => None,
        };
        if let Some((unpacked, is_more)) = read {
            bytes = unpacked;
            is_cut |= is_more;
        }
    }
    (bytes, is_cut)
}

/// Returns the encoding that bytes begin like.
fn unnamed(bytes: &[u8]) -> Option<String> {
    let magic: [(&[u8], &str); 2] =
        [(&[0x1F, 0x8B, 8], "gzip"), (&[0x28, 0xB5, 0x2F, 0xFD], "zstd")];
    magic.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, name)| (*name).to_owned())
}

/// Reads to the end, the limit or the first error; `None` if it is unreadable.
fn read(source: impl Read, most: usize) -> Option<(Vec<u8>, bool)> {
    let mut unpacked = Vec::new();
    let ended = source.take(most as u64 + 1).read_to_end(&mut unpacked);
    if unpacked.is_empty() && ended.is_err() {
        return None;
    }
    let is_more = unpacked.len() > most || ended.is_err();
    unpacked.truncate(most);
    Some((unpacked, is_more))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;

    use super::*;

    #[test]
    fn compressed_bodies_are_unpacked_within_the_limit() {
        let text = b"{\"a\": 1}".repeat(100);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&text).unwrap();
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(&text).unwrap();
        let zstd = zstd::bulk::compress(&text, 1).unwrap();
        let twice = {
            let mut again = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
            again.write_all(&gzip).unwrap();
            again.finish().unwrap()
        };
        for (encoding, packed) in [
            ("gzip", gzip.clone()),
            ("X-GZIP", gzip.clone()),
            ("deflate", text.clone()),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("zstd", zstd.clone()),
            ("gzip, gzip", twice.clone()),
            ("identity", text.clone()),
            ("", text.clone()),
            ("gzip", text.clone()),
            // Encodings that no header names.
            ("", gzip.clone()),
            ("identity", zstd),
            ("gzip", twice),
        ] {
            let (unpacked, is_cut) = unpacked(packed, encoding, "application/json", 10_000);
            assert_eq!((unpacked == text, is_cut), (true, false), "{encoding}");
        }
        let (short, is_cut) = unpacked(gzip.clone(), "gzip", "", 10);
        assert_eq!((short.as_slice(), is_cut), (&text[..10], true));
        let half = gzip.get(..gzip.len() - 9).unwrap().to_vec();
        assert!(unpacked(half, "gzip", "", 10_000).1);
        for media in ["application/gzip", "application/x-tar"] {
            assert_eq!(unpacked(gzip.clone(), "", media, 10_000), (gzip.clone(), false));
        }
        let false_start = b"\x1f\x8b\x08 no gzip".to_vec();
        assert_eq!(unpacked(false_start.clone(), "", "text/plain", 100), (false_start, false));
        // "hello" by another program.
        let brotli = [0x0b, 0x02, 0x80, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x03];
        assert_eq!(unpacked(brotli.to_vec(), "br", "", 100).0, b"hello");
    }
}
