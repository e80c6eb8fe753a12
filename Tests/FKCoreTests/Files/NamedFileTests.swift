import TestSupport
import Testing

@testable import FKEngine

/// A response middleware names a file as the finished one, or changes it.
@Suite("Whose file a response middleware has named")
struct NamedFileTests {
    typealias Found = NamedFile.Found
    private static let content = Bytes.pattern(count: 3_000)

    @Test("the table of claims")
    func claims() {
        let table: [(String, Found, NamedFile)] = [
            ("a symlink to the received file", Found(isRegular: false, isReceived: true), .anothers),
            ("the received file", Found(isReceived: true), .ours),
            ("the received file with another task's mark", Found(isReceived: true, isOfAnother: true), .ours),
            ("a copy with attributes", Found(isMarked: true, isNew: false), .ours),
            ("another task's new file", Found(isOfAnother: true, isNew: true), .anothers),
            ("another task's file in its place", Found(isAtItsPlace: true, isOfAnother: true), .anothers),
            ("a second name of the copy left behind", Found(isCopyLeftBehind: true, isNew: false), .ours),
            ("a new file", Found(isNew: true), .ours), ("an older file", Found(isNew: false), .anothers),
            ("a file of unknown age", Found(), .anothers),
            ("a file of unknown age and device", Found(isReceived: nil), .anothers),
            ("a file of unknown age in its place", Found(isAtItsPlace: true), .ours),
            ("an older file in its place", Found(isAtItsPlace: true, isNew: false), .anothers),
        ]
        for (name, found, claim) in table { #expect(NamedFile.judge(found) == claim, "\(name)") }
    }

    /// A bench whose response middleware names `other`, after `prepare`.
    private func bench(
        _ name: String = "other", _ prepare: @escaping @Sendable (_ received: URL, _ other: URL) throws -> Void
    ) async throws -> (Bench, URL) {
        let bench = try await Bench(content: Self.content)
        let other = bench.folder.file(name)
        bench.chains.register(
            response: ResponseStep { response in
                guard response.error == nil, let file = response.fileURL else { return response }
                try prepare(file, other)
                var response = response
                response.fileURL = other
                response.leftBehind.append(file)
                return response
            })
        return (bench, other)
    }

    @Test("another file of the same length, which was there before: the attempt fails, and trash leaves it")
    func sameLength() async throws {
        let (bench, other) = try await bench { _, _ in }
        let old = [UInt8](repeating: 7, count: Self.content.count)
        try Data(old).write(to: other)
        let id = try await bench.add("a")
        let error = try #require(await bench.finished(id)?.error)
        #expect(error.code == .middleware && error.message.contains("response step names \(other.path)"), "\(error)")
        #expect(try bench.out(bench.names[0]) == Self.content)
        _ = try await bench.control.trash(.id(id))
        #expect([UInt8](try Data(contentsOf: other)) == old)
    }

    @Test(
        "the file was there before and has the same bytes, or the received one is gone: it counts, and trash leaves it",
        arguments: [true, false])
    func existing(_ isSame: Bool) async throws {
        let (bench, other) = try await bench { file, _ in if !isSame { try FileManager.default.removeItem(at: file) } }
        let old = isSame ? Self.content : [1, 2, 3]
        try Data(old).write(to: other)
        let id = try await bench.completed("a")
        let record = try bench.stored(id)
        #expect(record.isForeign == true && record.path == other.path && bench.names == [])
        let found = FileVerifier(bench.workPath).verify(record)
        #expect(found.result == .right, "\(found)")
        _ = try await bench.control.trash(.id(id))
        #expect([UInt8](try Data(contentsOf: other)) == old)
    }

    @Test("a copy that the middleware has made is the task's, and trash deletes it")
    func copied() async throws {
        let (bench, other) = try await bench { try FileManager.default.copyItem(at: $0, to: $1) }
        let id = try await bench.completed("a")
        let record = try bench.stored(id)
        #expect(record.isForeign == nil && record.path == other.path && record.changed == nil)
        #expect(bench.names == [])
        _ = try await bench.control.trash(.id(id))
        #expect(!FileManager.default.fileExists(atPath: other.path))
    }

    @Test(
        "a folder, a FIFO, a symlink to a folder, nothing: the attempt fails with the middleware's name",
        arguments: ["folder", "pipe", "link", "nothing"])
    func noFile(_ kind: String) async throws {
        let (bench, other) = try await bench { _, other in
            switch kind {
            case "folder": #expect(mkdir(other.path, 0o777) == 0)
            case "pipe": #expect(mkfifo(other.path, 0o666) == 0)
            case "link": #expect(symlink("/", other.path) == 0)
            default: break
            }
        }
        let id = try await bench.add("a")
        let error = try #require(await bench.finished(id)?.error)
        #expect(error.code == .middleware && error.message.contains("response step names \(other.path)"), "\(error)")
        #expect(bench.names == [FileNameRules.rejectedName(for: "a", id: id)])
    }

    // MARK: Changed files

    enum Change: String, CaseIterable, Sendable {
        case overwritten, appended, cut, rewritten, timeSetBack

        func perform(_ file: URL) throws {
            let handle = try FileHandle(forUpdating: file)
            defer { try? handle.close() }
            switch self {
            case .overwritten, .timeSetBack:
                var status = stat()
                #expect(stat(file.path, &status) == 0)
                try handle.seek(toOffset: 1_000)
                try handle.write(contentsOf: Data("QQ".utf8))
                if self == .timeSetBack {
                    #expect(futimens(handle.fileDescriptor, [status.st_atim, status.st_mtim]) == 0)
                }
            case .appended:
                try handle.seekToEnd()
                try handle.write(contentsOf: Data("QQ".utf8))
            case .cut: try handle.truncate(atOffset: 1_000)
            case .rewritten:
                let new = file.appendingPathExtension("new")
                try Data("new".utf8).write(to: new)
                #expect(rename(new.path, file.path) == 0)
            }
        }
    }

    @Test(
        "a file that a middleware has changed: verify knows it, whatever its length and digest, and finds later damage",
        arguments: Change.allCases, [3_000, 3 << 20])
    func changed(_ change: Change, _ count: Int) async throws {
        #if os(Linux)
            let content = Bytes.pattern(count: count)
            let bench = try await Bench(content: content)
            let isOff = Observed(false)
            bench.chains.register(
                response: ResponseStep { response in
                    if let file = response.fileURL, response.error == nil, !isOff.value { try change.perform(file) }
                    return response
                })
            let digester = Digester(.sha256, length: Int64(count))
            content.withUnsafeBytes { digester.update($0) }
            let digest = try Checksum(.sha256, hex: digester.hex())
            let id = try await bench.completed("a") { $0.options.checksum = digest }
            let verifier = FileVerifier(bench.workPath)
            let found = verifier.verify(try bench.stored(id))
            #expect(found.result == .right && found.reason == "it is as response step has left it", "\(found)")
            let file = bench.folder.file("out/a")
            try Data([1] + [UInt8](try Data(contentsOf: file)).dropFirst()).write(to: file)
            let damaged = verifier.verify(try bench.stored(id))
            #expect(damaged.result == .damaged && damaged.damaged.isEmpty)
            // A repair fetches the whole file, and the chain changes it once more.
            _ = await bench.engine.answer(.renew([Renewal(id, damaged: damaged.damaged)]))
            #expect(await bench.finished(id)?.state == .complete)
            #expect(verifier.verify(try bench.stored(id)).result == .right)
            isOff.update { $0 = true }
            _ = await bench.engine.answer(.renew([Renewal(id, damaged: [])]))
            #expect(await bench.finished(id)?.state == .complete)
            let record = try bench.stored(id)
            #expect(record.changed == nil)
            #expect(verifier.verify(record).reason == "its sha-256 is right")
        #endif
    }
}
