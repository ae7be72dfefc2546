//! The content type of a file by its extension, as in nginx's mime.types. Pure.

/// What nginx says of a file it knows nothing of.
pub const UNKNOWN: &str = "application/octet-stream";

const TYPES: &[(&str, &str)] = &[
    ("html", "text/html"),
    ("htm", "text/html"),
    ("css", "text/css"),
    ("js", "application/javascript"),
    ("mjs", "application/javascript"),
    ("json", "application/json"),
    ("xml", "text/xml"),
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("md", "text/markdown"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("ico", "image/x-icon"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("pdf", "application/pdf"),
    ("wasm", "application/wasm"),
    ("zip", "application/zip"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
];

/// The type of the file at `path`.
pub fn of(path: &[u8]) -> &'static str {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let Some(dot) = name.iter().rposition(|b| *b == b'.') else {
        return UNKNOWN;
    };
    let extension = &name[dot + 1..];
    TYPES
        .iter()
        .find(|(e, _)| extension.eq_ignore_ascii_case(e.as_bytes()))
        .map_or(UNKNOWN, |(_, media)| media)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_extension() {
        // each row: path, type
        let table = [
            ("/index.html", "text/html"),
            ("/a/LOGO.PNG", "image/png"),        // case does not matter
            ("/a.tar.json", "application/json"), // the last one counts
            ("/v1.css/data", UNKNOWN),           // a dot in a folder's name is none
            ("/Makefile", UNKNOWN),
            ("/a.", UNKNOWN),
        ];
        for (path, want) in table {
            assert_eq!(of(path.as_bytes()), want, "{path}");
        }
    }
}
