//! Tests evaluations: the loading of suites, attempts and their results, and the shipped suites.

mod attempts;
mod baseline;
mod place;
mod reports;
mod shipped;
mod suites;
mod team;
