import FKMiddleware
import Foundation

/// The state a writer needs to update an info file without reading it: 24 bytes per task.
package struct InfoHandle: Sendable, Equatable {
    /// The newest generation in the file.
    package internal(set) var generation: UInt64
    /// The size of a slot in bytes.
    package internal(set) var slotSize: UInt32
    /// The beginning of a large record that this writer has written; nil for a usual one.
    var head: RecordHead?

    /// Creates the handle of a task without a file.
    package init() { self.init(generation: 0, slotSize: 0) }

    init(generation: UInt64, slotSize: UInt32, head: RecordHead? = nil) {
        self.generation = generation
        self.slotSize = slotSize
        self.head = head
    }

    /// Compares the contents of the file, not the writer's copy of them.
    package static func == (one: Self, other: Self) -> Bool {
        one.generation == other.generation && one.slotSize == other.slotSize
    }
}

/// The content of an info file.
package struct InfoContents: Sendable {
    /// The record of the newest valid generation.
    package var record: TaskRecord
    /// The handle for the next update.
    package var handle: InfoHandle
    /// The counters in the file, not yet checked against the record: see `TaskRecord.applyingLiveCounters`.
    package var counters: [Int64]
}

/// The file that stores everything about one task (`TaskRecord`), updated in place.
///
/// Two slots alternate: an update writes the slot of the older generation. After a torn write, a kill at any
/// instruction or a power cut, the previous generation is therefore still readable. A record that outgrows its slot
/// moves to a file with slots twice as large, which is written aside and renamed.
///
/// There is one writer, the engine with the work path's lock. Any process may read at any time. An update opens the
/// file, writes once, and closes it, unless the caller keeps it open (`OpenInfoFile`). These are functions and not an
/// object, so that 100,000 idle tasks cost only a handle each.
package enum InfoFile {
    /// Creates the info file of a new task, and its folder.
    ///
    /// - Parameters:
    ///   - places: the stored form of the record's places.
    ///   - setsMode: same as for `FileIO.create`.
    /// - Throws: `.fileExists` if there is one already; `.noSpace` or `.disk`, and then no file is left; `.tooLarge`
    ///   for a record of more than 16 MiB.
    package static func create(
        at path: String, record: consuming TaskRecord, places: Places, setsMode: Bool = true
    ) throws -> InfoHandle {
        let task = record.task
        let text = try record.jsonText(leading: InfoFormat.slotHeaderSize, places: places)
        let geometry = try InfoFormat.Geometry.holding(payload: text.count)
        try withImage(geometry, generation: 1, text, counters: []) { image in
            do {
                try place(image, at: path, setsMode: setsMode)
            } catch let error as DownloadError where error.code == .notFound {
                try FileIO.makeFolder(path.folderPart)
                try place(image, at: path, setsMode: setsMode)
            }
        }
        return InfoHandle(
            generation: 1, slotSize: UInt32(geometry.slotSize),
            head: RecordHead.written(task, text, generation: 1, known: nil))
    }

    /// A file of one page is written completely or not at all, even if the process is killed, so it is written in
    /// place, which is twice as fast. A larger one is written aside.
    private static func place(_ image: UnsafeRawBufferPointer, at path: String, setsMode: Bool) throws {
        guard image.count > pageSize else { return try FileIO.create(path, image, setsMode: setsMode) }
        guard access(path, F_OK) != 0 else { throw DownloadError(system: EEXIST, "create", path) }
        try FileIO.replace(path, aside: path + ".new", image)
    }

    /// The smallest page of the supported systems.
    private static let pageSize = 4_096

    /// Removes an empty info file, which `create` leaves if it is killed before its write. Any other file stays.
    package static func removeUnwritten(_ path: String) throws {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size == 0 else { return }
        try FileIO.remove(path)
    }

    /// Reads the newest valid generation.
    ///
    /// - Parameters:
    ///   - places: the stored form of the record's places.
    ///   - open: keeps the file open for a following update.
    /// - Throws: `.notFound`, also for an empty file of the last seconds, whose creation is in progress or was interrupted;
    ///   `.corruptInfo` if no slot is valid, and for an older empty file; `.destination` for a base that has no folder here;
    ///   `.laterVersion`; `.disk`.
    package static func read(_ path: String, places: Places, open: OpenInfoFile? = nil) throws -> InfoContents {
        guard let contents = try read(path, places: places, containing: nil, open: open) else { throw noSlot(path) }
        return contents
    }

    /// Reads the newest valid generation; nil, without parsing, if its payload does not contain these bytes.
    package static func read(
        _ path: String, places: Places, containing needle: [UInt8]?, open: OpenInfoFile? = nil
    ) throws -> InfoContents? {
        let descriptor = try open?.descriptor(path) ?? FileIO.open(path, O_RDONLY)
        defer { if open == nil { FileIO.close(descriptor) } }
        // Two consecutive updates may overlap one slow read. No owner writes faster than that.
        for _ in 0..<2 {
            do {
                return try read(descriptor, path: path, places, containing: needle)
            } catch let error as DownloadError where error.code == .corruptInfo {}
        }
        return try read(descriptor, path: path, places, containing: needle)
    }

    /// Writes the next generation. After an error, the previous generation stays valid, `handle` is unchanged, and
    /// the next call uses the same slot again.
    ///
    /// - Parameters:
    ///   - record: the record, which is read and not changed (`TaskRecord.jsonText`).
    ///   - places: the stored form of the record's places.
    ///   - counters: the task's live counters while it runs, so that they follow a file that has to move.
    ///   - rangesChanged: true if ranges were dropped, renumbered or started anew since the last write. The live
    ///     counters are then
    ///     invalid until the record that defines their new meaning is in the file, even if that takes a second call after an
    ///     error. The caller must set the counters to the new ranges' positions first.
    ///   - dropsCounters: true for the first record of a boot. The words in the file are from an earlier boot. Once
    ///     the record
    ///     has the current boot's id they would be valid again, for bytes that never reached the disk.
    ///   - open: keeps the file open between updates that follow each other closely; nil opens and closes it.
    /// - Returns: the number of bytes written.
    /// - Throws: `.notFound` if the file is missing; `.noSpace` or `.disk`; `.tooLarge` for a record of more than 16
    ///   MiB.
    @discardableResult
    package static func update(
        _ path: String, record: inout TaskRecord, places: Places, handle: inout InfoHandle,
        counters: LiveCounters? = nil,
        rangesChanged: Bool = false, dropsCounters: Bool = false, open: OpenInfoFile? = nil
    ) throws -> Int {
        let next = handle.generation + 1
        let task = record.task
        let known = handle.head
        let head = known.flatMap { $0.isThere(for: next) && $0.task == task ? $0 : nil }
        let text = try record.jsonText(leading: InfoFormat.slotHeaderSize, places: places, isRest: head != nil)
        let isTooLong = (head?.count ?? 0) + text.count + InfoFormat.slotHeaderSize > Int(handle.slotSize)
        // After a failed write of a whole record nothing is known of its slot.
        if head == nil || isTooLong { handle.head = nil }
        if isTooLong, head != nil {
            return try update(
                path, record: &record, places: places, handle: &handle, counters: counters,
                rangesChanged: rangesChanged, dropsCounters: dropsCounters, open: open)
        }
        if rangesChanged { try counters?.invalidateMirror() }
        if isTooLong {
            let previous = dropsCounters ? [] : (try? readCounters(path, places: places)) ?? []
            let count = try grow(path, text, generation: next, handle: &handle, counters: counters, previous: previous)
            handle.head = RecordHead.written(task, text, generation: next, known: nil)
            // The open file is the one that was just replaced.
            open?.close()
            if rangesChanged { counters?.validateMirror() }
            return count
        }
        let geometry = InfoFormat.Geometry(slotSize: Int(handle.slotSize))
        let offset = geometry.slotOffset(generation: next)
        let descriptor = try open?.descriptor(path) ?? FileIO.open(path, O_WRONLY)
        do {
            if dropsCounters { try dropCounters(descriptor, geometry, path: path) }
            try text.withMemory { slot in
                InfoFormat.sealSlot(generation: next, slot, after: head)
                let slot = UnsafeRawBufferPointer(slot)
                guard let head else { return try FileIO.write(slot, to: descriptor, at: offset, path: path) }
                // The slot is invalid from the first write to the second, as it is during a single one.
                let numbers = InfoFormat.slotHeaderSize
                try FileIO.write(
                    UnsafeRawBufferPointer(rebasing: slot[numbers...]), to: descriptor,
                    at: offset + numbers + head.count, path: path)
                try FileIO.write(
                    UnsafeRawBufferPointer(rebasing: slot[..<numbers]), to: descriptor, at: offset, path: path)
            }
        } catch {
            if open == nil { FileIO.close(descriptor) }
            throw error
        }
        if open == nil { try FileIO.close(descriptor, written: path) }
        handle.generation = next
        if head == nil { handle.head = RecordHead.written(task, text, generation: next, known: known) }
        if rangesChanged { counters?.validateMirror() }
        return text.count + InfoFormat.slotHeaderSize
    }

    /// Syncs the info file, and with `folder` its name as well (after `create`).
    package static func synchronize(_ path: String, folder: Bool = false) throws {
        try FileIO.synchronize(path)
        if folder { try FileIO.synchronize(path.folderPart) }
    }

    /// The current counters, for a process that does not own the engine.
    package static func readCounters(_ path: String, places: Places) throws -> [Int64] {
        try read(path, places: places).counters
    }

    /// The newest valid payload as text, for display.
    package static func rawPayload(_ path: String) throws -> String {
        let bytes = try FileIO.contents(of: path, limit: 4 * InfoFormat.maxSlotSize)
        return try bytes.withUnsafeBytes { file in
            let geometry = try InfoFormat.readHeader(file)
            guard let slot = InfoFormat.validSlots(file, geometry).first else {
                throw noSlot(path)
            }
            return String(decoding: file[slot.payload], as: UTF8.self)
        }
    }

    // MARK: Inside

    private static func read(
        _ descriptor: Int32, path: String, _ places: Places, containing needle: [UInt8]?
    ) throws -> InfoContents? {
        let usual = InfoFormat.Geometry(slotSize: InfoFormat.usualSlotSize).fileSize
        return try withUnsafeTemporaryAllocation(byteCount: usual, alignment: 8) { buffer in
            let count = try FileIO.read(into: buffer, from: descriptor, at: 0, path: path)
            guard count > 0 else { throw empty(descriptor, path) }
            let file = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            let geometry = try located(path) { try InfoFormat.readHeader(file) }
            if geometry.fileSize <= usual || count < usual {
                return try parse(file, geometry, path: path, places, containing: needle)
            }
            // A header may claim a larger size than the file has, so memory is allocated by the file's size.
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw DownloadError(system: errno, "read", path) }
            let size = min(geometry.fileSize, Int(status.st_size))
            let whole = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 8)
            defer { whole.deallocate() }
            let length = try FileIO.read(into: whole, from: descriptor, at: 0, path: path)
            return try parse(
                UnsafeRawBufferPointer(rebasing: whole[..<length]), geometry, path: path, places, containing: needle)
        }
    }

    /// Returns the newest slot whose payload can be decoded.
    private static func parse(
        _ file: UnsafeRawBufferPointer, _ geometry: InfoFormat.Geometry, path: String, _ places: Places,
        containing needle: [UInt8]?
    ) throws -> InfoContents? {
        var failure: DownloadError?
        for slot in InfoFormat.validSlots(file, geometry) {
            do {
                let payload = UnsafeRawBufferPointer(rebasing: file[slot.payload])
                if let needle, needle.withUnsafeBytes({ payload.firstRange(of: $0) }) == nil { return nil }
                return InfoContents(
                    record: try TaskRecord.read(payload, places: places),
                    handle: InfoHandle(generation: slot.generation, slotSize: UInt32(geometry.slotSize)),
                    counters: InfoFormat.counters(file, geometry))
            } catch var error as DownloadError where error.code == .corruptInfo {
                error.message += " (\(path))"
                failure = error
            }
        }
        throw failure ?? noSlot(path)
    }

    /// An empty file is one that its creator has not written yet. An older one has lost its record.
    private static func empty(_ descriptor: Int32, _ path: String) -> DownloadError {
        var status = stat()
        let isOld =
            fstat(descriptor, &status) == 0
            && Date().timeIntervalSince1970 - Double(status.modificationTime) / 1e9 > creationTime
        return isOld
            ? DownloadError(.corruptInfo, "The info file \(path) is empty.")
            : DownloadError(.notFound, "The info file \(path) was never written.")
    }

    /// The longest time in seconds between the creation of a file and its write.
    private static let creationTime: TimeInterval = 5

    private static func noSlot(_ path: String) -> DownloadError {
        DownloadError(.corruptInfo, "No slot of the info file \(path) is valid.")
    }

    private static func located<Value>(_ path: String, _ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch var error as DownloadError {
            error.message += " (\(path))"
            throw error
        }
    }

    private static func dropCounters(_ descriptor: Int32, _ geometry: InfoFormat.Geometry, path: String) throws {
        let nothing = [Int64](repeating: -1, count: geometry.counterCount)
        try nothing.withUnsafeBytes { try FileIO.write($0, to: descriptor, at: geometry.counterOffset, path: path) }
    }

    private static func grow(
        _ path: String, _ text: borrowing JSONText, generation: UInt64, handle: inout InfoHandle,
        counters: LiveCounters?, previous: [Int64]
    ) throws -> Int {
        let geometry = try InfoFormat.Geometry.holding(payload: text.count)
        // An update does not create a file that was removed (`trash`).
        guard access(path, F_OK) == 0 else { throw DownloadError(system: errno, "write", path) }
        let wasAttached = counters?.isAttached ?? false
        try withImage(geometry, generation: generation, text, counters: previous) { image in
            try FileIO.replace(path, aside: path + ".new", image) {
                if wasAttached { try counters?.attach(path: path + ".new") }
            }
        }
        handle = InfoHandle(generation: generation, slotSize: UInt32(geometry.slotSize))
        return geometry.fileSize
    }

    /// A complete file with one valid slot.
    private static func withImage(
        _ geometry: InfoFormat.Geometry, generation: UInt64, _ text: borrowing JSONText, counters: [Int64],
        _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try withUnsafeTemporaryAllocation(byteCount: geometry.fileSize, alignment: 8) { file in
            file.initializeMemory(as: UInt8.self, repeating: 0)
            InfoFormat.writeHeader(geometry, into: file)
            let place = UnsafeMutableRawBufferPointer(rebasing: file[geometry.slotOffset(generation: generation)...])
            text.withMemory { slot in
                InfoFormat.sealSlot(generation: generation, slot)
                place.copyMemory(from: UnsafeRawBufferPointer(slot))
            }
            for (index, value) in counters.prefix(geometry.counterCount).enumerated() {
                file.storeBytes(
                    of: value.littleEndian, toByteOffset: geometry.counterOffset + 8 * index, as: Int64.self)
            }
            try body(UnsafeRawBufferPointer(file))
        }
    }
}
