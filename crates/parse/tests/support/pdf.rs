//! PDF files as tests write them.

/// Says which letters the second font `/R` shows for some codes; `A` is the ligature of lam and alef.
const LETTERS: &str = "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /R def\n\
    1 begincodespacerange <00> <FF> endcodespacerange\n\
    7 beginbfchar <41> <06440627> <61> <0645> <62> <0646> <63> <0648> <64> <0630> <65> <064A> <2E> <002E> endbfchar\n\
    endcmap end end";

/// Writes a file of Ann Archer's with these content streams, one a page.
pub fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    let right = 4 + 2 * pages.len();
    for (number, content) in pages.iter().enumerate() {
        let stream = 5 + 2 * number;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R /R {right} 0 R >> >> /Contents {stream} 0 R >>"
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    objects.push(format!(
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {} 0 R >>",
        right + 1
    ));
    objects.push(format!("<< /Length {} >>\nstream\n{LETTERS}\nendstream", LETTERS.len()));
    objects.push("<< /Author (Ann Archer) >>".to_owned());
    file(&objects.into_iter().map(String::into_bytes).collect::<Vec<_>>())
}

/// Writes a file of these objects, numbered from 1: the first is the catalogue, the last the properties.
pub fn file(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", number + 1).into_bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).into_bytes());
    for place in &places {
        file.extend(format!("{place:010} 00000 n \n").into_bytes());
    }
    let trailer = format!(
        "trailer\n<< /Size {} /Root 1 0 R /Info {} 0 R >>\nstartxref\n{table}\n%%EOF\n",
        places.len() + 1,
        places.len()
    );
    file.extend(trailer.into_bytes());
    file
}
