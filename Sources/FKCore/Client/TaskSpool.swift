import FKEngine
import FKMiddleware
import Foundation

/// Tasks that are to be handed in, in order. The first ones are in memory, and the others in a file without a name, because
/// a million tasks take a gigabyte.
///
/// It is filled once and then emptied by `drain`. It is safe to use from any thread.
package final class TaskSpool: Sendable {
    private struct State {
        var first: [TaskDescription] = []
        var file: File?
        var count = 0
    }

    /// The number of tasks that stay in memory.
    package static let countInMemory = 4_096
    /// The bytes that are written or read at once.
    private static let portion = 1 << 18

    private let folder: String
    /// The options that most tasks share. They are not written.
    private let shared: TaskOptions
    /// The list that most tasks are from.
    private let list: ListOrigin?
    private let state = Locked(State())

    /// Creates an empty spool.
    ///
    /// - Parameters:
    ///   - folder: the absolute path of the folder for the file, which is created when it is needed, and has no name.
    ///   - shared: the options that most tasks have.
    ///   - list: the list that most tasks with a digest have as well; nil, the default, for none.
    package init(folder: String, shared: TaskOptions = TaskOptions(), list: ListOrigin? = nil) {
        self.folder = folder
        self.list = list
        self.shared = shared
    }

    /// Creates a spool of tasks in memory.
    package convenience init(_ tasks: [TaskDescription]) {
        self.init(folder: "/tmp")
        state.withLock { state in
            state.first = tasks
            state.count = tasks.count
        }
    }

    /// The number of tasks that have not been taken.
    package var count: Int { state.withLock(\.count) }
    /// True if every task was taken.
    package var isEmpty: Bool { count == 0 }

    /// Some of the first tasks that have not been taken. They stay.
    package var sample: [TaskDescription] { state.withLock { Array($0.first.prefix(256)) } }

    /// Adds a task behind the others.
    ///
    /// - Throws: `.noSpace` or `.disk` with the folder, if the file cannot be written.
    package func append(_ task: TaskDescription) throws(DownloadError) {
        do {
            try state.withLock { state in
                if state.file == nil, state.first.count < Self.countInMemory {
                    state.first.append(task)
                } else {
                    let file = try state.file ?? File(folder)
                    state.file = file
                    try file.write(try Entry(task, shared, list))
                }
                state.count += 1
            }
        } catch {
            let error = DownloadError(wrapping: error, code: .disk, message: "The list cannot be kept.")
            throw DownloadError(
                error.code,
                "There is no room for the list in the temporary folder \(folder): free some, or name another one with TMPDIR.",
                underlying: error.message)
        }
    }

    /// Puts tasks in front of the others.
    package func prepend(_ tasks: [TaskDescription]) {
        state.withLock { state in
            state.first = tasks + state.first
            state.count += tasks.count
        }
    }

    /// Changes the only task. It does nothing unless there is exactly one.
    package func changeOnly(_ body: (inout TaskDescription) throws -> Void) rethrows {
        try state.withLock { state in if state.count == 1, state.first.count == 1 { try body(&state.first[0]) } }
    }

    /// Removes and returns the next tasks; none at the end.
    ///
    /// - Parameter limit: the most that are returned, at least 1.
    /// - Throws: `.disk` if the file cannot be read.
    package func drain(atMost limit: Int) throws(DownloadError) -> [TaskDescription] {
        do {
            return try state.withLock { state in
                var tasks = Array(state.first.prefix(limit))
                state.first.removeFirst(tasks.count)
                if let file = state.file {
                    while tasks.count < limit, let entry = try file.read() { tasks.append(entry.task(shared, list)) }
                }
                state.count -= tasks.count
                return tasks
            }
        } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "The list in \(folder) cannot be read again.")
        }
    }

    /// Drains all tasks, and keeps some in a new spool.
    ///
    /// - Parameter folder: the folder for the file of the new spool.
    /// - Throws: the errors of `drain` and `append`.
    package func filtered(
        folder: String, where isIncluded: (TaskDescription) -> Bool
    ) throws(DownloadError) -> TaskSpool {
        let kept = TaskSpool(folder: folder, shared: shared, list: list)
        while true {
            let tasks = try drain(atMost: 1_000)
            if tasks.isEmpty { return kept }
            for task in tasks where isIncluded(task) { try kept.append(task) }
        }
    }

    /// The tasks that have not been taken. They stay.
    ///
    /// - Throws: same as `drain`.
    package func all() throws(DownloadError) -> [TaskDescription] {
        do {
            return try state.withLock { state in
                state.first + (try state.file?.readRest().map { $0.task(shared, list) } ?? [])
            }
        } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "The list in \(folder) cannot be read again.")
        }
    }

    /// A task in the file.
    private struct Entry {
        private var task: TaskDescription
        private var checksum: Checksum?
        private var size: Int64?
        private var isShared = false
        /// True for a task of the list.
        private var isListed = false

        init(_ task: TaskDescription, _ shared: TaskOptions, _ list: ListOrigin?) throws {
            self.task = task
            guard task.hasOptions || shared != TaskOptions() else { return }
            // The options of a list differ in digest and length only. Writing them all takes longer than the task.
            var options = task.options
            (options.checksum, options.size) = (shared.checksum, shared.size)
            let isListed = list != nil && options.list == list && shared.list == nil
            if isListed { options.list = nil }
            guard options == shared else { return }
            isShared = true
            self.isListed = isListed
            checksum = task.options.checksum
            size = task.options.size
            self.task.options = TaskOptions()
        }

        func task(_ shared: TaskOptions, _ list: ListOrigin?) -> TaskDescription {
            guard isShared else { return task }
            var task = task
            var options = shared
            (options.checksum, options.size) = (checksum, size)
            if isListed { options.list = list }
            task.options = options
            return task
        }

        func write(to text: inout JSONText) throws {
            text.beginObject()
            text.key("task")
            try task.writeJSON(to: &text)
            if isShared {
                text.key("checksum")
                text.value(checksum?.description ?? "")
                text.key("size")
                text.value(size ?? -1)
                if isListed { text.member("listed", 1) }
            }
            text.endObject()
        }

        /// The line of a task in any form, for `StoreJSON`.
        private struct Line: Decodable {
            var task: TaskDescription
            var checksum: String?
            var size: Int64?
            var listed: Int?
        }

        init(_ bytes: UnsafeBufferPointer<UInt8>) throws {
            if let entry = try? Entry(scanning: bytes) {
                self = entry
            } else {
                // Texts with escapes, for example.
                let line = try StoreJSON.decode(Line.self, from: UnsafeRawBufferPointer(bytes))
                try self.init(line.task, line.checksum, line.size, isListed: line.listed != nil)
            }
        }

        private init(scanning bytes: UnsafeBufferPointer<UInt8>) throws {
            var scanner = JSONScanner(bytes)
            try scanner.beginObject()
            try scanner.need("task")
            let task = try TaskDescription.readJSON(&scanner)
            var checksum: String?
            var size: Int64?
            if scanner.has("checksum") {
                checksum = try scanner.text()
                try scanner.need("size")
                size = try scanner.integer(Int64.self)
            }
            let isListed = scanner.has("listed")
            if isListed { _ = try scanner.integer(Int64.self) }
            try scanner.endObject()
            try self.init(task, checksum, size, isListed: isListed)
        }

        private init(_ task: TaskDescription, _ checksum: String?, _ size: Int64?, isListed: Bool) throws {
            self.task = task
            self.isListed = isListed
            guard let checksum, let size else { return }
            isShared = true
            self.checksum = checksum.isEmpty ? nil : try Checksum(parsing: checksum)
            self.size = size < 0 ? nil : size
        }
    }

    /// The file: one task a line. JSON has no line feeds.
    private final class File {
        private let path: String
        private let descriptor: Int32
        private var pending: [UInt8] = []
        private var length = 0
        private var lines: LineReader?

        init(_ folder: String) throws {
            var template = Array("\(folder)/fk-list-XXXXXX".utf8CString)
            descriptor = mkstemp(&template)
            path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard descriptor >= 0 else { throw DownloadError(system: errno, "create", path) }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            unlink(path)
        }

        deinit { FileIO.close(descriptor) }

        func write(_ entry: Entry) throws {
            var text = JSONText()
            try entry.write(to: &text)
            text.withMemory { pending.append(contentsOf: $0) }
            pending.append(0x0a)
            if pending.count >= TaskSpool.portion { try flush() }
        }

        private func flush() throws {
            try pending.withUnsafeBytes { try FileIO.write($0, to: descriptor, at: length, path: path) }
            length += pending.count
            pending.removeAll(keepingCapacity: true)
        }

        func read() throws -> Entry? {
            let lines = try self.lines ?? reader(from: 0)
            self.lines = lines
            return try lines.next { try Entry($0) }
        }

        func readRest() throws -> [Entry] {
            let lines = try reader(from: lines?.offset ?? 0)
            var entries: [Entry] = []
            while let entry = try lines.next({ try Entry($0) }) { entries.append(entry) }
            return entries
        }

        private func reader(from offset: Int) throws -> LineReader {
            if !pending.isEmpty { try flush() }
            return LineReader(path, descriptor, from: offset, maxLine: 1 << 30)
        }
    }
}
