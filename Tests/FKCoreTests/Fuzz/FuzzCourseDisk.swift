import TestSupport

/// What may be on the disk in a course: every file with a visible name, and whose it is.
struct CourseDisk {
    enum Owner {
        /// The finished file. It stays whole under its name until a new one replaces it.
        case task
        /// The finished file that a person has written to. Its bytes stay, under whatever name.
        case person
        /// A file of another program, or one that its task has forgotten. It stays as it is.
        case others
    }

    struct File {
        var bytes: Data
        var owner: Owner
    }

    /// What can be wrong with a course.
    enum Finding: String {
        case mixedBytes, cutFile, lostFinishedFile, lostEdit, lostForeignFile, strayFile, leftoverPart, noEnd
    }

    struct Complaint: Error, CustomStringConvertible {
        var finding: Finding
        var name: String
        var description: String { "\(finding): \(name)" }
    }

    /// Findings that courses ignore, so that those behind them show: `FK_FUZZ_TOLERATE=lostEdit,cutFile`. The default is none.
    static let tolerated = Set(
        (ProcessInfo.processInfo.environment["FK_FUZZ_TOLERATE"] ?? "").split(separator: ",")
            .compactMap {
                Finding(rawValue: String($0))
            })

    private(set) var files: [String: File] = [:]
    /// True while the first download may replace a file of others.
    var mayOverwrite = false
    /// True from a repair or refresh to the next finished file.
    var isRenewing = false

    /// The name of the finished file as the task left it.
    var finished: String? { files.first { $0.value.owner == .task }?.key }

    mutating func put(_ bytes: Data, _ name: String, _ owner: Owner) { files[name] = File(bytes: bytes, owner: owner) }

    mutating func remove(_ name: String) { files[name] = nil }

    /// The task is forgotten, and its files belong to nobody; a trashed one is gone with its finished file.
    mutating func leave(trashed: Bool) {
        for (name, file) in files where file.owner != .others {
            files[name] = trashed && file.owner == .task ? nil : File(bytes: file.bytes, owner: .others)
        }
        isRenewing = false
    }

    /// Compares the model with the disk.
    ///
    /// - Parameters:
    ///   - found: all files with visible names.
    ///   - complete: the name of the file that a complete task names; nil for a task in any other state.
    /// - Returns: what may be there from now on.
    /// - Throws: `Complaint`.
    func looking(at found: [String: Data], complete: String?, _ versions: [Data]) throws(Complaint) -> CourseDisk {
        var next = self
        var new = found.filter { files[$0.key]?.bytes != $0.value }
        for (name, file) in files where found[name] != file.bytes {
            next.files[name] = nil
            switch file.owner {
            case .task:
                guard name == complete && isRenewing else {
                    try Self.complain(.lostFinishedFile, name)
                    continue
                }
            case .others:
                guard name == complete && mayOverwrite else {
                    try Self.complain(.lostForeignFile, name)
                    continue
                }
            case .person:
                guard let kept = new.first(where: { $0.value == file.bytes })?.key else {
                    try Self.complain(.lostEdit, name)
                    continue
                }
                new[kept] = nil
                next.put(file.bytes, kept, .others)
            }
        }
        // The new file may have the same bytes as the one that it was allowed to replace.
        if mayOverwrite, let complete, let same = next.files[complete], new[complete] == nil {
            next.put(same.bytes, complete, .task)
        }
        for (name, bytes) in new {
            if name != complete || next.finished != nil { try Self.complain(.strayFile, name) }
            if !versions.contains(bytes) {
                let isPrefix = versions.contains { $0.starts(with: bytes) }
                try Self.complain(isPrefix ? .cutFile : .mixedBytes, name)
            }
            next.put(bytes, name, .task)
        }
        if complete != nil {
            next.isRenewing = false
            next.mayOverwrite = false
        }
        return next
    }

    static func complain(_ finding: Finding, _ name: String) throws(Complaint) {
        if !tolerated.contains(finding) { throw Complaint(finding: finding, name: name) }
    }
}

