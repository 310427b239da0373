# The targets of everyday work; Meson and Ninja do the building, tools/ the rest.
#
#     make              build/tdbg and build/libtdbg.so (missing system packages are installed first)
#     make run          the demo: two dumps of a tiny transformer, compared here and on http://127.0.0.1:5000
#     make check        the fast inner loop              make test         everything, as CI runs it
#     make conformance  against the formats' own libraries
#     make asan | ubsan | tsan | lint | fmt | bench      make fuzz SECONDS=60
#     make install PREFIX=/usr/local
BUILD ?= build
PREFIX ?= /usr/local
SECONDS ?= 60
PYTEST = /usr/bin/python3 -m pytest -c tests/pytest.ini -q

all: deps $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

deps:
	@tools/deps.sh build

test-deps:
	@tools/deps.sh build test

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) >/dev/null

run: all
	@tools/demo.sh $(BUILD)

# A build folder that is older than what the unit tests need has none of them: it is set up anew.
check:
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) >/dev/null
	@meson test -C $(BUILD) --list 2>/dev/null | grep -q ' / ' || meson setup --reconfigure $(BUILD) >/dev/null
	@ninja -C $(BUILD) --quiet
	@$(MAKE) --no-print-directory --output-sync -j3 check-server check-unit check-cli-diff check-cli check-python

check-unit:
	@TDBG_QUICK=1 meson test -C $(BUILD) --no-rebuild --print-errorlogs --quiet

# The command line's tests are half of the time: in two, one for each core.
check-cli-diff: TESTS = $(wildcard tests/cli/test_diff*.py tests/cli/test_[a-c]*.py)
check-cli: TESTS = $(filter-out tests/cli/test_diff% tests/cli/test_a% tests/cli/test_b% tests/cli/test_c%,$(wildcard tests/cli/test_*.py))
check-server: TESTS = tests/server
check-python: TESTS = tests/python
check-cli-diff check-cli check-server check-python:
	@TDBG=$(BUILD)/tdbg $(PYTEST) -m 'not slow' $(TESTS)

test: test-deps all
	@tools/test.py

conformance:
	@tools/deps.sh build conformance
	@tools/test.py conformance

asan ubsan tsan: test-deps
	@tools/test.py $@

lint: all
	@tools/lint.py $(BUILD)

fuzz: test-deps
	@tools/fuzz.py --seconds $(SECONDS)

bench: test-deps all
	@tools/deps.sh bench
	@bench/run

fmt:
	@clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h')

install: all
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@meson install -C $(BUILD) --quiet

clean:
	@rm -rf build build-* demo

.PHONY: all deps test-deps run check check-unit check-cli-diff check-cli check-server check-python test conformance asan ubsan tsan lint fuzz bench fmt install clean
