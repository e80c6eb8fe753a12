# `make help` lists the targets.

SWIFT    ?= swift
PREFIX   ?= /usr/local
DESTDIR  ?=
# Flags for every swift build of this file, such as -Xswiftc -warnings-as-errors.
SWIFTFLAGS ?=

# The Swift runtime inside the program: it starts faster and runs where no Swift is installed. macOS brings its own.
ifeq ($(shell uname -s),Linux)
# lld, because the default linker warns about the toolchain's own libraries.
# No folder beside the program is searched for libraries: it needs none, and looking takes time at every start.
RELEASE := -c release --static-swift-stdlib --disable-local-rpath -Xswiftc -use-ld=lld -Xswiftc -Xfrontend -Xswiftc -function-sections
# The functions that usual commands execute stand side by side (`make order`), so that the others are not brought into memory.
LINKED := -Xlinker -s -Xlinker --symbol-ordering-file=Packaging/order/functions -Xlinker --no-warn-symbol-ordering
else
RELEASE := -c release
endif
# The path of this folder is not in the program: a build in another folder has the same bytes. The section .swift_modhash,
# which only incremental code generation uses, would have hashes that depend on the path.
RELEASE += -Xswiftc -file-prefix-map -Xswiftc "$(CURDIR)=/fkdownloader" -Xcc "-ffile-prefix-map=$(CURDIR)=/fkdownloader" \
  -Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen
# Every access of a class's value would be looked up in a list: 9 % of the instructions of a small file. The tests are built
# with these checks.
RELEASE += -Xswiftc -enforce-exclusivity=unchecked
# Package.swift: the release's commands and lists are optimized for size.
export FK_SMALL := 1
# The few items of ICU's data that fk asks for, in the place of 34 MB. The file has flags of the linker; none on macOS.
ICU := .build/icu/flags
BIN := .build/release/fk
VERSION := $(shell sed -n 's/.*static let text = "\(.*\)".*/\1/p' Sources/FKCore/Model/Version.swift)
# The day of the release, from which packages take the times of their files.
export SOURCE_DATE_EPOCH ?= $(shell date -u -d "$$(sed -n 's/.*static let date = "\(.*\)".*/\1/p' \
  Sources/FKCore/Model/Version.swift)" +%s 2>/dev/null)

# So many tests at once and no more: 600 at once make each of them slow enough on a busy machine to meet its time limit.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 24

.PHONY: help build order demo test test-page test-threads test-addresses fuzz bench torture examples lint format install uninstall clean \
  deb dist test-deb test-dist test-package test-cluster docs api

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

order: ## record which functions usual commands execute, after large changes (as a contributor): Packaging/order/functions
	@.ci/needs build order
	@SWIFT="$(SWIFT)" Packaging/icu/build $(dir $(ICU))
	$(SWIFT) build $(RELEASE) $$(cat $(ICU)) $(SWIFTFLAGS) -Xlinker -Map=.build/order.map -Xlinker --no-demangle --product fk
	Packaging/order/record $(BIN) .build/order.map

demo: build ## build the release and show all of it on this machine
	$(BIN) demo $(DEMOFLAGS)

build: ## build the release: .build/release/fk and fk-rpc
	@.ci/needs build
	@SWIFT="$(SWIFT)" Packaging/icu/build $(dir $(ICU))
	$(SWIFT) build $(RELEASE) $(LINKED) $$(cat $(ICU)) $(SWIFTFLAGS) --product fk
	$(SWIFT) build $(RELEASE) $(LINKED) $$(cat $(ICU)) $(SWIFTFLAGS) --product fk-rpc

# The fuzz tests come last and alone: they use all processors, and tests of terminals and time-outs would wait for them.
test: ## install what the tests need and run them
	@.ci/needs build test
	$(SWIFT) test --disable-xctest $(SWIFTFLAGS) --skip '\.Fuzz' $(TESTFLAGS)
	$(SWIFT) test --disable-xctest $(SWIFTFLAGS) --filter '\.Fuzz' $(TESTFLAGS)

test-page: ## install what the tests of the page of fk rpc need and run them
	@.ci/needs page
	.ci/page

test-threads: ## the tests but the fuzz tests under the thread sanitizer, one after the other: it makes them ten times slower
	@.ci/needs build test
	$(SWIFT) test --disable-xctest --sanitize=thread --scratch-path .build/threads --no-parallel \
	  --skip '\.Fuzz' $(SWIFTFLAGS) $(TESTFLAGS)

test-addresses: ## the tests under the address sanitizer
	@.ci/needs build test
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
	Tests/Benchmarks/run --save Docs/Benchmarks $(BENCHFLAGS) $(BIN)

torture: build ## kill fk at every call, cut its power, let its calls fail: an hour; TORTUREFLAGS=--quick: three minutes
	@.ci/needs torture
	$(SWIFT) build $(RELEASE) $(LINKED) $$(cat $(ICU)) $(SWIFTFLAGS) --product CustomMiddleware
	Tests/Torture/run $(TORTUREFLAGS) $(BIN)

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

install: build ## install fk, fk-rpc, the manual page and completions under PREFIX (/usr/local); DESTDIR is honoured
	install -d "$(DESTDIR)$(PREFIX)/bin"
	for file in $(SHARED); do install -d "$(DESTDIR)$(PREFIX)/$$(dirname "$$file")" || exit; done
	install -m 755 $(BIN) "$(DESTDIR)$(PREFIX)/bin/fk"
	install -m 755 $(BIN)-rpc "$(DESTDIR)$(PREFIX)/bin/fk-rpc"
	$(BIN) man > "$(DESTDIR)$(PREFIX)/share/man/man1/fk.1"
	$(BIN) completions bash > "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/fk"
	$(BIN) completions zsh > "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_fk"
	$(BIN) completions fish > "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/fk.fish"
	cd "$(DESTDIR)$(PREFIX)" && chmod 644 $(SHARED)

uninstall: ## remove what install put there
	rm -f "$(DESTDIR)$(PREFIX)/bin/fk" "$(DESTDIR)$(PREFIX)/bin/fk-rpc"
	for file in $(SHARED); do rm -f "$(DESTDIR)$(PREFIX)/$$file"; done

deb: build ## build a Debian package: .build/packages/fk_VERSION_ARCH.deb
	@.ci/needs deb
	Packaging/deb/build $(VERSION) .build/packages

dist: build ## build tarballs of the source and of the program, with SHA256SUMS: .build/dist
	Packaging/dist $(VERSION) .build/dist

test-deb: deb ## install, run and remove the package in a fresh Debian root (as root; not part of make test)
	@.ci/needs test-deb
	Packaging/deb/test .build/packages/fk_$(VERSION)-1_*.deb

test-dist: ## build the tarballs in two folders and compare their bytes (not part of make test)
	@.ci/needs build
	Packaging/test-dist

test-cluster: build ## run a Slurm array, a Kubernetes Job's environment and GNU parallel on this machine (as root; not part of make test)
	@.ci/needs test-cluster
	Tests/Cluster/run $(BIN)

test-package: ## use the libraries by URL and version from a git server on this machine (not part of make test)
	@.ci/needs build test
	Packaging/test-package $(VERSION)

clean: ## remove everything that was built
	rm -rf .build Examples/.build