/// One step of a course.
enum CourseStep {
    // The servers.
    case serverChanges(String, version: Int), gateOpens, timePasses
    // The verbs.
    case suspend, resume, retry, cancel, relink(String), refresh, fetchAnew, repair
    case forget(ExistingFilePolicy?), trash(ExistingFilePolicy?), reuse(version: Int)
    // The process.
    case reopen(connections: Int), kill(connections: Int)
    // Other programs, the person and the disk. Places are in thousandths of the file.
    case foreignFile(String), edit(appending: Bool), replace(sameLength: Bool), delete, rot(from: Int, count: Int)

    /// - Parameter isComplete: true for a step that makes sense with a finished file.
    static func make(_ random: inout SeededRandom, isComplete: Bool) -> CourseStep {
        let host = random.pick(CourseServers.names)
        let change = CourseStep.serverChanges(host, version: random.pick([0, 0, 1, 1, 2, 3]))
        let connections = random.pick([1, 2, 4])
        let existing: ExistingFilePolicy? = random.pick([nil, .overwrite, .rename, .skip])
        let rot = CourseStep.rot(from: random.below(1_000), count: 1 + random.below(300))
        let always: [CourseStep] = [
            change, change, change, .relink("http://\(host)/file"), .reopen(connections: connections),
            .kill(connections: connections), .foreignFile(random.pick(["file", "file.1", "file.2"])),
            .forget(existing), .trash(existing), .edit(appending: random.oneIn(2)),
            .replace(sameLength: random.oneIn(2)), .delete,
        ]
        let now: [CourseStep] =
            isComplete
            ? [
                rot, rot, rot, .repair, .repair, .repair, .refresh, .refresh, .fetchAnew,
                .reuse(version: random.below(4)), .cancel, .retry,
            ]
            : [
                .timePasses, .timePasses, .timePasses, .timePasses, .retry, .retry, .gateOpens, .suspend, .resume,
                .cancel, .relink("http://\(host)/file"), .forget(existing),
            ]
        return random.pick(always + now)
    }
}

/// Work path and destination at one moment, as a kill leaves them. The files of the destination keep their inodes.
struct KilledDisk {
    private struct File {
        var name: String
        var bytes: Data
        var time: timespec
    }

    private let folder: TemporaryFolder
    private let side: TemporaryFolder
    private let files: [File]

    /// - Throws: the system's error, also if a file goes away meanwhile.
    init(_ folder: TemporaryFolder) throws {
        self.folder = folder
        let side = try TemporaryFolder()
        self.side = side
        let out = folder.file("out").path
        try FileManager.default.copyItem(at: folder.file("work"), to: side.file("work"))
        files = try FileManager.default.contentsOfDirectory(atPath: out).map { name in
            let path = "\(out)/\(name)"
            try FileManager.default.linkItem(atPath: path, toPath: side.file(name).path)
            return File(
                name: name, bytes: try Data(contentsOf: URL(fileURLWithPath: path)), time: try FileTime.of(path))
        }
    }

    func restore() throws {
        let out = folder.file("out")
        try FileManager.default.removeItem(at: out)
        try FileManager.default.createDirectory(at: out, withIntermediateDirectories: false)
        for file in files {
            let place = side.file(file.name)
            if try Data(contentsOf: place) != file.bytes { try file.bytes.write(to: place) }
            try FileTime.set(file.time, place.path)
            try FileManager.default.moveItem(at: place, to: out.appendingPathComponent(file.name))
        }
        try FileManager.default.removeItem(at: folder.file("work"))
        try FileManager.default.moveItem(at: side.file("work"), to: folder.file("work"))
    }
}

/// The time of a file's last write.
enum FileTime {
    static func of(_ path: String) throws -> timespec {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw CocoaError(.fileNoSuchFile) }
        #if canImport(Darwin)
            return status.st_mtimespec
        #else
            return status.st_mtim
        #endif
    }

    static func set(_ time: timespec, _ path: String) throws {
        guard utimensat(AT_FDCWD, path, [time, time], 0) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }
}
