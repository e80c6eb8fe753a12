import TestSupport
import Testing

@testable import FKEngine

@Suite("Part files in another folder")
struct PartsFolderTests {
    private static let content = Bytes.pattern(count: 400_000)

    /// Where the part files are, as seen from the destination.
    enum Place: String, Sendable, CaseIterable {
        case sameFileSystem, otherFileSystem

        func folder() throws -> TemporaryFolder {
            self == .otherFileSystem ? try TemporaryFolder(in: #require(TemporaryFolder.memory)) : try TemporaryFolder()
        }
    }

    static let places = Place.allCases.filter { $0 == .sameFileSystem || TemporaryFolder.memory != nil }

    /// A task that was suspended after 100,000 bytes, and whose engine is closed.
    private struct Suspended {
        let parts: TemporaryFolder
        let first: Bench
        let id: TaskID
        let part: String

        init(_ place: Place) async throws {
            let (gate, parts) = (TestGate(), try place.folder())
            first = try await Bench(settings: { $0.partsFolder = parts.url }) { request, _ in
                .file(PartsFolderTests.content, to: request, gate: gate, pauseAt: 100_000)
            }
            self.parts = parts
            id = try await first.add("a")
            await gate.reached()
            part = try #require(parts.names.first)
            #expect(parts.names.count == 1 && first.names == [])
            _ = try await first.control.suspend(.id(id))
            await first.reached("a", .suspend)
            await first.downloader.close()
            #expect(try first.stored(id).partFolder == parts.path)
        }

        var home: String { "\(first.out)/\(part)" }

        /// Another engine of the same work path.
        func next(_ settings: (inout Configure) -> Void = { _ in }) async throws -> Bench {
            try await Bench(in: first.folder, content: PartsFolderTests.content, settings: settings)
        }

        /// The task completes without the bytes that it has, and leaves nothing.
        func expectResumed(in bench: Bench, sourceLocation: SourceLocation = #_sourceLocation) async throws {
            _ = try await bench.control.resume(.id(id))
            try await bench.expect("a", PartsFolderTests.content, of: id, sourceLocation: sourceLocation)
            #expect(bench.sent("Range") == ["bytes=100000-"], sourceLocation: sourceLocation)
            #expect(bench.names == ["a"] && parts.names == [], sourceLocation: sourceLocation)
            #expect(try bench.stored(id).partFolder == nil, sourceLocation: sourceLocation)
        }
    }

