import FKMiddleware
import FKTesting
import Foundation
import TestSupport
import Testing

@testable import FKCore

/// What came before the end of an iteration, and its error.
struct ReadBytes {
    var bytes: [UInt8] = []
    var error: DownloadError?

    /// - Parameter gate: is opened once the first chunk was read; nil, the default, for none.
    init(_ sequence: DownloadedBytes, opening gate: Gate? = nil) async {
        do throws(DownloadError) {
            var iterator = sequence.makeAsyncIterator()
            while let chunk = try await iterator.next() {
                bytes += chunk
                gate?.open()
            }
        } catch { self.error = error }
    }
}

@Suite("Bytes in order, while they arrive")
struct StreamTests {
    private let folder: TemporaryFolder
    private let server: FaultServer
    private let downloader: Downloader
    private let content = Bytes.pattern(count: 6 << 20)

    init() throws {
        (folder, server) = (try TemporaryFolder(), try FaultServer())
        var configure = Configure(workPath: folder.file("work"))
        configure.connections = .fixed(4)
        configure.retry.baseDelay = .zero
        // A server that stalls on purpose is not left, also where the tests take long.
        configure.transport.stallTimeout = .seconds(600)
        downloader = try Downloader(configure)
        downloader.activateQueue()
    }

    private func serve(
        _ path: String, _ change: @escaping @Sendable (FaultResponse, FaultRequest) -> FaultResponse = { one, _ in one }
    ) {
        server.route(path) { [content] in change(.ranged(content, for: $0, etag: "\"a\""), $0) }
    }

