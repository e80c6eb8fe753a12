# `make help` lists the targets.

SWIFT    ?= swift
PREFIX   ?= /usr/local
DESTDIR  ?=
# Flags for every swift build of this file, such as -Xswiftc -warnings-as-errors.
SWIFTFLAGS ?=

include Packaging/release.mk
BIN := .build/release/fk
# The program of the tarball, which runs on other systems than this one. Elsewhere than on Linux it is the same as BIN.
PORTABLE := .build/portable
VERSION := $(shell sed -n 's/.*static let text = "\(.*\)".*/\1/p' Sources/FKCore/Model/Version.swift)
# The day of the release, from which packages take the times of their files.
export SOURCE_DATE_EPOCH ?= $(shell date -u -d "$$(sed -n 's/.*static let date = "\(.*\)".*/\1/p' \
  Sources/FKCore/Model/Version.swift)" +%s 2>/dev/null)

# So many tests at once and no more: 600 at once make each of them slow enough on a busy machine to meet its time limit.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 24

.PHONY: help setup build portable order demo test test-page test-threads test-addresses fuzz bench torture soak examples lint format install uninstall clean \
  deb dist test-deb test-dist test-package test-cluster docs api

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

setup: ## say what build, tests and demo need that is not here, and install it (apt or brew)
	@.ci/needs build test

demo: build ## build the release and show all of it on this machine
	$(BIN) demo $(DEMOFLAGS)

build: ## build the release: .build/release/fk
	@.ci/needs build
	@SWIFT="$(SWIFT)" Packaging/icu/build $(dir $(ICU))
	$(SWIFT) build $(RELEASE) $(LINKED) $(PACKED) $$(cat $(ICU)) $(SWIFTFLAGS) --product fk
	@ln -sfn $(notdir $(SCRATCH))/release .build/release

ifeq ($(shell uname -s),Linux)
portable: build ## link the release for other Linux systems: .build/portable/fk
	@SWIFT="$(SWIFT)" Packaging/portable/build $(PORTABLE)
	@cp -p $(BIN) $(PORTABLE)/own
	$(SWIFT) build $(RELEASE) $(LINKED) $$(cat $(ICU) $(PORTABLE)/flags) --pkg-config-path "$(CURDIR)/$(PORTABLE)" \
	  $(SWIFTFLAGS) --product fk
	@mv $(BIN) $(PORTABLE)/fk && mv $(PORTABLE)/own $(BIN)
else
portable: build
	install -d $(PORTABLE)
	cp $(BIN) $(PORTABLE)/fk
endif

# The fuzz tests come last and alone: they use all processors, and tests of terminals and time-outs would wait for them.
test: setup ## run the tests
	$(SWIFT) test --disable-xctest $(SWIFTFLAGS) --skip '\.Fuzz' $(TESTFLAGS)
	$(SWIFT) test --disable-xctest $(SWIFTFLAGS) --filter '\.Fuzz' $(TESTFLAGS)

test-page: ## install what the tests of the page of fk rpc need and run them
	@.ci/needs page
	.ci/page

test-threads: setup ## the tests but the fuzz tests under the thread sanitizer, one after the other: it makes them ten times slower
	$(SWIFT) test --disable-xctest --sanitize=thread --scratch-path .build/threads --no-parallel \
	  --skip '\.Fuzz' $(SWIFTFLAGS) $(TESTFLAGS)

test-addresses: setup ## the tests under the address sanitizer
	ASAN_OPTIONS=detect_leaks=0 $(SWIFT) test --disable-xctest --sanitize=address --scratch-path .build/addresses \
	  --no-parallel $(SWIFTFLAGS) $(TESTFLAGS)

# Cases of the largest runs; the others are smaller in proportion. A failure names its seed and its case.
FUZZCOUNT ?= 10000000
FUZZSEED  ?= 1

fuzz: ## generated info files, names, headers and lists by the million (FUZZCOUNT, FUZZSEED), against a release build
	@.ci/needs build test
	FK_FUZZ_COUNT=$(FUZZCOUNT) FK_FUZZ_SEED=$(FUZZSEED) FK_FUZZ_NOTES="$(CURDIR)/.build/fuzz/notes" \
	  $(SWIFT) test --disable-xctest -c release -Xswiftc -enable-testing --scratch-path .build/fuzz --filter '\.Fuzz' \
	  $(SWIFTFLAGS)

