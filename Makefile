# The two commands of a newcomer are `make demo` and `make check`. Every target first installs what the machine lacks.
BUILD ?= build
JOBS := $(shell nproc)

.PHONY: build demo check format format-check setup clean

build: setup
	@cmake --preset release -B $(BUILD) --log-level=WARNING
	@cmake --build $(BUILD) --parallel $(JOBS)

# Builds the command alone, without the tests.
demo: setup
	@cmake --preset release -B $(BUILD) --log-level=WARNING
	@cmake --build $(BUILD) --parallel $(JOBS) --target flashback_command flashback_emulator
	@examples/demo $(BUILD)/flashback

# Everything, from a clean build. ctest comes last, so that the run closes on its count.
check: setup format-check
	@cmake --preset release --fresh -B $(BUILD) --log-level=WARNING
	@cmake --build $(BUILD) --clean-first --parallel $(JOBS)
	@examples/demo $(BUILD)/flashback
	@ctest --test-dir $(BUILD) --output-on-failure --no-tests=error --parallel $(JOBS)

format: setup
	@tools/format

format-check: setup
	@tools/format --check

setup:
	@tools/setup

# The toolchain stays: it takes a network to bring it back.
clean:
	@if [ -f $(BUILD)/build.ninja ]; then cmake --build $(BUILD) --target clean; fi
