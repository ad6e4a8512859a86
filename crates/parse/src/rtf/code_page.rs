//! Code pages as RTF names them: by number, and by the character set of a font.

use encoding_rs::Encoding;

pub(super) fn of_number(number: i32) -> Option<&'static Encoding> {
    let windows = format!("windows-{number}");
    let name = match number {
        932 | 10001 => "shift_jis",
        936 | 10008 => "gbk",
        949 | 10003 => "euc-kr",
        950 | 10002 => "big5",
        866 => "ibm866",
        10000 => "macintosh",
        10007 | 10017 => "x-mac-cyrillic",
        65001 => "utf-8",
        _ => &windows,
    };
    Encoding::for_label(name.as_bytes())
}

/// `None` for the sets that leave it to the document.
pub(super) fn of_charset(number: i32) -> Option<&'static Encoding> {
    of_number(match number {
        77 => 10000,
        78 | 128 => 932,
        79 | 129 => 949,
        80 | 134 => 936,
        81 | 136 => 950,
        89 => 10007,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    })
}
