//! Dates as HTTP and access logs write them. Pure.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Length of [`http`] in bytes, until the year 9999.
pub const HTTP_LENGTH: usize = 29;

/// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7) for seconds since 1970.
pub fn http(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / 86_400);
    let weekday = DAYS[(unix_s / 86_400 % 7) as usize];
    let month = MONTHS[month - 1];
    let clock = clock(unix_s);
    format!("{weekday}, {day:02} {month} {year:04} {clock} GMT")
}

/// "06/Nov/1994:08:49:37 +0000", as nginx's access log writes it.
pub fn log(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / 86_400);
    format!(
        "{day:02}/{}/{year:04}:{} +0000",
        MONTHS[month - 1],
        clock(unix_s)
    )
}

/// Seconds since 1970 of a date as [`http`] writes it; of no other form, and of none before 1970.
pub fn parse_http(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse::<u64>().ok())?
    };
    let month = MONTHS.iter().position(|m| text.get(8..11) == Some(*m))? as u64 + 1;
    let (day, year) = (number(5, 7)?, number(12, 16)?);
    // Days before the day's year began in March, and within it: the inverse of `civil`.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year.checked_sub(1)?, month + 9)
    };
    let days =
        (y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day).checked_sub(1 + 719_468)?;
    let unix_s = days * 86_400 + number(17, 19)? * 3600 + number(20, 22)? * 60 + number(23, 25)?;
    // Written again it must be the same text: that checks every other letter, and the weekday.
    (http(unix_s) == text).then_some(unix_s)
}

fn clock(unix_s: u64) -> String {
    let s = unix_s % 86_400;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// Year, month (1–12) and day of a day since 1970-01-01; the year is taken to begin in March,
/// so that the leap day is its last (Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: u64) -> (u64, usize, u64) {
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month as usize, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_seconds() {
        let table = [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), // the example of RFC 9110
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), // leap year: divisible by 400
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), // no leap day in 2100
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
        ];
        for (unix_s, want) in table {
            assert_eq!(http(unix_s), want);
            assert_eq!(http(unix_s).len(), HTTP_LENGTH);
            assert_eq!(parse_http(want.as_bytes()), Some(unix_s));
        }
        assert_eq!(log(784_111_777), "06/Nov/1994:08:49:37 +0000");
    }

    #[test]
    fn what_is_not_a_date_is_none() {
        for text in [
            "",
            "Sun, 06 Nov 1994 08:49:37",
            "Mon, 06 Nov 1994 08:49:37 GMT", // it was a Sunday
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 0000 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:3\u{e9} GM",
        ] {
            assert_eq!(parse_http(text.as_bytes()), None, "{text}");
        }
    }
}