bench: build ## compare with curl, aria2, wget2 and axel on this machine; writes Docs/Benchmarks
	@.ci/needs bench
	PATH="$$PATH:$(CURDIR)/.build/bench/bin" Tests/Benchmarks/run --save Docs/Benchmarks $(BENCHFLAGS) $(BIN)

torture: build ## kill fk at every call, cut its power, let its calls fail: an hour; TORTUREFLAGS=--quick: three minutes
	@.ci/needs torture
	SWIFT="$(SWIFT)" .ci/examples --build $(SCRATCH) $(RELEASE) $(SWIFTFLAGS) --product CustomMiddleware
	Tests/Torture/run $(TORTUREFLAGS) $(BIN)

soak: build ## 24 hours' worth of work in 30 minutes: nothing is lost, nothing grows (SOAKFLAGS, such as --minutes 6)
	@.ci/needs soak
	Tests/Soak/run $(SOAKFLAGS) $(BIN)

examples: ## build and run every example
	@.ci/needs build
	SWIFT="$(SWIFT)" .ci/examples

docs: ## build the site of the documentation with DocC: .build/docs
	SWIFT="$(SWIFT)" .ci/docs

api: ## write the list of the public API anew: Docs/API
	SWIFT="$(SWIFT)" .ci/api --write

lint: ## check the format of all sources
	$(SWIFT) format lint --strict --recursive $(wildcard Package.swift Sources Tests Examples)

format: ## format all sources
	$(SWIFT) format --in-place --recursive $(wildcard Package.swift Sources Tests Examples)

# What install writes, below $(DESTDIR)$(PREFIX). uninstall removes the same files.
SHARED := share/man/man1/fk.1 share/bash-completion/completions/fk share/zsh/site-functions/_fk \
  share/fish/vendor_completions.d/fk.fish

install: build ## install fk, the manual page and completions under PREFIX (/usr/local); DESTDIR is honoured
	install -d "$(DESTDIR)$(PREFIX)/bin"
	for file in $(SHARED); do install -d "$(DESTDIR)$(PREFIX)/$$(dirname "$$file")" || exit; done
	install -m 755 $(BIN) "$(DESTDIR)$(PREFIX)/bin/fk"
	$(BIN) man > "$(DESTDIR)$(PREFIX)/share/man/man1/fk.1"
	$(BIN) completions bash > "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/fk"
	$(BIN) completions zsh > "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_fk"
	$(BIN) completions fish > "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/fk.fish"
	cd "$(DESTDIR)$(PREFIX)" && chmod 644 $(SHARED)

uninstall: ## remove what install put there
	rm -f "$(DESTDIR)$(PREFIX)/bin/fk"
	for file in $(SHARED); do rm -f "$(DESTDIR)$(PREFIX)/$$file"; done

deb: build ## build a Debian package: .build/packages/fk_VERSION_ARCH.deb
	@.ci/needs deb
	Packaging/deb/build $(VERSION) .build/packages

dist: portable ## build tarballs of the source and of the program, with SHA256SUMS: .build/dist
	Packaging/dist $(VERSION) .build/dist

test-deb: deb ## install, run and remove the package in a fresh Debian root (as root; not part of make test)
	@.ci/needs test-deb
	Packaging/deb/test .build/packages/fk_$(subst -,~,$(VERSION))-1_*.deb

test-dist: ## build the tarballs in two folders and compare their bytes (not part of make test)
	@.ci/needs build
	Packaging/test-dist

test-cluster: build ## run a Slurm array, a Kubernetes Job's environment and GNU parallel on this machine (as root; not part of make test)
	@.ci/needs test-cluster
	Tests/Cluster/run $(BIN)

test-package: ## use the libraries by URL and version from a git server on this machine (not part of make test)
	@.ci/needs build test
	Packaging/test-package $(VERSION)

order: ## record which functions usual commands execute, after large changes (as a contributor): Packaging/order/functions
	@.ci/needs build order
	@SWIFT="$(SWIFT)" Packaging/icu/build $(dir $(ICU))
	$(SWIFT) build $(RELEASE) $$(cat $(ICU)) $(SWIFTFLAGS) -Xlinker -Map=.build/order.map -Xlinker --no-demangle --product fk
	@ln -sfn $(notdir $(SCRATCH))/release .build/release
	Packaging/order/record $(BIN) .build/order.map

clean: ## remove everything that was built
	rm -rf .build Examples/.build
