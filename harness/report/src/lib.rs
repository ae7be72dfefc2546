#![doc = include_str!("../README.md")]

mod chart;
mod drawing;
mod files;
mod frame;
mod markdown;
mod marks;
mod number;
mod order;
mod page;
mod paint;
mod place;
mod scale;
#[cfg(test)]
mod tests;
mod text;
mod theme;

pub use files::{Written, write};
