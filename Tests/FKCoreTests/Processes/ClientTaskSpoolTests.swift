import TestSupport
import Testing

@Suite("Lists that are handed in")
struct ClientTaskSpoolTests {
    private static let shared: TaskOptions = {
        var options = TaskOptions()
        options.headers = [.init("Authorization", "secret")]
        return options
    }()

    private static let list = ListOrigin("SHA256SUMS", signer: nil)

    private static func task(_ index: Int) throws -> TaskDescription {
        var task = TaskDescription(url: "http://h.example/\(index)?a=%20")
        task.directory = "/d/\u{e9}\u{1}\n"
        task.options = shared
        switch index % 7 {
        case 1:
            task.options.checksum = try Checksum(parsing: "md5=d41d8cd98f00b204e9800998ecf8427e")
            task.options.size = Int64(index)
        case 2: task.options = TaskOptions()
        case 3:
            task.options.maxAttempts = 3
            task.mirrors = ["http://m.example/\(index)"]
            task.attributes = ["a\n": "\u{1F600}"]
        case 4: task.fileName = "n\(index)"
        case 5:
            task.options.checksum = try Checksum(parsing: "md5=d41d8cd98f00b204e9800998ecf8427e")
            task.options.list = list
        case 6: task.options.list = ListOrigin("other", signer: "me")
        default: break
        }
        return task
    }

    @Test("tasks come back in order and unchanged, whatever stays in memory", arguments: [0, 1, 5_000])
    func order(count: Int) throws {
        let folder = try TemporaryFolder()
        let tasks = try (0..<count).map(Self.task)
        let spool = TaskSpool(folder: folder.path, shared: Self.shared, list: Self.list)
        for task in tasks { try spool.append(task) }
        #expect(spool.count == count)
        #expect(try spool.all() == tasks)
        // The file has no name, so nothing of it stays behind.
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        let first = TaskDescription(url: "http://h.example/first")
        spool.prepend([first])
        var taken: [TaskDescription] = []
        while true {
            let portion = try spool.drain(atMost: 999)
            if portion.isEmpty { break }
            #expect(portion.count <= 999)
            taken += portion
            #expect(spool.count == count + 1 - taken.count)
            #expect(try spool.all() == Array(([first] + tasks).dropFirst(taken.count)))
        }
        #expect(taken == [first] + tasks && spool.isEmpty)
    }

    @Test("a part of a list is kept in a spool of its own")
    func filtered() throws {
        let folder = try TemporaryFolder()
        let spool = TaskSpool(folder: folder.path, shared: Self.shared, list: Self.list)
        let tasks = try (0..<5_000).map(Self.task)
        for task in tasks { try spool.append(task) }
        let half = try spool.filtered(folder: folder.path) { $0.id.hex.utf8.last.map { $0 % 2 == 0 } ?? false }
        #expect(spool.isEmpty)
        #expect(try half.all() == tasks.filter { $0.id.hex.utf8.last.map { $0 % 2 == 0 } ?? false })
    }

    @Test("without room for the list the error names the folder")
    func noRoom() throws {
        let spool = TaskSpool(folder: "/nonexistent/folder")
        for index in 0..<TaskSpool.countInMemory { try spool.append(try Self.task(index)) }
        #expect {
            try spool.append(try Self.task(0))
        } throws: {
            ($0 as? DownloadError)?.message.contains("/nonexistent/folder") ?? false
        }
    }
}
