# How a release of the Makefile differs from `swift build -c release`: each flag with its reason, and its gain on x86_64 Linux. A flag
# that gains less than 5 % of what it is for is not worth its place, except for the two at the end.

# A folder of its own: a release and the tests can be built at the same time (.ci/run). BIN leads there.
SCRATCH := .build/optimized
RELEASE := -c release --scratch-path $(SCRATCH)

ifeq ($(shell uname -s),Linux)
# The Swift runtime is inside the program, so it runs where no Swift is installed. macOS brings its own.
RELEASE += --static-swift-stdlib
# No folder beside the program is searched for libraries: Debian's policy (lintian) asks for it.
RELEASE += --disable-local-rpath
# The default linker warns about the toolchain's own libraries, and has none of the flags below.
RELEASE += -Xswiftc -use-ld=lld
# A section for each function: the linker's order needs them.
RELEASE += -Xswiftc -Xfrontend -Xswiftc -function-sections

# No symbols: 35 MB instead of 87.
LINKED := -Xlinker -s
# The functions that usual commands execute stand side by side (`make order`): 24 MB of memory for one file instead of 32, and a
# start that is a twentieth faster. With a list that is some weeks old it was 30 MB instead of 34.
LINKED += -Xlinker --symbol-ordering-file=Packaging/order/functions -Xlinker --no-warn-symbol-ordering
endif

# The path of this folder is not in the program: a build in another folder has the same bytes (Packaging/test-dist). The section
# .swift_modhash, which only incremental code generation uses, would have hashes that depend on the path.
RELEASE += -Xswiftc -file-prefix-map -Xswiftc "$(CURDIR)=/fkdownloader" -Xcc "-ffile-prefix-map=$(CURDIR)=/fkdownloader" \
  -Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen
# Every access of a class's value would be looked up in a list: 9 % of the instructions of a small file. The tests are built
# with these checks.
RELEASE += -Xswiftc -enforce-exclusivity=unchecked

# The few items of ICU's data that fk asks for: 35 MB instead of 70. The file has flags of the linker; none on macOS.
ICU := .build/icu/flags
# Relative relocations: 35.3 MB instead of 37.7. The C library understands them since 2.36, and an older one refuses the program with a message, so
# the tarball's program has none.
PACKED := $(shell getconf GNU_LIBC_VERSION 2> /dev/null | awk -F '[ .]' \
  '$$2 > 2 || $$3 >= 36 { print "-Xlinker -z -Xlinker pack-relative-relocs" }')

# Two small gains that keep the program, with the server of fk rpc in it, within 34 MiB (.ci/size).
# Commands, lists, FKCore's own target, middlewares and the store are optimized for size (Package.swift): 1.9 %, and no more instructions for small files.
export FK_SMALL := 1
ifeq ($(shell uname -s),Linux)
# No symbols for other programs to use: 3 %.
LINKED += -Xlinker --no-export-dynamic
endif

# Measured and taken out: --icf=safe (0.1 %).
