import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// A listing of a source beside the barrel that was made of it.
///
/// | the listing | the barrel | result |
/// | --- | --- | --- |
/// | has the file | has no task of it, or an unfinished one | new |
/// | has the file | has a finished version, and the next one unfinished | changed |
/// | has another version, size or digest | has it finished | changed |
/// | says the same version | has it finished | same |
/// | says no version | has it finished | uncertain: its server is asked |
/// | has no such file, and each of its entries can be used | has a task that came from the source, and that the words choose | gone |
/// | has no such file | has any other task | not mentioned |
///
/// A file is the same by its task or, where its URL has changed, by its place. Another URL is another version, unless a digest or the
/// version says that it is the same one.
struct SourceComparison {
    enum Result: String, Sendable, CaseIterable {
        /// The names of the table.
        case new, changed, same, gone
    }

    /// A file of the listing or of the barrel.
    struct File: Sendable {
        var result: Result
        /// The path below the folder.
        var name: String
        var url: String
        /// The size in the listing, or of the finished file; nil if unknown.
        var size: Int64?
        var id: TaskID
        /// The description that the listing gives, of a changed or uncertain file; nil for any other.
        var task: TaskDescription?
        /// True if the listing says no version, so that only the server knows.
        var isUncertain = false
        /// True if the listing has another address of a member.
        var isMoved = false
        var isUnfinished = false
    }

    /// New, changed, uncertain and gone files. New ones of a barrel that is not there yet are only shown, and same ones too: a listing
    /// may be long.
    private(set) var files: [File] = []
    /// The number of files and their bytes, by result.
    private(set) var sums: [Result: (count: Int, bytes: Int64)] = [:]
    /// The number of members that came from the source, before.
    private(set) var members = 0
    /// False if a part of the place could not be listed, or if an entry of the listing could not be used: nothing is gone then.
    let isSure: Bool
    /// The tasks of new files, in order.
    private(set) var added: TaskSpool

    private let context: CommandContext
    let folder: String
    /// The folder, also with its symbolic links resolved.
    private let roots: [String]
    /// Receives each file once its result is certain.
    private let show: ((SourceComparison, File) -> Void)?
    /// True if a new file may be a member whose URL has changed.
    private var mayBeMoved = false

    /// The tasks that are compared at once.
    private static let portion = 4_096

    /// Compares. It takes the tasks of the listing.
    ///
    /// - Parameters:
    ///   - source: decides which names are chosen.
    ///   - barrel: the barrel; nil if there is none yet.
    ///   - folder: the absolute path of the barrel's folder.
    ///   - show: receives each file; nil, the default, shows none.
    init(
        _ listed: ListedTasks, _ source: SourceImport, barrel: String?, folder: String, _ context: CommandContext,
        show: ((SourceComparison, File) -> Void)? = nil
    ) throws {
        self.context = context
        self.folder = folder
        roots = [folder, EntryFolders.resolved(folder)]
        self.show = show
        isSure = !listed.isIncomplete && !listed.hasFaults
        let scratch = try ScratchFolder.base(context)
        added = TaskSpool(folder: scratch)
        let places = context.global.place.places
        let reader = barrel == nil ? nil : try context.global.openReader()
        var rest: Set<TaskID> = []
        if let reader, let barrel { _ = try reader.forEachMember(of: barrel) { id, _ in rest.insert(id) } }
        mayBeMoved = !rest.isEmpty
        /// The names of new files below the folder, which a member of another URL may have, or one of the same URL whose folder was reached
        /// without the symbolic link that is there now.
        var newNames = ExactText.Map<Bool>()
        while true {
            let tasks = try listed.spool.drain(atMost: Self.portion)
            if tasks.isEmpty { break }
            let ids = tasks.map { places.id(of: $0) }
            var records: [TaskID: TaskRecord] = [:]
            for record in reader?.records(ids.filter(rest.contains)) ?? [] { records[record.id] = record }
            for (task, id) in zip(tasks, ids) {
                if rest.remove(id) != nil { members += 1 }
                guard compare(task, records[id], id) == .new else { continue }
                try added.append(task)
                if mayBeMoved, records[id] == nil, let path = Self.path(of: task) { newNames[below(path)] = true }
            }
        }
        guard let reader else { return }
        let moved = try drainRemaining(Array(rest), reader, listed, source, newNames)
        if !moved.isEmpty {
            for file in files where file.result == .new && moved[file.name] != nil { count(file, -1) }
            files.removeAll { $0.result == .new && moved[$0.name] != nil }
            // The member keeps its task: two tasks cannot have one file.
            added = try added.filtered(folder: scratch) { task in
                guard let record = Self.path(of: task).flatMap({ moved[below($0)] }) else { return true }
                _ = compare(task, record, record.id, isMoved: true)
                return false
            }
        }
        if mayBeMoved { for file in files where file.result == .new || file.result == .gone { show?(self, file) } }
    }

