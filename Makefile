# Two commands do everything on a fresh Debian 12: `make demo` and `make test`.
# The build itself is meson's; this file only names the usual ways through it.
MESON = /usr/bin/meson
.PHONY: all setup build demo test lint bench soak fuzz install clean

all: build

setup:
	@scripts/setup

build/build.ninja: | setup
	@$(MESON) setup build >/dev/null

build: setup build/build.ninja
	@ninja -C build --quiet

test: build
	@tests/run build

clean:
	rm -rf build build-*
