# The targets of everyday work; Meson and Ninja do the building.
BUILD ?= build
PREFIX ?= /usr/local
PYTEST = /usr/bin/python3 -m pytest -c tests/pytest.ini -q

all: deps $(BUILD)/build.ninja
	@ninja -C $(BUILD)

deps:
	@tools/deps.sh build

$(BUILD)/build.ninja:
	@meson setup $(BUILD) >/dev/null

# The fast inner loop: no installs, no sanitizers, nothing slow.
check: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet
	@meson test -C $(BUILD) --print-errorlogs --quiet
	@if ls tests/cli/test_*.py >/dev/null 2>&1; then TDBG=$(BUILD)/tdbg $(PYTEST) -m 'not slow' tests/cli; fi

fmt:
	@clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	@rm -rf build build-* demo

.PHONY: all deps check fmt clean
