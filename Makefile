# The entry points. `make` alone lists them. One cargo profile (release) for all, so nothing is compiled twice.
.PHONY: help run build setup check unit test behaviours conformance

help:
	@echo "make run          build larder and start the demo: a slow site, larder in front, before and after"
	@echo "make build        build target/release/larder"
	@echo "make check        format, lints, tidy; it needs the Rust toolchain, a C compiler, make and git"
	@echo "make unit         unit tests, tests in memory, examples of the crates' docs; it needs no more than that"
	@echo "make behaviours   the behaviour files, spec/*/*.vtc; it installs what they start (./setup spec)"
	@echo "make conformance  the public HTTP cache test suite; it installs all that tests need"
	@echo "make test         everything: check, unit, programs, behaviour files, long runs, conformance"
	@echo "make setup        install all that tests need (./setup --help: what for which)"

run: build
	cargo run --release --quiet --package larder -- demo

build:
	cargo build --release --package larder

setup:
	@./setup all

check:
	@./setup unit
	@cargo xtask check

unit:
	@./setup unit
	@cargo xtask unit

behaviours:
	@./setup spec
	@cargo xtask behaviours

conformance: setup
	@cargo xtask conformance

test: setup
	@cargo xtask test
