@testable import FKModel
@testable import FKStore

/// Info files by their path alone: the bases are those of the work path that they are in.
extension InfoFile {
    private static func places(_ path: String) -> Places {
        let tasks = path.folderPart.folderPart
        return tasks.lastPathPart == "tasks" ? WorkPath(tasks.folderPart).places : .none
    }

    package static func read(_ path: String, open: OpenInfoFile? = nil) throws -> InfoContents {
        try read(path, places: places(path), open: open)
    }

    package static func readCounters(_ path: String) throws -> [Int64] { try readCounters(path, places: places(path)) }

    package static func number(in path: String) -> UInt64? { number(in: path, places: places(path)) }

    package static func create(at path: String, record: TaskRecord, setsMode: Bool = true) throws -> InfoHandle {
        try create(at: path, record: record, places: places(path), setsMode: setsMode)
    }

    @discardableResult
    package static func update(
        _ path: String, record: TaskRecord, handle: inout InfoHandle, counters: LiveCounters? = nil,
        rangesChanged: Bool = false, dropsCounters: Bool = false, open: OpenInfoFile? = nil
    ) throws -> Int {
        var copy = record
        return try update(
            path, record: &copy, places: places(path), handle: &handle, counters: counters,
            rangesChanged: rangesChanged, dropsCounters: dropsCounters, open: open)
    }
}