    /// Takes the members that the listing does not have.
    ///
    /// - Returns: those whose place the listing has with another task, by their names.
    private mutating func drainRemaining(
        _ rest: [TaskID], _ reader: StoreReader, _ listed: ListedTasks, _ source: SourceImport,
        _ newNames: ExactText.Map<Bool>
    ) throws -> ExactText.Map<TaskRecord> {
        var moved = ExactText.Map<TaskRecord>()
        for start in stride(from: 0, to: rest.count, by: Self.portion) {
            for record in reader.records(rest[start..<min(start + Self.portion, rest.count)])
            where SourceVersion.isThere(record.task.attributes) {
                members += 1
                if let name = (record.path ?? Self.path(of: record.task)).map(below), newNames[name] != nil {
                    moved[name] = record
                    continue
                }
                // A file elsewhere is of another `fk get -r` of this source: the barrel follows it in its own folder.
                if let path = record.path ?? Self.path(of: record.task), !isBelow(path) { continue }
                let name = name(of: record)
                guard isSure, source.chooses(name), !listed.leavesOut(name, in: record.task.directory) else { continue }
                let file = File(
                    result: .gone, name: name, url: record.task.url, size: record.ofFinished.received, id: record.id)
                count(file, 1)
                files.append(file)
            }
        }
        return moved
    }

    private mutating func count(_ file: File, _ sign: Int) {
        let sum = sums[file.result] ?? (0, 0)
        sums[file.result] = (sum.count + sign, sum.bytes + Int64(sign) * (file.size ?? 0))
    }

    /// - Parameter isMoved: true for a member that was found by its place. Its address may be another one.
    private mutating func compare(
        _ task: TaskDescription, _ record: TaskRecord?, _ id: TaskID, isMoved: Bool = false
    ) -> Result {
        let size = task.attributes[SourceVersion.sizeAttribute].flatMap { Int64($0) } ?? task.optionsBox?.value.size
        var file = File(result: .new, name: name(of: task), url: task.url, size: size, id: id)
        // An edited file stays, whatever its length is now.
        if let record, record.state == .complete, record.isFileGone != true {
            file.result = .same
            file.size = size ?? record.received
            let isOtherFact =
                Self.isOther(task.optionsBox?.value.checksum, record.task.optionsBox?.value.checksum)
                || Self.isOther(task.optionsBox?.value.size, record.task.optionsBox?.value.size)
            let listed = SourceVersion(in: task.attributes)
            let known = SourceVersion(in: record.task.attributes)
            if isMoved, !record.address(0).isExactly(task.url) {
                let isSame = listed != nil && listed == known || Self.isSameDigest(task, record)
                file.result = isOtherFact || !isSame ? .changed : .same
                file.isMoved = true
                file.size = size
                file.task = task
            } else if isOtherFact || listed != nil && known != nil && listed != known {
                file.result = .changed
                file.size = size
                file.task = task
            } else if listed == nil || known == nil {
                file.isUncertain = true
                file.task = task
            }
        } else if let record, isMoved || record.former != nil {
            // What a synchronization has begun to replace, too.
            file.result = .changed
            file.isMoved = isMoved && !record.address(0).isExactly(task.url)
            file.isUnfinished = true
            file.task = task
        }
        count(file, 1)
        if file.task != nil || file.result == .new && mayBeMoved { files.append(file) }
        if file.result != .new || !mayBeMoved { show?(self, file) }
        return file.result
    }

