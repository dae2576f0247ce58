# The two commands of a newcomer are `make demo` and `make check`. Every target first installs what the machine lacks.
BUILD ?= build
JOBS := $(shell nproc)

.PHONY: build demo check check-torch docs format format-check setup clean

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

# The tests of the Python package with torch from PyPI (3 GB) in build/torch, on the emulator. TORCH names another version.
TORCH ?= torch==2.15.0
check-torch: build
	@python3 -m venv $(BUILD)/torch
	@$(BUILD)/torch/bin/pip install --quiet --disable-pip-version-check '$(TORCH)' numpy ml_dtypes
	@cmake -B $(BUILD) --log-level=WARNING -DFLASHBACK_TORCH_PYTHON=$(abspath $(BUILD))/torch/bin/python
	@ctest --test-dir $(BUILD) --output-on-failure --no-tests=error --tests-regex '^python/'

# The API reference, in build/docs/html.
docs: setup
	@mkdir -p $(BUILD)/docs
	@FLASHBACK_DOCS=$(BUILD)/docs doxygen docs/Doxyfile

format: setup
	@tools/format

format-check: setup
	@tools/format --check

setup:
	@tools/setup

# The toolchain stays: it takes a network to bring it back.
clean:
	@if [ -f $(BUILD)/build.ninja ]; then cmake --build $(BUILD) --target clean; fi