    @Test(
        "the bytes arrive in the folder of the parts, and only the finished file is in the destination",
        arguments: places, [Configure.Durability.process, .power])
    func complete(_ place: Place, _ durability: Configure.Durability) async throws {
        let parts = try place.folder()
        let bench = try await Bench(content: Self.content) {
            $0.partsFolder = parts.url
            $0.durability = durability
        }
        let id = try await bench.completed("a")
        let checksum = try Checksum(.sha256, hex: Bytes.sha256(Self.content))
        try await bench.completed("digest") { $0.options.checksum = checksum }
        try await bench.completed("inside") { $0.directory = nil }
        #expect(try bench.out("a") == Self.content && bench.out("digest") == Self.content)
        #expect(bench.names == ["a", "digest"] && parts.names == [])
        let record = try bench.stored(id)
        #expect(record.partFolder == nil && record.claim(bench.out + "/a") == .ours)
        for try await file in bench.messager.verify(.all) { #expect(file.result == .right, "\(file)") }
    }

    @Test("the record of a running task names the part file in its folder", arguments: places)
    func partURL(_ place: Place) async throws {
        let task = try await Suspended(place)
        let bench = try await task.next()
        let record = try #require(await bench.messager.record(.id(task.id)))
        #expect(record.partURL?.path == "\(task.parts.path)/\(task.part)")
        try await task.expectResumed(in: bench)
    }

    @Test(
        "a task continues with its bytes, whatever the option says now", arguments: places,
        [Place.sameFileSystem, nil])
    func optionChanged(_ before: Place, _ after: Place?) async throws {
        let task = try await Suspended(before)
        let other = try after?.folder()
        try await task.expectResumed(in: try await task.next { $0.partsFolder = other?.url })
        #expect(other?.names ?? [] == [])
    }

    /// What a process leaves that is killed while it brings the part to the destination.
    enum Interruption: CaseIterable {
        case copying, copied, removed

        func leave(_ name: String, in parts: String, and home: String) throws {
            let part = try PartFile(reading: name, in: Folder(path: parts))
            let copy = try PartFile(in: Folder(path: home), name: name)
            let bytes = try part.bytes(at: 0, count: self == .copying ? 50_000 : 100_000)
            try bytes.withUnsafeBytes { try copy.write($0, at: 0) }
            copy.setTime(part.time)
            if self == .removed { part.remove() }
        }
    }

    @Test(
        "killed on the way to the destination: no byte is lost, and no file is left", arguments: places,
        Interruption.allCases)
    func killed(_ place: Place, _ interruption: Interruption) async throws {
        let task = try await Suspended(place)
        try interruption.leave(task.part, in: task.parts.path, and: task.first.out)
        try await task.expectResumed(in: try await task.next { $0.partsFolder = task.parts.url })
    }

    @Test(
        "cancel and trash remove the part and its copy", arguments: Interruption.allCases, [Verb.cancel, .trash])
    func removed(_ interruption: Interruption, _ verb: Verb) async throws {
        let task = try await Suspended(.sameFileSystem)
        try interruption.leave(task.part, in: task.parts.path, and: task.first.out)
        let bench = try await task.next()
        _ = try await verb == .cancel ? bench.control.cancel(.id(task.id)) : bench.control.trash(.id(task.id))
        #expect(task.parts.names == [] && bench.names == [])
    }

    @Test("the part is lost: the file is fetched again, into the folder of now")
    func lost() async throws {
        let task = try await Suspended(.sameFileSystem)
        try FileManager.default.removeItem(at: task.parts.url)
        let bench = try await task.next()
        _ = try await bench.control.resume(.id(task.id))
        try await bench.expect("a", Self.content, of: task.id)
        #expect(bench.sent("Range") == ["-"] && bench.names == ["a"])
        #expect(!FileManager.default.fileExists(atPath: task.parts.path))
    }

    @Test("the folder of the parts has moved with its base: the task continues")
    func moved() async throws {
        let (gate, old) = (TestGate(), try TemporaryFolder())
        let settings = { (folder: TemporaryFolder) in
            { (configure: inout Configure) in
                configure.bases = ["dl": folder.file("out"), "parts": folder.file("parts")]
                configure.partsFolder = folder.file("parts/deep")
            }
        }
        let first = try await Bench(in: old, settings: settings(old)) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let id = try await first.add("a")
        await gate.reached()
        await first.downloader.close()
        let payload = try InfoFile.rawPayload(first.workPath.infoPath(id))
        #expect(payload.contains(#""partFolder":"parts:deep""#), "\(payload)")
        let new = try TemporaryFolder()
        for name in ["work", "out", "parts"] {
            try FileManager.default.moveItem(at: old.file(name), to: new.file(name))
        }
        let second = try await Bench(in: new, content: Self.content, settings: settings(new))
        try await second.expect("a", Self.content, of: id)
        #expect(second.sent("Range") == ["bytes=100000-"] && second.names == ["a"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: new.path + "/parts/deep") == [])
    }

    @Test("files with one name in two destinations do not meet in the folder of the parts", arguments: places)
    func sameName(_ place: Place) async throws {
        let parts = try place.folder()
        let bench = try await Bench(settings: { $0.partsFolder = parts.url }) { request, _ in
            .file(Array((request.urlRequest.url?.query ?? "").utf8), to: request)
        }
        for name in ["x", "y"] {
            try await bench.completed("http://h.example/a?\(name)") { $0.directory = "\(bench.out)/\(name)" }
        }
        for name in ["x", "y"] { #expect(try bench.out("\(name)/a") == Array(name.utf8)) }
        #expect(parts.names == [])
    }

    @Test("somebody else's file has the part's name in the destination: the error names it, and the bytes are kept")
    func foreign() async throws {
        let task = try await Suspended(.sameFileSystem)
        #expect(symlink("/nowhere", task.home) == 0)
        let bench = try await task.next()
        _ = try await bench.control.resume(.id(task.id))
        let error = try #require(await bench.finished(task.id)?.error)
        #expect(error.code == .destination && error.message.contains(task.home))
        #expect(task.parts.names == [task.part] && bench.names == [task.part])
        #expect(unlink(task.home) == 0)
        _ = try await bench.control.retry(.id(task.id))
        try await task.expectResumed(in: bench)
    }

    @Test("before the first byte: another name is used")
    func foreignBefore() async throws {
        let parts = try TemporaryFolder()
        let bench = try await Bench(content: Self.content) { $0.partsFolder = parts.url }
        let name = FileNameRules.partName(for: "a", id: bench.task("a").id)
        try FileManager.default.createDirectory(atPath: bench.out, withIntermediateDirectories: true)
        #expect(symlink("/nowhere", "\(bench.out)/\(name)") == 0)
        try await bench.completed("a")
        #expect(bench.names == [name, "a"] && parts.names == [])
    }

    @Test("another path of the destination is no other folder")
    func destinationItself() async throws {
        let gate = TestGate()
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(at: folder.file("out"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(at: folder.file("link"), withDestinationURL: folder.file("out"))
        let bench = try await Bench(in: folder, settings: { $0.partsFolder = folder.file("link") }) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let id = try await bench.add("a")
        await gate.reached()
        #expect(try await bench.record(id).partFolder == nil)
        gate.open()
        try await bench.expect("a", Self.content, of: id)
        #expect(bench.names == ["a"])
    }

    @Test("a folder in the work path, or one that cannot be made, fails the task; no file URL is refused")
    func unusable() async throws {
        let folder = try TemporaryFolder()
        try folder.write([], to: "file")
        for name in ["work/parts", "file/parts"] {
            let bench = try await Bench(in: folder, content: Self.content) { $0.partsFolder = folder.file(name) }
            let error = try #require(await bench.finished(try await bench.add(name.folderPart))?.error)
            #expect(error.code == .destination && error.message.contains(name))
            #expect(bench.names == [])
            await bench.downloader.close()
        }
        var configure = Configure(workPath: folder.file("work"))
        configure.partsFolder = URL(string: "https://h.example/")
        #expect(throws: DownloadError.self) { try configure.validate() }
    }

    @Test("a damaged file is repaired, and a changed one refreshed", arguments: places)
    func renewed(_ place: Place) async throws {
        let (parts, content) = (try place.folder(), Bytes.pattern(count: 3 << 20))
        let bench = try await Bench(content: content) { $0.partsFolder = parts.url }
        let id = try await bench.completed("a")
        try Bytes.damage(bench.out + "/a", at: (1 << 20) + 5)
        var found: [VerifiedFile] = []
        for try await file in bench.messager.verify(.all) { found.append(file) }
        try await bench.control.repair(found)
        try await bench.expect("a", content, of: id)
        #expect(bench.transport.requests.count == 2 && bench.sent("Range")[1].hasPrefix("bytes="))
        #expect(bench.names == ["a"] && parts.names == [])
    }

    @Test("bytes with a wrong digest are set aside beside the part, and go with the task")
    func rejected() async throws {
        let parts = try TemporaryFolder()
        let bench = try await Bench(content: Self.content) { $0.partsFolder = parts.url }
        let id = try await bench.add("a") {
            $0.options.checksum = try? Checksum(.md5, hex: "d41d8cd98f00b204e9800998ecf8427e")
        }
        #expect(await bench.finished(id)?.error?.code == .checksumMismatch)
        #expect(parts.names.count == 1 && parts.names[0].hasSuffix(".fkrejected") && bench.names == [])
        _ = try await bench.control.trash(.id(id))
        #expect(parts.names == [])
    }

    @Test("killed while the response chain runs: it runs again with the same bytes", arguments: places)
    func responseChain(_ place: Place) async throws {
        let parts = try place.folder()
        let first = try await Bench(content: Self.content) { $0.partsFolder = parts.url }
        let gate = first.holdResponses()
        let id = try await first.add("a")
        await gate.reached()
        let copy = try first.snapshot()
        let chains = MiddlewareChains()
        chains.onResponse("after") { _ in }
        let second = try await Bench(in: copy, chains: chains, content: Self.content) { $0.partsFolder = parts.url }
        try await second.expect("a", Self.content, of: id)
        #expect(second.names == ["a"] && parts.names == [] && second.transport.requests.count <= 1)
        gate.open()
    }
}