    private var leftovers: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder.file("work/streams").path)) ?? []
    }

    @Test("a stream knows the pauses that servers have asked other commands for")
    func pauses() throws {
        let outer = WorkPath(folder.file("work").path)
        var notice = WaitNotice()
        notice.hosts["h"] = .init(until: Date(timeIntervalSince1970: 4e9), seconds: 60)
        try notice.write(in: outer)
        let inner = try StreamFolder.make(in: outer) { ($0, $0.waitNotice) }
        #expect(inner.1 == notice)
        // What the stream writes is its own.
        try WaitNotice().write(in: inner.0)
        #expect(outer.waitNotice == notice)
        StreamFolder.remove(inner.0, in: outer)
    }

    @Test("a stream gives the file over several connections, and leaves nothing")
    func whole() async throws {
        serve("/a")
        let read = await ReadBytes(try await downloader.stream(server.url("/a"), window: 2 << 20))
        #expect(read.bytes == content && read.error == nil)
        #expect(server.requests.contains { $0["Range"] != nil })
        #expect(try await downloader.messager.records(RecordQuery()).records.isEmpty)
        await downloader.close()
        #expect(leftovers.isEmpty && !FileManager.default.fileExists(atPath: folder.file("work/streams").path))
    }

    @Test("a stream can be read once, and two streams of one URL at the same time")
    func twice() async throws {
        serve("/a")
        let one = try await downloader.stream(server.url("/a"))
        let two = try await downloader.stream(server.url("/a"))
        async let first = ReadBytes(one)
        async let second = ReadBytes(two)
        #expect(await first.bytes == content)
        #expect(await second.bytes == content)
        #expect(await ReadBytes(one).error?.code == .invalidArgument)
        await downloader.close()
        #expect(leftovers.isEmpty)
    }

    @Test("offsets at the largest number are behind the file, and a window of any size is allowed")
    func largest() async throws {
        serve("/a")
        let url = server.url("/a")
        let behind = try await downloader.stream(url, range: (Int64.max - 5)..<Int64.max)
        #expect(await ReadBytes(behind).error?.code == .badRange)
        #expect(await ReadBytes(try await downloader.stream(url, window: .max)).bytes == content)
        #expect(await ReadBytes(try await downloader.stream(url, window: -1)).bytes == content)
        var builder = try Builder(url)
        builder.folder = folder.file("files")
        let task = try await downloader.add(builder)
        #expect(try await task.read(at: .max, count: 10).isEmpty)
        #expect(await ReadBytes(task.bytes(from: .max)).error?.code == .badRange)
        #expect(await ReadBytes(task.bytes(from: -1)).error?.code == .invalidArgument)
    }

    @Test("lost connections are resumed, and no byte comes twice")
    func lost() async throws {
        serve("/a") { $1.index < 9 ? $0.cut(at: 300_001) : $0 }
        let read = await ReadBytes(try await downloader.stream(server.url("/a")))
        #expect(read.bytes == content && read.error == nil)
    }

    @Test("a file that changes meanwhile: an error behind a true prefix")
    func changed() async throws {
        let other = Bytes.pattern(count: content.count, seed: 2)
        let gate = Gate()
        server.route("/a") { [content] request in
            // What is sent again before the first byte was read may be another version.
            gate.isOpen
                ? .ranged(other, for: request, etag: "\"b\"")
                : .ranged(content, for: request, etag: "\"a\"").stalling(at: 500_000, until: gate).cut(at: 1_000_000)
        }
        var builder = try Builder(server.url("/a"))
        builder.options.connections = .fixed(1)
        let read = await ReadBytes(try await downloader.stream(builder), opening: gate)
        #expect(read.error?.code == .changedOnServer, "\(String(describing: read.error))")
        #expect(read.bytes.count <= 1_000_000 && content.starts(with: read.bytes))
    }

    @Test("a connection lost where the server has no ranges: an error, unless the entity tag proves the same file")
    func unresumable() async throws {
        let gate = Gate()
        server.route("/plain") { [content] _ in
            gate.isOpen ? .ok(content) : .ok(content).stalling(at: 500_000, until: gate).cut(at: 1_000_000)
        }
        let read = await ReadBytes(try await downloader.stream(server.url("/plain")), opening: gate)
        #expect(read.error?.code == .incompleteBody, "\(String(describing: read.error))")
        #expect(read.bytes.count <= 1_000_000 && content.starts(with: read.bytes))
        let answers = Locked(0)
        server.route("/tagged") { [content] _ in
            let answer = FaultResponse.ok(content, headers: ["ETag": "\"a\""])
            let number = answers.withLock {
                $0 += 1
                return $0
            }
            return number < 3 ? answer.cut(at: 1_500_000) : answer
        }
        let tagged = await ReadBytes(try await downloader.stream(server.url("/tagged"), window: 1 << 20))
        #expect(tagged.error == nil)
        #expect(tagged.bytes == content)
    }

    @Test("a body without a length; an empty file; a missing one")
    func ends() async throws {
        server.route("/open") { [content] _ in .chunked(content, size: 30_000) }
        #expect(await ReadBytes(try await downloader.stream(server.url("/open"))).bytes == content)
        server.route("/empty") { _ in .ok([]) }
        let empty = await ReadBytes(try await downloader.stream(server.url("/empty")))
        #expect(empty.bytes.isEmpty && empty.error == nil)
        let missing = await ReadBytes(try await downloader.stream(server.url("/missing")))
        #expect(missing.bytes.isEmpty && missing.error?.code == .httpStatus && missing.error?.status == 404)
    }

    @Test("the digest of the whole file is compared at its end, the one that is given and the server's")
    func digests() async throws {
        serve("/a")
        let right = try Checksum(.sha256, hex: Bytes.sha256(content))
        #expect(await ReadBytes(try await downloader.stream(server.url("/a"), checksum: right)).error == nil)
        let wrong = try Checksum(.sha256, hex: String(repeating: "0", count: 64))
        let read = await ReadBytes(try await downloader.stream(server.url("/a"), checksum: wrong))
        #expect(read.bytes == content && read.error?.code == .checksumMismatch)
        serve("/b") { one, _ in one.adding("Repr-Digest", "sha-256=:\(Bytes.base64(.sha256, [1])):") }
        #expect(await ReadBytes(try await downloader.stream(server.url("/b"))).error?.code == .checksumMismatch)
    }

    @Test(
        "only proven pieces come out; a wrong one is fetched again, and one that stays wrong ends the stream before it")
    func pieces() async throws {
        let length: Int64 = 500_000
        var digests: [UInt8] = []
        for start in stride(from: 0, to: content.count, by: Int(length)) {
            digests += Bytes.digest(.sha256, Array(content[start..<min(content.count, start + Int(length))]))
        }
        let pieces = try #require(PieceDigests(.sha256, length: length, bytes: digests))
        var damaged = content
        damaged[1_200_000] ^= 1
        let wrong = damaged
        server.route("/once") { [content] in .ranged($0.index < 2 ? wrong : content, for: $0, etag: "\"a\"") }
        server.route("/always") { .ranged(wrong, for: $0, etag: "\"a\"") }
        for (path, isRight) in [("/once", true), ("/always", false)] {
            for connections in [1, 4] {
                var builder = try Builder(server.url(path))
                builder.description.options.pieces = pieces
                builder.options.connections = .fixed(connections)
                let read = await ReadBytes(try await downloader.stream(builder, window: 1 << 20))
                if isRight {
                    #expect(read.bytes == content && read.error == nil, "\(connections)")
                } else {
                    #expect(read.error?.code == .checksumMismatch, "\(connections)")
                    #expect(read.bytes == Array(content[..<1_000_000]), "\(connections)")
                }
            }
        }
    }

    @Test("a range, of a server with ranges and of one without", arguments: [true, false])
    func range(hasRanges: Bool) async throws {
        if hasRanges {
            serve("/a")
        } else {
            server.route("/a") { [content] _ in .ok(content, headers: ["ETag": "\"a\""]) }
        }
        let url = try Builder(server.url("/a"))
        for (start, end) in [(0, 10), (4_000_001, 5_000_000), (5_999_999, 7_000_000), (3_500_000, Int.max)] {
            let range = Int64(start)..<Int64(end)
            let read = await ReadBytes(try await downloader.stream(url, range: range, window: 1 << 20))
            #expect(read.bytes == Array(content[start..<min(end, content.count)]) && read.error == nil, "\(range)")
        }
        let behind = await ReadBytes(try await downloader.stream(url, range: 7_000_000..<8_000_000))
        #expect(behind.error?.code == .badRange && behind.bytes.isEmpty)
        await #expect(throws: DownloadError.self) { try await downloader.stream(url, range: 5..<5) }
    }

    @Test("a reader that does not read stops the server, and the disk has the window alone")
    func backpressure() async throws {
        let long = Bytes.pattern(count: 24 << 20)
        server.route("/a") { .ranged(long, for: $0, etag: "\"a\"") }
        var builder = try Builder(server.url("/a"))
        builder.options.connections = .fixed(2)
        var iterator = try await downloader.stream(builder, window: 2 << 20).makeAsyncIterator()
        var bytes = try await iterator.next() ?? Data()
        await server.wait { $0.contains { $0.timesBlocked > 0 } }
        let root = try #require(leftovers.first)
        let place = folder.file("work/streams/\(root)/files").path
        // On a slow machine the server waits before the window is full, too.
        let size = try await eventually { () -> Int64? in
            let files = FileManager.default.enumerator(atPath: place)
            let sizes = files?.compactMap { _ in (files?.fileAttributes?[.size] as? NSNumber)?.int64Value }
            return sizes?.max().flatMap { $0 >= 1 << 20 ? $0 : nil }
        }
        #expect(size.map { $0 <= (2 << 20) + (64 << 10) } == true)
        while let chunk = try await iterator.next() { bytes += chunk }
        #expect(Array(bytes) == long)
    }

    @Test("an iteration that ends early, or whose Swift task is cancelled, ends the stream")
    func cancelled() async throws {
        let gate = Gate()
        serve("/a") { one, _ in one.stalling(at: 500_000, until: gate) }
        for try await chunk in try await downloader.stream(server.url("/a")) {
            #expect(!chunk.isEmpty)
            break
        }
        let bytes = try await downloader.stream(server.url("/a"))
        let (began, beginning) = AsyncStream.makeStream(of: Void.self)
        let task = Task { () -> DownloadError? in
            do throws(DownloadError) {
                var iterator = bytes.makeAsyncIterator()
                while try await iterator.next() != nil { beginning.yield() }
                return nil
            } catch { return error }
        }
        for await _ in began { break }
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        await downloader.close()
        #expect(leftovers.isEmpty)
        await #expect(throws: DownloadError.self) { try await downloader.stream(server.url("/a")) }
    }

    @Test("what a killed process has left goes when the work path is opened next; that of a living one stays")
    func killed() async throws {
        let left = folder.file("work/streams/0123/files/ab")
        try FileManager.default.createDirectory(at: left, withIntermediateDirectories: true)
        serve("/a") { one, _ in one.stalling(at: 100_000, until: Gate()) }
        let bytes = try await downloader.stream(server.url("/a"))
        var iterator = bytes.makeAsyncIterator()
        _ = try await iterator.next()
        #expect(leftovers.count == 2)
        try WorkPath(folder.file("work")).open(create: false)
        #expect(leftovers.count == 1 && !leftovers.contains("0123"))
        await downloader.close()
    }

    // MARK: Tasks

    @Test("a task is read while it arrives, and its file is complete")
    func task() async throws {
        let gate = Gate()
        serve("/a") { $1.index == 0 ? $0.stalling(at: 700_000, until: gate) : $0 }
        var builder = try Builder(server.url("/a"))
        builder.folder = folder.file("files")
        builder.options.connections = .fixed(1)
        let task = try await downloader.add(builder)
        var iterator = task.bytes().makeAsyncIterator()
        var bytes = [UInt8]()
        while bytes.count < 700_000, let chunk = try await iterator.next() { bytes += chunk }
        #expect(bytes == Array(content[..<700_000]))
        #expect(await task.info?.availableRanges == [0..<700_000])
        gate.open()
        while let chunk = try await iterator.next() { bytes += chunk }
        #expect(bytes == content)
        #expect(try Data(contentsOf: try await task.file) == Data(content))
        #expect(await ReadBytes(task.bytes(from: 6_000_000)).bytes == Array(content[6_000_000...]))
        #expect(try await Array(task.read(at: 6_291_450, count: 100)) == Array(content[6_291_450...]))
        #expect(await task.info?.availableRanges == [0..<Int64(content.count)])
        #expect(await ReadBytes(task.bytes(from: 7_000_000)).error?.code == .badRange)
    }

    @Test("bytes from the middle come first, also where the only connection is in use", arguments: [1, 3])
    func middle(connections: Int) async throws {
        let gate = Gate()
        serve("/a") { $1["Range"] == nil ? $0.stalling(at: 700_000, until: gate) : $0 }
        var builder = try Builder(server.url("/a"))
        builder.folder = folder.file("files")
        builder.options.connections = .fixed(connections)
        let task = try await downloader.add(builder)
        #expect(try await Array(task.read(at: 100, count: 500_000)) == Array(content[100..<500_100]))
        #expect(try await Array(task.read(at: 5_000_000, count: 1_000)) == Array(content[5_000_000..<5_001_000]))
        #expect(try await Array(task.read(at: 3_000_000, count: 1_000)) == Array(content[3_000_000..<3_001_000]))
        gate.open()
        #expect(try Data(contentsOf: try await task.file) == Data(content))
    }

    @Test("a wrong digest of a task is thrown behind its last byte")
    func wrongTask() async throws {
        serve("/a")
        let wrong = try Checksum(.sha256, hex: String(repeating: "0", count: 64))
        let task = try await downloader.add(server.url("/a"), to: folder.file("files"), checksum: wrong)
        let read = await ReadBytes(task.bytes())
        #expect(read.error?.code == .checksumMismatch, "\(String(describing: read.error))")
        #expect(content.starts(with: read.bytes))
    }

    @Test("a reader that is not at the end yet gets the reason why the bytes are dropped")
    func wrongEarly() async throws {
        let gate = Gate()
        serve("/a") { one, _ in one.stalling(at: 300_000, until: gate) }
        let wrong = try Checksum(.sha256, hex: String(repeating: "0", count: 64))
        let task = try await downloader.add(server.url("/a"), to: folder.file("files"), checksum: wrong)
        var iterator = task.bytes().makeAsyncIterator()
        #expect(try await iterator.next()?.isEmpty == false)
        gate.open()
        await #expect(throws: DownloadError.self) { try await task.file }
        let error = await #expect(throws: DownloadError.self) { while try await iterator.next() != nil {} }
        #expect(error?.code == .checksumMismatch, "\(String(describing: error))")
    }

    @Test("a task that is forgotten ends its readers; one that is gone has none")
    func forgotten() async throws {
        let gate = Gate()
        serve("/a") { one, _ in one.stalling(at: 300_000, until: gate) }
        let task = try await downloader.add(server.url("/a"), to: folder.file("files"))
        var iterator = task.bytes().makeAsyncIterator()
        _ = try await iterator.next()
        try await task.trash()
        await #expect(throws: DownloadError.self) { while try await iterator.next() != nil {} }
        #expect(await ReadBytes(task.bytes()).error?.code == .notFound)
    }

    @Test("another downloader of the work path reads a task that this one fetches")
    func followed() async throws {
        let gate = Gate()
        serve("/a") { $1.index == 0 ? $0.stalling(at: 2_000_000, until: gate) : $0.stalling(at: 0, until: gate) }
        var builder = try Builder(server.url("/a"))
        builder.folder = folder.file("files")
        let task = try await downloader.add(builder)
        let client = try Downloader(Configure(workPath: folder.file("work")), role: .client)
        let followed = DownloadTask(task.id, task.url, in: client)
        #expect(try await Array(followed.read(at: 0, count: 300_000)) == Array(content[..<300_000]))
        gate.open()
        #expect(await ReadBytes(followed.bytes()).bytes == content)
        await client.close()
    }
}
