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

# ---- the expression engine: docs/expr.md ----
.PHONY: expr-diff expr-fuzz expr-bench expr-asan
COUNT = 10000000
SEED  = 1
FUZZ_SECONDS = 600

# COUNT programs, half in each of two processes, against the installed CPython.
expr-diff: build
	@nice -n 10 /usr/bin/python3 tests/expr/diff.py build/tests/expr/expr_diff --count $$(($(COUNT) / 2)) --seed $(SEED)1 & \
	 first=$$!; \
	 nice -n 10 /usr/bin/python3 tests/expr/diff.py build/tests/expr/expr_diff --count $$(($(COUNT) - $(COUNT) / 2)) --seed $(SEED)2; \
	 second=$$?; wait $$first && test $$second = 0

build-fuzz/build.ninja: | setup
	@CC=clang $(MESON) setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false >/dev/null

# FUZZ_SECONDS for each target; finds go to build-fuzz/.
expr-fuzz: setup build-fuzz/build.ninja
	@ninja -C build-fuzz --quiet
	@for t in parser loader context schema; do \
	  mkdir -p build-fuzz/corpus/$$t; \
	  echo "fuzz_expr_$$t for $(FUZZ_SECONDS) s"; \
	  nice -n 10 build-fuzz/tests/fuzz/fuzz_expr_$$t -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -timeout=20 \
	    -rss_limit_mb=3000 -verbosity=0 -print_final_stats=1 -artifact_prefix=build-fuzz/ \
	    build-fuzz/corpus/$$t tests/fuzz/expr_$$t || exit 1; \
	done

expr-bench: build
	@/usr/bin/python3 bench/expr_bench.py build/bench/expr_bench

bench: expr-bench

# The same tests under AddressSanitizer and UndefinedBehaviorSanitizer.
build-asan/build.ninja: | setup
	@$(MESON) setup build-asan -Db_sanitize=address,undefined -Db_lundef=false >/dev/null

expr-asan: setup build-asan/build.ninja
	@ninja -C build-asan --quiet
	@tests/run --suite unit --suite fuzz --suite expr build-asan

# ---- the same tests under Debian 12's own kernel, in QEMU: docs/testing.md ----
.PHONY: vm-test
ARCH = $(shell uname -m)
SUITES =

# `make vm-test ARCH=x86_64` builds for and boots the other machine; SUITES=checks,limits runs only those.
vm-test: setup
	@nice -n 10 tests/vm/run --arch $(ARCH) $(if $(SUITES),--suites $(SUITES))
