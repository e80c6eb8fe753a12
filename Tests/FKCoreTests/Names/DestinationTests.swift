import TestSupport
import Testing

@Suite("Names and destinations")
struct DestinationTests {
    static let content = Bytes.pattern(count: 1_000)
    static let other: [UInt8] = [9, 9, 9]

    private static func named(_ name: String, _ request: TransportRequest) -> Bench.Answer {
        .file(content, to: request, fields: [.init("Content-Disposition", "attachment; filename=\"\(name)\"")])
    }

    /// What becomes of a file that is there: its task's state, the names in the folder, and what the old one holds.
    struct Case: Sendable, CustomTestStringConvertible {
        var policy: ExistingFilePolicy?
        var isExplicit: Bool
        var state: DownloadState
        var names: [String]
        var isKept: Bool
        var requests: Int
        var testDescription: String {
            "\(policy.map(\.rawValue) ?? "default"), \(isExplicit ? "name given" : "derived")"
        }
    }

    static let cases = [
        Case(policy: nil, isExplicit: true, state: .error, names: ["a.bin"], isKept: true, requests: 0),
        Case(policy: nil, isExplicit: false, state: .complete, names: ["a.1.bin", "a.bin"], isKept: true, requests: 1),
        Case(policy: .refuse, isExplicit: true, state: .error, names: ["a.bin"], isKept: true, requests: 0),
        Case(policy: .refuse, isExplicit: false, state: .error, names: ["a.bin"], isKept: true, requests: 0),
        Case(policy: .overwrite, isExplicit: true, state: .complete, names: ["a.bin"], isKept: false, requests: 1),
        Case(policy: .overwrite, isExplicit: false, state: .complete, names: ["a.bin"], isKept: false, requests: 1),
        Case(
            policy: .rename, isExplicit: true, state: .complete, names: ["a.1.bin", "a.bin"], isKept: true, requests: 1),
        Case(
            policy: .rename, isExplicit: false, state: .complete, names: ["a.1.bin", "a.bin"], isKept: true,
            requests: 1),
        Case(policy: .skip, isExplicit: true, state: .complete, names: ["a.bin"], isKept: true, requests: 0),
        Case(policy: .skip, isExplicit: false, state: .complete, names: ["a.bin"], isKept: true, requests: 0),
    ]

    @Test("a file that is there already", arguments: cases)
    func existing(_ expected: Case) async throws {
        let bench = try await Bench(content: Self.content)
        try bench.folder.write(Self.other, to: "out/a.bin")
        let id = try await bench.add(expected.isExplicit ? "x" : "a.bin") {
            $0.options.existing = expected.policy
            if expected.isExplicit { $0.fileName = "a.bin" }
        }
        let info = try #require(await bench.finished(id))
        #expect(info.state == expected.state)
        #expect(bench.names == expected.names)
        #expect(try bench.out("a.bin") == (expected.isKept ? Self.other : Self.content))
        #expect(bench.transport.requests.count == expected.requests)
        if expected.state == .error {
            #expect(info.error?.code == .fileExists)
            #expect(info.error?.message.contains("a.bin") == true)
        } else if expected.requests == 1 {
            #expect(try bytes(#require(info.path)) == Self.content)
        } else {
            #expect(info.path == bench.out + "/a.bin" && info.count.received == 3)
        }
        try await bench.control.trash(.id(id))
        #expect(bench.names == (expected.isKept ? ["a.bin"] : []))
    }

