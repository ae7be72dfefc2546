//! Statuses, and the answers that are nothing but a status. Pure.

/// The kinds of responses whose text is their status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    BadRequest,
    NotFound,
    NotAllowed,
    Timeout,
    BodyTooLarge,
    ExpectationFailed,
    HeadTooLarge,
    ServerError,
    NotImplemented,
}

impl Kind {
    /// All of them, in the order of the variants.
    pub const ALL: [Self; 9] = [
        Self::BadRequest,
        Self::NotFound,
        Self::NotAllowed,
        Self::Timeout,
        Self::BodyTooLarge,
        Self::ExpectationFailed,
        Self::HeadTooLarge,
        Self::ServerError,
        Self::NotImplemented,
    ];

    /// Its status code.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::NotFound => 404,
            Self::NotAllowed => 405,
            Self::Timeout => 408,
            Self::BodyTooLarge => 413,
            Self::ExpectationFailed => 417,
            Self::HeadTooLarge => 431,
            Self::ServerError => 500,
            Self::NotImplemented => 501,
        }
    }
}

/// Every status that is ever answered, with its phrase.
pub const STATUSES: [(u16, &str); 14] = [
    (200, "OK"),
    (206, "Partial Content"),
    (301, "Moved Permanently"),
    (304, "Not Modified"),
    (400, "Bad Request"),
    (404, "Not Found"),
    (405, "Not Allowed"),
    (408, "Request Time-out"),
    (413, "Request Entity Too Large"),
    (416, "Requested Range Not Satisfiable"),
    (417, "Expectation Failed"),
    (431, "Request Header Fields Too Large"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
];

/// The place of a status among [`STATUSES`], and so among the counters.
pub fn index_of(status: u16) -> usize {
    // Every status that is written below stands in the list; a test asks for all of them.
    STATUSES
        .iter()
        .position(|(s, _)| *s == status)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_in_the_list() {
        for status in Kind::ALL
            .map(Kind::status)
            .into_iter()
            .chain([200, 206, 301, 304, 416])
        {
            assert_eq!(STATUSES[index_of(status)].0, status);
        }
    }
}
