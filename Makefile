# The targets of everyday work; Meson and Ninja do the building.
BUILD ?= build

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@meson setup $(BUILD) >/dev/null

.PHONY: all
