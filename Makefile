# The entry points. `make` alone lists them. One cargo profile (release) for all, so nothing is compiled twice.
.PHONY: help run build setup test check conformance behaviours

help:
	@echo "make run          build larder and start the demo: a slow site, larder in front, before and after"
	@echo "make build        build target/release/larder"
	@echo "make test         everything: format, lints, tidy, unit tests, behaviour files, conformance"
	@echo "make check        the quick part: format, lints, tidy"
	@echo "make behaviours   only the behaviour files, spec/*/*.vtc"
	@echo "make conformance  only the public HTTP cache test suite"
	@echo "make setup        install what the tests need"

run: build
	cargo run --release --quiet --package larder -- demo

build:
	cargo build --release --package larder

setup:
	@./setup

test: setup
	@cargo xtask test

check:
	@cargo xtask check

behaviours: setup
	@cargo xtask behaviours

conformance: setup
	@cargo xtask conformance
