import FKStore
import TestSupport
import Testing

@testable import FKManifests

@Suite("Programs that list files") struct ProgramSourceTests {
    private func program(_ script: String, in folder: TemporaryFolder, limit: Duration = .seconds(30)) throws
        -> SourceProgram
    {
        let path = try Program.writeScript("#!/bin/sh\n\(script)\n", to: folder.file("list.sh").path)
        return try SourceProgram(scheme: "lab", arguments: [path, "one"], timeLimit: limit, directory: folder.path)
    }

    private func list(_ program: SourceProgram, isTrusted: Bool = true) async throws -> AdapterBench.Listing {
        var listing = AdapterBench.Listing()
        let transport = ScriptedTransport { _, _ in .status(500) }
        defer { transport.shutdown() }
        let registry = SourceRegistry()
        try registry.register(ProgramSource(program, isTrusted: isTrusted))
        var choice = SourceChoice()
        choice.include = ["*.bin"]
        do {
            guard let (source, place) = try registry.find("lab:RUN 7", in: [:]) else { return listing }
            #expect(place.address == nil && place.folderName == "RUN 7")
            for try await page in SourceListing(source, place, choice, TaskOptions(), [:], over: transport).pages {
                listing.files += page.files
                listing.faults += page.faults
                listing.version = page.version ?? listing.version
            }
        } catch let error as DownloadError {
            listing.error = error
        }
        return listing
    }

    @Test("a question on standard input, a line for each file, a version at the end") func lines() async throws {
        let folder = try TemporaryFolder()
        let program = try program(
            """
            cat > question; echo "$1 $FK_STAGE" > words
            echo '{"url":"https://h/a.bin","name":"x/a.bin","size":3,"sha256":"\(StoreAnswers.hex("a"))","version":"3"}'
            echo
            echo '{"url":["https://h/b.bin","https://m/b.bin"],"headers":{"X":"y"},"dir":"/tmp"}'
            echo '{"url":"https://h/c.txt"}'
            echo '{"version":"2024"}'
            """, in: folder)
        let listing = try await list(program)
        #expect(listing.error == nil && listing.names == ["x/a.bin", "b.bin"] && listing.version == "2024")
        #expect(listing.files[0].size == 3 && listing.files[0].version == "3" && listing.files[0].digests.count == 1)
        #expect(listing.files[1].sources.map(\.url) == ["https://h/b.bin", "https://m/b.bin"])
        #expect(
            String(decoding: try folder.read("question"), as: UTF8.self)
                == #"{"source":"lab:RUN 7","include":["*.bin"],"exclude":[]}"# + "\n")
        #expect(String(decoding: try folder.read("words"), as: UTF8.self) == "one source\n")
    }

    @Test("keys that mean nothing here are named, each once") func unknownKeys() {
        let lines =
            #"{"url":"https://h/a","colour":1,"size":3}"# + "\n"
            + #"{"url":"https://h/b","colour":2,"Dir":"x","version":"1"}"#
        let (page, fault) = ProgramListing.page((ArraySlice(Array(lines.utf8)), 1), of: "lab")
        #expect(fault == nil && page.files.count == 2 && page.leftOutKeys.first == "colour")
        #expect(page.leftOutKeys.count { $0 == "colour" } == 1 && !page.leftOutKeys.contains("version"))
    }

