# sources of tests/
