# SPDX-License-Identifier: Apache-2.0
# Two commands do everything on a fresh Debian 12: `make demo` and `make test`.
# The build itself is meson's; this file only names the usual ways through it.
PREFIX       = /usr/local
SOAK         = 10000
RUNS         = 100000
FAULTS       = 2000
FUZZ_SECONDS = 60
COUNT        = 10000000
SEED         = 1
BENCH        =
GAINS        =
.PHONY: all programs setup setup-programs build build-asan build-switches build-fuzz build-cross demo test lint tidy-deep bench gains soak javascript-corpus pool-soak serve-load proxy-load faults fuzz slots-asan audit-kill workspace-kill workspace-races vm-test expr-diff monitor-quality monitor-mutants expr-mutants messages install uninstall abi deb deb-test costs official official-models clean help

all: programs		## the programs: build/cordon, build/cordon-nest

setup:			## install the Debian packages that are missing (root or sudo), and the parsers of JavaScript
	@scripts/setup
	@scripts/judge-parts

setup-programs:		## only those that the programs need, not what tests and benches do
	@scripts/setup --programs

# What is installed, and nothing that only tests and benches need: a third of the whole build is theirs.
programs: setup-programs	## what `make install` installs, into build/
	@scripts/build build programs

demo: programs		## a tour: model-written programs in the jail, good and bad
	@demo/run build/cordon

# Every test in the product; what is ours alone again under the sanitizers, compiled by clang; each
# layer off in turn in the one build that has the switches. What cannot run here is compiled at least:
# all of it for the other architecture.
test: build build-asan build-switches build-cross	## every test; ends with `N passed, N failed, N skipped`
	@tests/run build build-asan:unit,fuzz build-asan:expr,sanitized build-switches:live

lint: build build-cross	## house rules, clang-format, clang-tidy for both architectures
	@tests/run build:lint

tidy-deep: build build-cross	## clang-tidy to its analyzer's own bound, which takes several times as long as `make lint`
	@/usr/bin/python3 tests/lint/tidy.py . build build-$(if $(filter x86_64,$(shell uname -m)),aarch64,x86_64) deep

bench: build		## what it costs beside its peers (BENCH="exec --rounds 50"; BENCH_STRICT=1)
	@bench/run build $(BENCH)

official: build		## the official inspector and clients of MCP at cordon serve, and the types of the Node library; installs them from npm
	@scripts/conformance $(CURDIR) official
	@/usr/bin/python3 tests/system/official.py build $(CURDIR)

official-models: build	## the official libraries of OpenAI and Anthropic at cordon proxy; installs them from npm
	@scripts/conformance $(CURDIR) official-models
	@/usr/bin/python3 tests/system/official_models.py build $(CURDIR)

messages:		## every message of the program, to be read in one go
	@scripts/messages

gains: build		## what each thing that is done for speed alone gains (GAINS="--alone EARLY")
	@bench/gains build $(GAINS)

costs: programs		## what a start costs, beside those of the others that are installed here, as a table
	@bench/costs build

soak: build		## SOAK=10000 runs, two at a time, a third of them killed: nothing may be left
	@/usr/bin/python3 tests/system/soak.py build $(SOAK)

javascript-corpus: build	## every collected JavaScript program in each profile
	@/usr/bin/python3 tests/system/javascript.py build all

pool-soak: build	## RUNS=100000 warm runs by two clients: no leak anywhere; prints p99
	@/usr/bin/python3 tests/system/pool_soak.py build $(RUNS)

# SEED only where somebody gave one: a campaign is to be a new one, and prints what repeats it.
SERVE_CLIENTS = 200
SERVE_RUNS    = 10000
PROXY_STREAMS = 1000
serve-load: build	## SERVE_RUNS=10000 runs of SERVE_CLIENTS=200 clients of cordon serve, some of them bad, with kills: none lost, none twice; prints p99 (SEED=)
	@$(if $(filter-out file,$(origin SEED)),SEED=$(SEED)) /usr/bin/python3 tests/system/serve_load.py build $(SERVE_CLIENTS) $(SERVE_RUNS)

proxy-load: build	## PROXY_STREAMS=1000 streams at once through cordon proxy, five times: every answer whole, memory flat
	@/usr/bin/python3 tests/system/proxy.py build $(PROXY_STREAMS)

faults: build		## FAULTS=2000 faults at random instants: Cordon stays alive and tells the truth (SEED= repeats one)
	@/usr/bin/python3 tests/system/faults.py build --count $(FAULTS) $(if $(filter-out file,$(origin SEED)),--seed $(SEED))

fuzz: build-fuzz	## each fuzz target for FUZZ_SECONDS=60; finds go to build-fuzz/
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS)