    @Test("the name is the whole path, whatever else a line has, and an address of a bucket's scheme is none")
    func names() {
        let lines =
            #"{"url":"https://h/a","name":"x/right.txt","filename":"wrong.txt","folder":"y"}"# + "\n"
            + #"{"url":"s3://bucket/b"}"#
        let (page, fault) = ProgramListing.page((ArraySlice(Array(lines.utf8)), 1), of: "lab")
        #expect(fault == nil && page.files.map(\.name) == ["x/right.txt"])
        #expect(
            page.faults.count == 1 && page.faults[0].reason.hasPrefix("line 2: 's3://bucket/b' is no http or https URL")
        )
    }

    @Test("what it says are facts: names stay below the folder, entries without an address are named") func facts()
        async throws
    {
        let folder = try TemporaryFolder()
        let listing = try await list(
            program(
                #"""
                echo '{"url":"https://h/a.bin","name":"../../a.bin"}'; echo '{"name":"b.bin"}'
                echo '{"url":"file:///etc/passwd","name":"c.bin"}'; echo '{"url":"https://h/d.bin","name":"/d.bin"}'
                echo '{"url":"https://h/e.bin","sha256":"abc"}'; echo '{"url":"https://h/f.bin"}'
                """#, in: folder))
        #expect(listing.names == ["f.bin"] && listing.faults.count == 5 && listing.error == nil, "\(listing.faults)")
    }

    @Test(
        "a program that fails says why, and nothing of its list is used",
        arguments: [
            ("echo '{\"url\":\"https://h/a.bin\"}'; echo no such run >&2; exit 3", "no such run"),
            ("echo nonsense", "a value is expected"),
            ("exit 1", "exit status 1"), ("kill -9 $$", "signal 9"), ("printf '{\"url\":'", "not whole"),
            ("echo '[1]'", "an object"),
        ])
    func failures(script: String, reason: String) async throws {
        let folder = try TemporaryFolder()
        let listing = try await list(program(script, in: folder))
        #expect(listing.error?.description.contains(reason) == true, "\(String(describing: listing.error))")
    }

    @Test("it ends with its time, and is not run if it came with a copy of a work path") func limits() async throws {
        let folder = try TemporaryFolder()
        let slow = try await list(program("sleep 60", in: folder, limit: .milliseconds(300)))
        #expect(slow.error?.message.contains("was killed") == true)
        let copied = try await list(program("echo ran > ran", in: folder), isTrusted: false)
        #expect(copied.error?.message.contains("fk source trust") == true && (try? folder.read("ran")) == nil)
        let missing = try SourceProgram(scheme: "lab", arguments: ["/nonexistent/x"], directory: "/")
        #expect(try await list(missing).error?.message.contains("there is no program") == true)
    }

    @Test("many lines come in pages, and a long one is refused") func long() async throws {
        let folder = try TemporaryFolder()
        let listing = try await list(
            program(
                "i=0; while [ $i -lt 20000 ]; do echo \"{\\\"url\\\":\\\"https://h/$i.bin\\\"}\"; i=$((i+1)); done",
                in: folder))
        #expect(listing.files.count == 20_000 && listing.names.last == "19999.bin")
        let endless = try await list(program("head -c 5000000 /dev/zero | tr '\\0' x", in: folder))
        #expect(endless.error?.code == .tooLarge)
    }

    // MARK: The list

    private func workPath(_ folder: TemporaryFolder) throws -> WorkPath {
        let workPath = WorkPath(folder.file("work").path)
        try workPath.open(create: true)
        return workPath
    }

    @Test("added, known, another of the scheme, removed") func changes() throws {
        let folder = try TemporaryFolder()
        let workPath = try workPath(folder)
        let one = try SourceProgram(scheme: "LAB", arguments: ["a", "b"], timeLimit: .seconds(7), directory: "/")
        var isNew = false
        try SourceProgram.List.change(in: workPath) { isNew = try $0.add(one) }
        #expect(isNew)
        try SourceProgram.List.change(in: workPath) { isNew = try $0.add(one) }
        #expect(!isNew)
        let read = try SourceProgram.List(in: workPath)
        #expect(read.programs == [one] && read["lab"]?.timeLimit == .seconds(7) && read.isTrusted(one))
        let other = try SourceProgram(scheme: "lab", arguments: ["c"], directory: "/")
        #expect(throws: DownloadError.self) { try SourceProgram.List.change(in: workPath) { _ = try $0.add(other) } }
        for scheme in ["s3", "https", "hf", "doi"] {
            let taken = try SourceProgram(scheme: scheme, arguments: ["c"], directory: "/")
            #expect(throws: DownloadError.self) {
                try SourceProgram.List.change(in: workPath) { _ = try $0.add(taken) }
            }
        }
        let registry = SourceRegistry()
        try registry.registerPrograms(in: workPath)
        #expect(registry["lab"] != nil)
        try SourceProgram.List.change(in: workPath) { try $0.remove(scheme: "lab") }
        #expect(throws: DownloadError.self) {
            try SourceProgram.List.change(in: workPath) { try $0.remove(scheme: "lab") }
        }
        #expect(try SourceProgram.List(in: workPath).programs.isEmpty)
    }

    @Test("a copy of the work path is not trusted until it is told") func copies() throws {
        let folder = try TemporaryFolder()
        let first = try workPath(folder)
        let program = try SourceProgram(scheme: "lab", arguments: ["a"], directory: "/")
        try SourceProgram.List.change(in: first) { _ = try $0.add(program) }
        let copy = WorkPath(folder.file("copy").path)
        try copy.open(create: true)
        try FileManager.default.copyItem(atPath: first.sourcesPath, toPath: copy.sourcesPath)
        #expect(try !SourceProgram.List(in: copy).isTrusted(program))
        var schemes: [String] = []
        try SourceProgram.List.change(in: copy) { schemes = $0.trust() }
        #expect(schemes == ["lab"])
        #expect(try SourceProgram.List(in: copy).isTrusted(program))
    }

    @Test("programs that cannot be") func invalid() {
        for (scheme, words) in [
            ("a", ["x"]), ("a b", ["x"]), ("1a", ["x"]), ("lab", []), ("lab", [""]), ("lab", ["a\0b"]),
        ] {
            #expect(throws: DownloadError.self) { try SourceProgram(scheme: scheme, arguments: words, directory: "/") }
        }
        #expect(throws: DownloadError.self) {
            try SourceProgram(scheme: "lab", arguments: ["x"], directory: "relative")
        }
        #expect(throws: DownloadError.self) {
            try SourceProgram(scheme: "lab", arguments: ["x"], timeLimit: .zero, directory: "/")
        }
    }

    @Test(
        "a damaged file is named, and one of a later version too",
        arguments: ["{", "[]", #"{"format":2}"#, #"{"format":1,"programs":[{"scheme":"x"}]}"#])
    func damaged(text: String) throws {
        let folder = try TemporaryFolder()
        let workPath = try workPath(folder)
        try Data(text.utf8).write(to: URL(fileURLWithPath: workPath.sourcesPath))
        let error = #expect(throws: DownloadError.self) { try SourceProgram.List(in: workPath) }
        #expect(error?.message.contains("sources") == true)
    }
}
