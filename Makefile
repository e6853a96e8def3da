# All tasks of this repository. `make` without a target lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# The package manager's build system: native or swiftbuild, as in make test BUILD_SYSTEM=swiftbuild. Swift 6.4 itself
# chooses swiftbuild, with which some tests cannot be run (.ci/run-tests).
BUILD_SYSTEM ?= native
export BUILD_SYSTEM

# The same flags for every debug build, so that linting, testing and the lab share one build.
FLAGS := --build-system $(BUILD_SYSTEM) -Xswiftc -warnings-as-errors
# Builds a program of the benchmarks' package in the folder of this one, so that Nigh is compiled once. The list of what is
# built there must not be taken for that of this package.
measured = swift build --package-path Benchmarks --scratch-path .build $(FLAGS) -c release \
    --disable-build-manifest-caching --product $(1); status=$$?; rm -f .build/release.yaml; exit $$status
# A package of its own, which uses nothing of Nigh.
MUTANTS := --package-path Tests/Mutants --scratch-path .build/mutants/tool $(FLAGS)
SOURCES := Package.swift Sources Tests Benchmarks Examples Compatibility

# For one run: make test TEST_ARGUMENTS="--filter Identity"; make play ARGUMENTS="..."
TEST_ARGUMENTS ?=
PREFIX ?= /usr/local
ARGUMENTS ?=
SEEDS ?= 100

# Where the package manager puts programs, asked once and only where a task needs it.
DEBUG = $(eval DEBUG := $(shell .ci/built debug))$(DEBUG)
RELEASE = $(eval RELEASE := $(shell .ci/built release))$(RELEASE)

.PHONY: help
help: ## List what can be made
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

.PHONY: setup
setup: ## Check the Swift toolchain, install the Debian packages that are missing
	@.ci/setup

.PHONY: setup-test
setup-test: setup-docs
	@.ci/setup .ci/packages-test

.PHONY: bluetooth-lab
bluetooth-lab: setup-test ## Build the Bluetooth lab's kernel and fetch its foreign stack, where they are not there yet
	@nice -n 19 Tests/Lab/bluetooth/machine --build
	@Tests/Lab/bluetooth/foreign/setup >/dev/null

.PHONY: build
build: setup ## Build everything, the tests too
	swift build --build-tests $(FLAGS)

# Four groups of tests run at once: those that need only a processor; the lab's networks; programs; sockets, terminals and
# the rest. Most of the last three wait for most of their time. In each group only a limited number of tests runs at once.
# The tests of the mutation tool follow when one of these groups has ended. They are in a package of their own, so
# TEST_ARGUMENTS does not choose among them.
# A group whose output would mix with another's shows it once it is complete. EVENTS=FILE writes what the test runner
# reports to FILE-units.jsonl and so on.
#
# Machines with emulated Bluetooth take minutes, and need the processors to themselves, or their daemons and kernels run out
# of time. So they are tests of their own, `make test-bluetooth`.
UNIT_TESTS := '^(Actors|Arguments|Broker|Calls|Channels|Core|Forwarding|FourInARow|Fuzz|Groups|Introductions|Measuring|Memory|Record|Relays|TestKit)Tests[.]'
PROGRAM_TESTS := '^NighProgramTests[.]'
LAB_TESTS := '^LabTests[.]'
MACHINE_TESTS := '^LabTests[.]Bluetooth'
GAME_TESTS := '^LabTests[.]BluetoothGameTests'
# An absolute path, because the tests of a package of its own run in its folder.
events = $(if $(EVENTS),--event-stream-output-path $(abspath $(EVENTS)-$(1).jsonl))
# Runs the program that `make build` has made, so many tests at once. A toolchain before 6.3 does not know the variable,
# and runs all tests of a group at once.
built_tests = SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$(1) .ci/run-tests $(TEST_ARGUMENTS)
# Shows the output of a command once it is complete.
at_its_end = >.build/$(1).log 2>&1; status=$$?; cat .build/$(1).log; exit $$status

.PHONY: test
ifneq ($(findstring --filter,$(TEST_ARGUMENTS)),)
test: setup-test build
	$(call built_tests,4)
else
test: setup-test build ## Run the tests; TEST_ARGUMENTS="--filter NAME" runs some
	@$(MAKE) --no-print-directory --jobs=4 test-programs test-labs test-others test-units test-mutants
	@echo 'Not run: what needs a release build (make test-release), Bluetooth on emulated machines (make test-bluetooth),'
	@echo 'and the Debian packages (make test-deb). make test-all runs everything.'
endif