# The first time it fetches Debian's source of python3.11 and builds it: docs/stale-memory.md. Of the sanitized build it needs the guards alone.
SLOTS_ROUNDS = 200
slots-asan: setup	## C types whose methods call back into code that changes them, under AddressSanitizer (SLOTS_ROUNDS=, SLOTS_SHARD=1/2: a part)
	@CC=clang scripts/build build-asan tests/python/guard_tool $(sanitize)
	@$(if $(SLOTS_SHARD),SLOTS_SHARD=$(SLOTS_SHARD)) scripts/slots-asan build-asan build-slots $(SLOTS_ROUNDS)

KILLS        = 1000
audit-kill: build	## writers of the audit killed KILLS=1000 times at random instants: nothing acknowledged is lost
	@build/tests/audit/audit_kill $(KILLS) 3

WORKSPACE_KILLS = 500
WORKSPACE_RACES = 10000
workspace-kill: build	## commits of a workspace, and runs that commit, killed WORKSPACE_KILLS=500 times at random instants: the head is the old state or the new one
	@/usr/bin/python3 tests/system/workspace.py build $(WORKSPACE_KILLS)
	@/usr/bin/python3 tests/system/workspace_runs.py build $(WORKSPACE_KILLS)

workspace-races: build	## names that change kind while a workspace is read and a session filled, WORKSPACE_RACES=10000 rounds each
	@build/src/jail/test_fill $(WORKSPACE_RACES)
	@/usr/bin/python3 tests/system/workspace_races.py build $(WORKSPACE_RACES)

# COUNT programs, half in each of two processes, against the installed CPython: docs/expr.md.
expr-diff: build	## expressions by the million, compared with CPython (COUNT=, SEED=)
	@nice -n 10 /usr/bin/python3 tests/expr/forms.py build --long
	@nice -n 10 /usr/bin/python3 tests/expr/hostile.py build --rounds $$(($(COUNT) / 500 + 100)) --seed $(SEED)
	@nice -n 10 /usr/bin/python3 tests/expr/diff.py build/tests/expr/expr_diff --count $$(($(COUNT) / 2)) --seed $(SEED)1 & \
	 first=$$!; \
	 nice -n 10 /usr/bin/python3 tests/expr/diff.py build/tests/expr/expr_diff --count $$(($(COUNT) - $(COUNT) / 2)) --seed $(SEED)2; \
	 second=$$?; wait $$first && test $$second = 0

SEGMENTS = 100000
LOOPS    = 1000
monitor-quality: build	## SEGMENTS=100000 texts that are no loops and LOOPS=1000 of each kind that are (SEED=)
	@build/src/monitor/test_quality --segments $(SEGMENTS) --loops $(LOOPS) --seed $(SEED)

monitor-mutants: build	## whether the tests of the monitor can fail: one detector or signal taken out at a time
	@/usr/bin/python3 tests/monitor/mutants.py . build

expr-mutants: build	## whether the expression tests can fail: one thing broken at a time
	@/usr/bin/python3 tests/expr/mutants.py build .

# cordon finds cordon-nest from where it stands itself, so nothing is compiled anew for a prefix.
install: programs	## to PREFIX=/usr/local below DESTDIR
	@scripts/install build "$(PREFIX)" "$(DESTDIR)"

uninstall:		## what `make install` put in place, folders that it made included
	@scripts/install --remove build

abi: programs		## write down what the interface of libcordon gained; refused where its soname must move
	@/usr/bin/python3 tests/abi/abi.py build/src/client/libcordon.so.0 include --write

deb:			## the Debian packages, into build-deb/; lintian must find no error
	@scripts/deb

deb-test: deb		## installed, used and removed in a clean Debian root (root)
	@/usr/bin/python3 tests/deb/try.py build-deb

clean:			## every build folder
	rm -rf build build-ccache build-deb build-asan build-switches build-fuzz build-x86_64 build-aarch64 build-slots build-without build-switches-* build-vm-* build-conformance build-official build-official-models

help:			## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

# One rule for every build folder; how each is configured is below.
build build-asan build-switches build-fuzz: setup
	@CC=$(compiler) scripts/build $@ all $(flags)

# Into build-x86_64 or build-aarch64, whichever this machine is not; warnings are errors there too.
build-cross: setup	## everything compiled for the other architecture, and linked
	@tests/vm/run --build

compiler                  = gcc
sanitize                  = -Db_sanitize=address,undefined -Db_lundef=false
build-asan build-fuzz:      compiler = clang
build-asan:                 flags = $(sanitize)
build-fuzz:                 flags = $(sanitize) -Dfuzz=true
build-switches:             flags = -Dlayer_switches=true

# ---- the same tests under Debian 12's own kernel, in QEMU: docs/testing.md ----
ARCH = $(shell uname -m)
SUITES =

# `make vm-test ARCH=x86_64` builds for and boots the other machine, SUITES=checks,limits runs only those, PART=2/6 the second of six parts: docs/testing.md.
vm-test: setup		## the same tests under Debian 12's own kernel, in QEMU (ARCH=, SUITES=, PART=)
	@nice -n 10 tests/vm/run --arch $(ARCH) $(if $(SUITES),--suites $(SUITES)) $(if $(PART),--part $(PART))
