"""Targets for a coverage-guided fuzzer: `make fuzz` runs them, and tests/test_fuzz.py what was worth keeping."""
