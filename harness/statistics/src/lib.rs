//! Statistics as pure functions (see README.md).
