//! Charts: figures in, `Drawing` out. One file a kind.

pub(crate) mod axis;
pub(crate) mod bar;
pub(crate) mod heat;
pub(crate) mod time;