    @Test(
        "with `.skip` and a checksum, a file that is there counts only if it has the checksum",
        arguments: [true, false], [true, false])
    func existingChecksum(_ isRight: Bool, _ isServerName: Bool) async throws {
        let bench = try await Bench { request, _ in Self.named("s.bin", request) }
        let there = isRight ? Self.content : Self.other
        try bench.folder.write(there, to: "out/s.bin")
        let id = try await bench.add(isServerName ? "a.bin" : "s.bin") {
            $0.options.existing = .skip
            $0.mirrors = ["http://m.example/s.bin"]
            $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(Self.content))
        }
        let info = try #require(await bench.finished(id))
        #expect(info.state == (isRight ? .complete : .error))
        #expect(info.error?.code == (isRight ? nil : .checksumMismatch))
        #expect(info.error.map { $0.message.contains("\(bench.out)/s.bin was there already") } ?? true)
        #expect(bench.transport.requests.count == (isServerName ? 1 : 0))
        #expect(try bench.out("s.bin") == there)
        try await bench.control.trash(.id(id))
        #expect(bench.names == ["s.bin"])
    }

    @Test("with `.skip`, a file that appears between two attempts counts, and the part of the first attempt is removed")
    func existingLater() async throws {
        let bench = try await Bench { request, _ in .file(Self.content, to: request, cut: 1) }
        let id = try await bench.add("a.bin") { $0.options.existing = .skip }
        await bench.settle()
        #expect(bench.names.count == 1, "the part: \(bench.names)")
        try bench.folder.write(Self.other, to: "out/a.bin")
        await bench.advance(60)
        #expect(await bench.state(id) == .complete)
        #expect(bench.names == ["a.bin"])
        #expect(try bench.out("a.bin") == Self.other)
    }

    @Test("a name the server decides, with a file of that name", arguments: [ExistingFilePolicy.refuse, .skip])
    func existingServerName(_ policy: ExistingFilePolicy) async throws {
        let bench = try await Bench { request, _ in Self.named("s.bin", request) }
        try bench.folder.write(Self.other, to: "out/s.bin")
        let id = try await bench.add("a.bin") { $0.options.existing = policy }
        let info = try #require(await bench.finished(id))
        #expect(info.state == (policy == .skip ? .complete : .error))
        #expect(try bench.out("s.bin") == Self.other)
        try await bench.control.trash(.id(id))
        #expect(bench.names == ["s.bin"])
    }

    @Test(
        "a name of a list keeps its bytes, also those that -o refuses",
        arguments: ["a\nb", "a\tb", "a\u{200b}b", "a\\b", "می\u{200c}خواهم"])
    func listedBytes(_ name: String) async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.add("x") { $0.fileName = name }
        let info = try #require(await bench.finished(id))
        #expect(info.state == .complete, "\(info.error?.message ?? "")")
        #expect(try bench.out(name) == Self.content)
    }

    @Test("a name that cannot be used is named in the error")
    func badName() async throws {
        let bench = try await Bench(content: Self.content)
        let error = try await #require(throws: DownloadError.self) {
            try await bench.add("x") { $0.fileName = "x.fkpart" }
        }
        #expect(error.message.contains(" its file's name x.fkpart cannot be used: its ending is reserved "))
    }

    @Test("a name asked for is the name, whatever the server says")
    func askedFor() async throws {
        let bench = try await Bench { request, _ in Self.named("s.bin", request) }
        let id = try await bench.add("a.bin") { $0.fileName = "mine.bin" }
        #expect(await bench.finished(id)?.path == bench.out + "/mine.bin")
    }

    @Test("one URL with two destinations is two tasks; a verb for the URL means both")
    func twoDestinations() async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        let one = try await bench.add("a.bin") { $0.directory = bench.out + "/one" }
        let two = try await bench.add("a.bin") { $0.directory = bench.out + "/deep/two" }
        let none = try await bench.add("a.bin") { $0.directory = nil }
        #expect(Set([one, two, none]).count == 3)
        #expect(await bench.messager.all("http://h.example/a.bin").map(\.id) == [one, two, none])
        await bench.downloader.close()
        let second = try await Bench(in: bench.folder, scope: .chosen, content: Self.content)
        #expect(try await second.control.suspend("http://h.example/a.bin").map(\.id) == [one, two, none])
        try await second.control.resume("http://h.example/a.bin")
        await second.engine.waitUntilDrained()
        #expect(try second.out("one/a.bin") == Self.content)
        #expect(try second.out("deep/two/a.bin") == Self.content)
        #expect(await second.messager.filePath(.id(none)) == second.workPath.filesFolder(none) + "/a.bin")
        try await second.control.trash(.id(none))
        #expect(!FileManager.default.fileExists(atPath: second.workPath.filesFolder(none)))
    }

    @Test(
        "a destination that cannot be: an error that names it, and nothing is fetched",
        arguments: [
            "/proc/x", "/proc/x/deep/er", "FILE", "FILE/below",
        ])
    func impossible(_ directory: String) async throws {
        let bench = try await Bench(content: Self.content)
        try bench.folder.write([1], to: "file")
        let path = directory.replacing("FILE", with: bench.folder.path + "/file")
        let id = try await bench.add("a.bin") { $0.directory = path }
        let info = try #require(await bench.finished(id))
        #expect(info.state == .error && info.error?.code == .destination)
        // It names the part of the path that is the obstacle.
        #expect(
            info.error?.message.contains(path.replacing("/deep/er", with: "")) == true,
            "\(String(describing: info.error))")
        #expect(bench.transport.requests.isEmpty)
    }

    @Test(
        "what is no file is neither replaced nor taken for the download",
        arguments: [ExistingFilePolicy.overwrite, .skip], ["folder", "FIFO", "dangling symlink"])
    func special(_ policy: ExistingFilePolicy, _ kind: String) async throws {
        let bench = try await Bench(content: Self.content)
        let path = bench.out + "/a.bin"
        try FileManager.default.createDirectory(atPath: bench.out, withIntermediateDirectories: true)
        let made: Int32 =
            switch kind {
            case "folder": mkdir(path, 0o700)
            case "FIFO": mkfifo(path, 0o600)
            default: symlink(bench.folder.file("nowhere").path, path)
            }
        #expect(made == 0)
        let id = try await bench.add("a.bin") { $0.options.existing = policy }
        let info = try #require(await bench.finished(id))
        guard policy == .skip || kind != "dangling symlink" else {
            #expect(info.state == .complete)
            #expect(try bench.out("a.bin") == Self.content)
            return
        }
        #expect(info.error?.code == .destination)
        #expect(info.error?.message == "\(path) exists and is not a file.")
        #expect(bench.names == ["a.bin"])
        #expect(bench.transport.requests.isEmpty)
    }

    @Test("a name of the server's that a FIFO bears", arguments: [ExistingFilePolicy.overwrite, .skip])
    func specialSentName(_ policy: ExistingFilePolicy) async throws {
        let bench = try await Bench { request, _ in Self.named("s.bin", request) }
        try FileManager.default.createDirectory(atPath: bench.out, withIntermediateDirectories: true)
        #expect(mkfifo(bench.out + "/s.bin", 0o600) == 0)
        let id = try await bench.add("a.bin") { $0.options.existing = policy }
        #expect(await bench.finished(id)?.error?.code == .destination)
        var status = stat()
        #expect(lstat(bench.out + "/s.bin", &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
    }

    @Test("the folder is removed between two attempts: it is made again")
    func folderRemoved() async throws {
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, cut: number == 1 ? 500 : nil)
        }
        let id = try await bench.add("a.bin")
        await bench.reached("a.bin", .idle, times: 2)
        try FileManager.default.removeItem(atPath: bench.out)
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", "-"])
        #expect(try bench.out("a.bin") == Self.content)
    }
}