.PHONY: test-all
test-all: ## Run everything: lint, all tests, Bluetooth, what needs a release build, and the Debian packages
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-bluetooth
	@$(MAKE) --no-print-directory test-release
	@$(MAKE) --no-print-directory test-deb

.PHONY: test-programs
test-programs:
	$(call built_tests,10) --filter $(PROGRAM_TESTS) $(call events,programs)

.PHONY: test-labs
test-labs:
	@$(call built_tests,8) --filter $(LAB_TESTS) --skip $(MACHINE_TESTS) $(call events,labs) $(call at_its_end,labs)

.PHONY: test-others
test-others:
	@$(call built_tests,4) --skip $(UNIT_TESTS) --skip $(PROGRAM_TESTS) --skip $(LAB_TESTS) $(call events,others) \
	    $(call at_its_end,others)

.PHONY: test-units
test-units:
	@$(call built_tests,4) --filter $(UNIT_TESTS) $(call events,units) $(call at_its_end,units)

.PHONY: test-mutants
test-mutants:
	@mkdir -p .build
	@swift test $(MUTANTS) --disable-xctest $(call events,mutants) $(call at_its_end,mutants)

.PHONY: test-bluetooth
test-bluetooth: build bluetooth-lab ## Test Bluetooth on machines with a kernel of their own and emulated controllers
	$(call built_tests,5) --filter $(MACHINE_TESTS) $(call events,machines)
	@.ci/changed bluetooth --record

.PHONY: test-bluetooth-game
test-bluetooth-game: build bluetooth-lab
	$(call built_tests,5) --filter $(GAME_TESTS) $(call events,machines)

.PHONY: test-release
test-release: ## Check what only a release build shows: many simulated worlds, the game's bot, and the costs of common paths
	@$(MAKE) --no-print-directory soak SEEDS=1000
	@$(MAKE) --no-print-directory allocations
	@$(MAKE) --no-print-directory check-bot
	@$(MAKE) --no-print-directory counts

.PHONY: play
play: setup ## Play Four in a Row against the machine, found by mDNS and joined over TCP; ARGUMENTS="host" and the like start the game as you want it
	swift build $(FLAGS) -c release --product fourinarow
	@.ci/play $(RELEASE)/fourinarow $(ARGUMENTS)

.PHONY: nigh
nigh: setup ## See what a link is doing: ARGUMENTS="doctor", ARGUMENTS="--help" and so on
	@swift build $(FLAGS) -c release --product nigh >&2
	@$(RELEASE)/nigh $(ARGUMENTS)

# The installed programs find the toolchain's libraries in the place where they were built against them.
INSTALLED := nigh:1 fourinarow:6
SHARE = $(DESTDIR)$(PREFIX)/share

