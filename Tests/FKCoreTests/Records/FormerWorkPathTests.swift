import TestSupport
import Testing

/// `Tests/Fixtures/work-path-1.0.0` is a work path that the sources of version 1.0.0 (commit 61a1ae2) have written: with a complete
/// member, a failed one, a suspended one with half of its bytes and a waiting one with options in the barrel `set`, and a
/// cancelled task.
@Suite("A work path of version 1.0.0")
struct FormerWorkPathTests {
    private static let origin = "http://127.0.0.1:8765/"
    private static let names = ["finished.bin", "missing.bin", "suspended.bin", "cancelled.bin", "waiting.bin"]

    /// The body of the server that the fixture was made with.
    private static func body(_ count: Int, _ seed: Int) -> [UInt8] {
        (0..<count).map { UInt8(($0 * 7 + seed + $0 >> 8) % 251) }
    }

    private static func content(_ url: String) -> [UInt8] {
        switch url.split(separator: "/").last {
        case "finished.bin": body(3_000, 1)
        case "suspended.bin": body(40_000, 2)
        case "waiting.bin": body(2_000, 3)
        case "cancelled.bin": body(40_000, 4)
        default: [1, 2, 3]
        }
    }

    /// A copy of the work path, which only its owner may change, as `work` of a new folder.
    private static func copy() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let work = folder.file("work")
        try FileManager.default.copyItem(at: Repository.url("Tests/Fixtures/work-path-1.0.0"), to: work)
        let paths = [""] + (FileManager.default.enumerator(atPath: work.path)?.compactMap { $0 as? String } ?? [])
        for path in paths {
            var isFolder: ObjCBool = false
            let place = work.appendingPathComponent(path).path
            _ = FileManager.default.fileExists(atPath: place, isDirectory: &isFolder)
            try FileManager.default.setAttributes(
                [.posixPermissions: isFolder.boolValue ? 0o700 : 0o600], ofItemAtPath: place)
        }
        return folder
    }

    private static func bench(in folder: TemporaryFolder) async throws -> Bench {
        try await Bench(in: folder, isActive: false) { request, _ in
            let content = content(request.urlRequest.url?.path ?? "")
            return .file(content, etag: "\"one\"", to: request)
        }
    }

    /// Makes the records those of files that were written in the present boot, at the places where the copies are.
    private static func move(_ id: TaskID, in folder: TemporaryFolder) throws {
        let workPath = WorkPath(folder.file("work"))
        let path = workPath.infoPath(id)
        var contents = try InfoFile.read(path)
        contents.record.bootID = BootID.current
        let files = folder.file("work").path + "/files/\(id.hex.prefix(2))/\(id.hex)/"
        if let name = contents.record.partName, let time = contents.record.partTime {
            var times = [timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))]
            times.append(times[0])
            _ = utimensat(AT_FDCWD, files + name, times, 0)
        }
        try InfoFile.update(path, record: contents.record, handle: &contents.handle)
    }

    @Test("in the boot that wrote it, its tasks, its barrel and its limits are read")
    func read() async throws {
        let folder = try Self.copy()
        for name in Self.names { try Self.move(TaskDescription(url: Self.origin + name).id, in: folder) }
        let bench = try await Self.bench(in: folder)
        let infos = try await bench.messager.records().records.map(\.info)
        #expect(infos.map(\.url) == Self.names.map { Self.origin + $0 })
        #expect(infos.map(\.state) == [.complete, .error, .suspend, .cancel, .idle])
        #expect(infos.map(\.count.received) == [3_000, 0, 20_000, 0, 0])
        #expect(infos[1].error?.status == 404)
        let suspended = try #require(await bench.messager.record(.id(infos[2].id)))
        #expect(suspended.attributes == ["owner": "me"] && suspended.priority == 3)
        let barrel = try await bench.downloader.barrel("set").info
        #expect(barrel.total == 4 && barrel.count.received == 23_000)
        #expect(try await bench.control.rateLimit() == 5 << 20)
        #expect(try await bench.control.rateLimit(ofBarrel: "set") == 1 << 20)
        #expect(await bench.downloader.takeProblems().isEmpty)
    }

    @Test("its tasks continue: nothing is fetched twice, and options and mirrors are kept", arguments: [true, false])
    func continues(inItsBoot: Bool) async throws {
        let folder = try Self.copy()
        let ids = Self.names.map { TaskDescription(url: Self.origin + $0).id }
        if inItsBoot { for id in ids { try Self.move(id, in: folder) } }
        let bench = try await Self.bench(in: folder)
        let files = try await bench.messager.records().records.map { (name: $0.name, id: $0.id) }
        #expect(files.map(\.id) == ids)
        // The limits would delay the bytes by the clock of the test.
        try await bench.control.setRateLimit(nil)
        try await bench.control.setRateLimit(nil, ofBarrel: "set")
        bench.downloader.activateQueue()
        try await bench.control.resumeAll()
        for id in ids {
            let info = try #require(await bench.finished(id))
            #expect(info.state == .complete, "\(info.url): \(String(describing: info.error))")
            // The record of the complete file has the place where the work path was written.
            let place = info.fileURL.map { file in
                let name = file.lastPathComponent
                return folder.file("work").path + "/files/\(id.hex.prefix(2))/\(id.hex)/\(name)"
            }
            #expect(try bytes(#require(place)) == Self.content(info.url), "\(info.url)")
        }
        // The complete file is not fetched again; the suspended one continues if its bytes are from this boot.
        let requests = bench.transport.requests.map { request in
            let name = request.urlRequest.url?.lastPathComponent ?? ""
            return "\(name) \(request.urlRequest.value(forHTTPHeaderField: "Range") ?? "-")"
        }
        let rest = inItsBoot ? "bytes=20000-" : "-"
        #expect(requests.sorted() == ["cancelled.bin -", "missing.bin -", "suspended.bin \(rest)", "waiting.bin -"])
        #expect(bench.sent("X-Kept").sorted() == ["-", "-", "-", "yes"])
        let waiting = try #require(await bench.messager.record(.id(ids[4])))
        #expect(waiting.mirrors == [Self.origin + "mirror/waiting.bin"])
        // All have ended. The finished file is not at the place that its record names, because the work path was moved.
        let sum = try await bench.downloader.barrel("set").info
        #expect(!sum.isComplete && sum.isOver)
    }

    private func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }
}