    private static func isOther<Value: Equatable>(_ listed: Value?, _ known: Value?) -> Bool {
        listed != nil && known != nil && listed != known
    }

    private static func isSameDigest(_ task: TaskDescription, _ record: TaskRecord) -> Bool {
        guard let listed = task.optionsBox?.value.checksum else { return false }
        return listed == record.task.optionsBox?.value.checksum
    }

    /// The gone files that are in the way of new ones: a file where a folder is needed, or files below a new file's name.
    var inTheWay: [File] {
        let new = Set(files(.new).map { ExactText($0.name) })
        guard !new.isEmpty else { return [] }
        var folders: Set<ExactText> = []
        for name in new { for folder in Self.folders(of: name.text) { folders.insert(ExactText(folder)) } }
        return files(.gone).filter { file in
            folders.contains(ExactText(file.name))
                || Self.folders(of: file.name).contains { new.contains(ExactText($0)) }
        }
    }

    /// The folders above a name, below the barrel's.
    static func folders(of name: String) -> [String] {
        let bytes = name.utf8
        return bytes.indices.filter { bytes[$0] == UInt8(ascii: "/") }.map { String(name[..<$0]) }
    }

    func files(_ result: Result) -> [File] { files.filter { $0.result == result } }

    private func name(of task: TaskDescription) -> String { Self.path(of: task).map(below) ?? Self.name(of: task) }

    private func name(of record: TaskRecord) -> String { record.path.map(below) ?? name(of: record.task) }

    private static func name(of task: TaskDescription) -> String {
        task.fileName ?? FileNameRules.name(url: task.url, head: nil)
    }

    private static func path(of task: TaskDescription) -> String? { task.directory.map { "\($0)/\(name(of: task))" } }

    private func isBelow(_ path: String) -> Bool {
        roots.contains { Paths.isBelow(path, $0) }
    }

    private func below(_ path: String) -> String {
        for root in roots where Paths.isBelow(path, root) {
            return String(path.utf8.dropFirst(root.utf8.count + 1)) ?? path
        }
        return path
    }

    // MARK: Output

    /// Prints the line of sums of `--dry-run`.
    func printSums() {
        if !context.global.json { context.print(summary) }
    }

    /// Prints the line of `--dry-run`: `new|changed|same|gone SIZE NAME`. A size is in bytes, and `-` if it is unknown.
    static func printEach(_ comparison: SourceComparison, _ file: File) {
        if comparison.context.global.quiet, file.result == .same { return }
        comparison.print(file, hasSize: true)
    }

    static func printNew(_ comparison: SourceComparison, _ file: File) {
        if file.result == .new { comparison.print(file) }
    }

    func print(_ file: File, as word: String? = nil, hasSize: Bool = false) {
        let word = word ?? file.result.rawValue
        guard !context.global.json else {
            return JSONOutput(context.output).line(
                .members(
                    [
                        "name": .string(file.name), "result": .string(word), "size": JSON(file.size),
                        "url": .string(file.url.masked),
                    ], omittingNull: true))
        }
        let size = hasSize ? " \(file.size.map(String.init) ?? "-")" : ""
        context.output.writeLine("\(word)\(size) \(file.name)".visible)
    }

    /// `3 new (1.2 GiB), 1 changed, 7 same, 0 gone`
    private var summary: String {
        Result.allCases.map { result in
            let sum = sums[result] ?? (0, 0)
            return "\(sum.count) \(result.rawValue)" + (sum.bytes > 0 ? " (\(Formatting.bytes(sum.bytes)))" : "")
        }.joined(separator: ", ")
    }

    func number(_ result: Result) -> Int { sums[result]?.count ?? 0 }
}