# The guides are for `nigh help`, the pages that `make docs` has built for `nigh help --open`.
GUIDES = docs/guides/*.md docs/reference/glossary.md

.PHONY: install
install: setup ## Install nigh and fourinarow, with manual pages, completions and guides; PREFIX=~/.local says where
	set -eo pipefail; for entry in $(INSTALLED); do \
	    name=$${entry%:*}; section=$${entry#*:}; built=$(RELEASE)/$$name; \
	    swift build $(FLAGS) -c release --product $$name; \
	    install -D $$built $(DESTDIR)$(PREFIX)/bin/$$name; \
	    $$built manual | install -D -m 644 /dev/stdin $(SHARE)/man/man$$section/$$name.$$section; \
	    $$built completion bash | install -D -m 644 /dev/stdin $(SHARE)/bash-completion/completions/$$name; \
	    $$built completion zsh | install -D -m 644 /dev/stdin $(SHARE)/zsh/site-functions/_$$name; \
	    $$built completion fish | install -D -m 644 /dev/stdin $(SHARE)/fish/vendor_completions.d/$$name.fish; \
	done
	set -eo pipefail; for page in $$($(RELEASE)/nigh manual --list); do \
	    $(RELEASE)/nigh manual $$page | install -D -m 644 /dev/stdin $(SHARE)/man/man1/nigh-$$page.1; \
	done
	set -e; for guide in $(GUIDES); do install -D -m 644 $$guide $(SHARE)/doc/nigh/$${guide#docs/}; done
	if [[ -e .build/docs/index.html ]]; then rm -rf $(SHARE)/doc/nigh/html; cp -r .build/docs $(SHARE)/doc/nigh/html; fi

.PHONY: docs
docs: setup-docs ## Build the documentation as a site in .build/docs, with search and the reference of all modules
	swift build $(FLAGS)
	@docs/site/build --built $(DEBUG)

.PHONY: setup-docs
setup-docs: setup
	@.ci/setup .ci/packages-docs

.PHONY: pictures
pictures: setup-test bluetooth-lab ## Make the moving pictures of the docs anew, from real programs in a terminal
	swift build $(FLAGS) -c release --product nigh
	swift build $(FLAGS) -c release --product fourinarow
	@docs/guides/pictures/record $(RELEASE)
	@set -e; for name in send game ssh; do \
	    Tests/Lab/bluetooth/machine --discoverable --time-limit 300 --writable docs/guides/pictures -- \
	        docs/guides/pictures/record $(RELEASE) $$name; \
	done

.PHONY: setup-deb
setup-deb: setup-docs
	@.ci/setup .ci/packages-deb

.PHONY: deb
deb: setup-deb ## Build Debian packages in .build/deb/packages, and check them with lintian
	@.ci/deb

.PHONY: test-deb
test-deb: deb ## Install the packages in a fresh Debian without Swift, use them and remove them
	@.ci/test-deb

.PHONY: reproducible
reproducible: setup-deb ## Build the packages in two folders, and see that they are equal byte for byte
	@.ci/reproducible

.PHONY: release
release: export NIGH_RELEASE := yes
release: test-deb ## Make the source archive, the packages, the site, an archive for other systems, notes and checksums in .build/deb/release, and tag the version
	@.ci/release

.PHONY: lab
lab: setup-test ## Run scenarios on real networks by name; ARGUMENTS="--list" names them
	@# Some scenarios run these two programs.
	swift build $(FLAGS) -c debug --product fourinarow
	swift build $(FLAGS) -c debug --product nigh
	swift run $(FLAGS) -c debug lab $(ARGUMENTS)

.PHONY: nats-cluster
nats-cluster: setup-test ## Start a cluster of three nats-servers and two more hosts in the lab, with a shell to try sessions over it
	swift build $(FLAGS) -c debug --product fourinarow
	swift build $(FLAGS) -c debug --product nigh
	swift run $(FLAGS) -c debug lab --quiet --keep nats-cluster

# It reads what was built, and uses Python, which the tests need as well.
.PHONY: lint
lint: setup-test ## Check style, Core's floors, that nothing compiles with a warning, that the public interface is written down and described, and that the docs are true
	swift format lint --strict --recursive $(SOURCES)
	@LC_ALL=C.UTF-8 grep --recursive --line-number --perl-regexp --include='*.swift' --exclude-dir=.build \
	    '^(?=\s*//(?!/ \|)).{121}' $(SOURCES); \
	    [ $$? = 1 ] || { echo 'These comments are wider than 120 columns.' >&2; false; }
	@grep --recursive --line-number --perl-regexp --include='*.swift' --exclude-dir=.build \
	    '^\s*///? (What|Who|Whom|Whose|The same)\b' $(SOURCES); \
	    [ $$? = 1 ] || { echo 'These comments begin with a riddle: name the thing.' >&2; false; }
	@.ci/floors
	@.ci/plan
	swift build --build-tests $(FLAGS)
	@.ci/api check
	@.ci/documented
	@docs/site/check --built $(DEBUG)

.PHONY: format
format: ## Rewrite the sources in the style that lint asks for
	swift format --in-place --recursive $(SOURCES)

.PHONY: api
api: setup-test build ## Write down the public interface anew, and its fingerprint, after a change (docs/reference/stability.md)
	@.ci/api write

.PHONY: check-api
check-api: setup-test build ## Check that the public interface is the one written down in docs/reference/api
	@.ci/api check

# `swift` may be a link to something else, so this asks the toolchain for its location.
TOOLCHAIN = $(shell swift -print-target-info | sed -n 's/.*"runtimeResourcePath": "\(.*\)\/lib\/swift".*/\1/p')

.PHONY: coverage
coverage: setup-test bluetooth-lab ## Run every test and show what each source file has covered
	swift test --disable-xctest --enable-code-coverage --scratch-path .build/coverage $(FLAGS)
	built=$$(swift build --scratch-path .build/coverage $(FLAGS) --show-bin-path); \
	$(TOOLCHAIN)/bin/llvm-cov report $$built/NighPackageTests.xctest \
	    --instr-profile $$built/codecov/default.profdata \
	    --show-region-summary=false --show-branch-summary=false Sources

.PHONY: sanitize
sanitize: setup-test bluetooth-lab ## Run every test under the address sanitizer, then under the thread sanitizer
	@# Tests drop whole networks in the middle of their work, so only make fuzz looks for leaks.
	ASAN_OPTIONS=detect_leaks=0 swift test --disable-xctest --sanitize=address --scratch-path .build/address $(FLAGS)
	swift test --disable-xctest --sanitize=thread --scratch-path .build/thread $(FLAGS)

