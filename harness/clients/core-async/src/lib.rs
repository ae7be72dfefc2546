//! (see README.md)