.PHONY: bench
bench: setup ## Measure sessions against other libraries; ARGUMENTS="--help" tells how
	@.ci/setup .ci/packages-bench
	$(MAKE) --no-print-directory --silent -C Benchmarks OUT=$(CURDIR)/.build/bench
	$(call measured,bench-session)
	swift build $(FLAGS) -c release --product nigh
	swift run $(FLAGS) -c release bench $(ARGUMENTS)

.PHONY: bench-bluetooth
bench-bluetooth: setup-test bluetooth-lab ## Measure sessions over Bluetooth against bare sockets, in the lab; ARGUMENTS="--help" tells how
	$(MAKE) --no-print-directory --silent -C Benchmarks OUT=$(CURDIR)/.build/bench $(CURDIR)/.build/bench/peer-rfcomm
	$(call measured,bench-session)
	swift build $(FLAGS) -c release --product bench
	@mkdir -p .build/bench/bluetooth
	Tests/Lab/bluetooth/machine --discoverable --time-limit 3600 --writable .build/bench/bluetooth -- \
	    $(RELEASE)/bench --bluetooth --results .build/bench/bluetooth $(ARGUMENTS)

.PHONY: bench-slow-reader
bench-slow-reader: setup ## Measure the memory of Nigh, ZeroMQ and NNG beside a reader that sleeps, and draw it for the guide
	@.ci/setup .ci/packages-bench
	$(MAKE) --no-print-directory --silent -C Benchmarks OUT=$(CURDIR)/.build/bench slow-reader
	$(call measured,bench-slow-reader)
	@Benchmarks/SlowReader/measure --programs $(RELEASE) $(ARGUMENTS)

.PHONY: bench-memory
bench-memory: setup ## Measure sessions over memory; ARGUMENTS="--help" tells how
	swift run $(FLAGS) -c release nigh-bench $(ARGUMENTS)

.PHONY: allocations
allocations: setup ## Count what the hot path takes from the heap; fails where it takes too much
	swift run $(FLAGS) -c release nigh-bench --allocations

.PHONY: counts
counts: setup-test ## Count the instructions and allocations of common paths; fails where one has grown by more than 3 %
	swift build $(FLAGS) -c release --product nigh-bench
	@.ci/counts check --program $(RELEASE)/nigh-bench

.PHONY: counts-write
counts-write: setup-test ## Count three times and write Benchmarks/counts anew, which acknowledges what has grown
	swift build $(FLAGS) -c release --product nigh-bench
	@.ci/counts write --program $(RELEASE)/nigh-bench

.PHONY: bench-crowd
bench-crowd: setup ## Measure one session with up to 10,000 peers over TCP; ARGUMENTS="--help" tells how
	@swift build $(FLAGS) -c release --product bench-crowd
	@$(RELEASE)/bench-crowd $(ARGUMENTS)

.PHONY: check-bot
check-bot: setup ## Compare the game's board and bot with simple reference versions
	swift run $(FLAGS) -c release fourinarow-solver check

.PHONY: soak
soak: setup ## Run simulated worlds full of faults, SEEDS=n of them
	swift run $(FLAGS) -c release soak --seeds $(SEEDS) $(ARGUMENTS)
	swift run $(FLAGS) -c release soak --meshes --seeds $$(($(SEEDS) / 5 + 1)) $(ARGUMENTS)

.PHONY: mutants
mutants: setup ## Change Core's machines in small places, one at a time, and see that tests or worlds notice; ARGUMENTS="--help" tells how
	swift run $(MUTANTS) -c debug mutants $(ARGUMENTS)

# libFuzzer brings a main of its own, so the program leaves its out (-DFUZZER). The compiler heeds only the last option
# for sanitizers, and the package manager passes two of them in any order: so it gets one, and the compiler both. lld is
# not to drop the counters of what is covered, to which nothing refers.
FUZZER := --build-system native -c release --sanitize=fuzzer --scratch-path .build/fuzz \
    -Xswiftc -sanitize=fuzzer,address -Xswiftc -DFUZZER -Xswiftc -use-ld=lld -Xlinker -z -Xlinker nostart-stop-gc
MINUTES ?= 10
TARGET ?=

.PHONY: fuzz
fuzz: setup ## Let libFuzzer look for inputs that break a promise, under the address sanitizer; MINUTES=10 for all targets together, TARGET=name for one
	swift build $(FUZZER) --product fuzz
	@.ci/fuzz "$$(swift build $(FUZZER) --show-bin-path)/fuzz" $(MINUTES) $(TARGET)

.PHONY: clean
clean: ## Remove all that was built
	rm -rf .build
