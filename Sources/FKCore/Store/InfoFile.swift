import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// What a writer has to remember of an info file to update it without reading it: 16 bytes a task.
package struct InfoHandle: Sendable, Hashable {
    /// The newest generation in the file.
    package internal(set) var generation: UInt64
    package internal(set) var slotSize: UInt32
}

/// One reading of an info file.
package struct InfoContents: Sendable {
    package var record: TaskRecord
    package var handle: InfoHandle
    /// As they stand in the file, not yet checked against the record: see `TaskRecord.applyingLiveCounters`.
    package var counters: [Int64]
}

/// An info file that stays open between two updates. Used by one thread.
package final class OpenInfoFile {
    private var descriptor: Int32 = -1
    private var path = ""

    package init() {}

    deinit { close() }

    /// For reading and writing.
    func descriptor(_ path: String) throws -> Int32 {
        if descriptor < 0 {
            descriptor = try FileIO.open(path, O_RDWR | O_NONBLOCK)
            self.path = path
        }
        return descriptor
    }

    /// Closes it after the last update: what the system only finds out now is an error as well.
    package func closeWritten() throws {
        guard descriptor >= 0 else { return }
        defer { descriptor = -1 }
        try FileIO.close(descriptor, written: path)
    }

    package func close() {
        if descriptor >= 0 { FileIO.close(descriptor) }
        descriptor = -1
    }
}

/// The file that holds all about one task (`TaskRecord`), updated in place.
///
/// Two slots take turns: an update writes the slot of the older generation, so a torn write, a kill at any
/// instruction or a power cut leaves the previous generation readable. A record that outgrows its slot moves into
/// a file with slots twice as large, by write-aside and rename.
///
/// There is one writer, the engine that holds the work path's lock; any process may read at any time. Nothing is kept
/// open here unless the caller asks for it (`OpenInfoFile`): an update is open, one pwrite, close. Functions, not an
/// object, so that 100,000 idle tasks cost a handle each.
package enum InfoFile {
    /// Makes the info file of a new task, and the folder it is in.
    ///
    /// - Throws: `.fileExists` when there is one already; `.noSpace`, `.disk`, and then no file is left behind;
    ///   `.tooLarge` for a record of more than 16 MiB.
    package static func create(at path: String, record: TaskRecord) throws -> InfoHandle {
        let text = try record.jsonText(leading: InfoFormat.slotHeaderSize)
        let geometry = try InfoFormat.Geometry.holding(payload: text.count)
        try withImage(geometry, generation: 1, text, counters: []) { image in
            do {
                try place(image, at: path)
            } catch let error as DownloadError where error.code == .notFound {
                try FileIO.makeFolder((path as NSString).deletingLastPathComponent)
                try place(image, at: path)
            }
        }
        return InfoHandle(generation: 1, slotSize: UInt32(geometry.slotSize))
    }

    /// One page appears whole or not at all, whatever kills the process: in place, which is twice as fast. More than that
    /// is written aside.
    private static func place(_ image: UnsafeRawBufferPointer, at path: String) throws {
        guard image.count > pageSize else { return try FileIO.create(path, image) }
        guard access(path, F_OK) != 0 else { throw DownloadError(system: EEXIST, "create", path) }
        try FileIO.replace(path, aside: path + ".new", image)
    }

    /// The smallest page of the systems we build for.
    private static let pageSize = 4_096

    /// Removes an empty info file: what is left where `create` was killed before its write. Any other stays.
    package static func removeUnwritten(_ path: String) throws {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size == 0 else { return }
        try FileIO.remove(path)
    }

    /// Reads the newest valid generation.
    ///
    /// - Parameter open: keeps the file open for the update that is about to follow.
    /// - Throws: `.notFound`, also for an empty file, which is a task that is just being made or whose making was
    ///   interrupted; `.corruptInfo` when no slot is valid; `.laterVersion`; `.disk`.
    package static func read(_ path: String, open: OpenInfoFile? = nil) throws -> InfoContents {
        guard let contents = try read(path, containing: nil, open: open) else {
            throw DownloadError(.corruptInfo, "No slot of the info file \(path) is valid.")
        }
        return contents
    }

    /// The same, but nil without parsing the payload when it does not hold these bytes.
    package static func read(
        _ path: String, containing needle: [UInt8]?, open: OpenInfoFile? = nil
    ) throws -> InfoContents? {
        let descriptor = try open?.descriptor(path) ?? FileIO.open(path, O_RDONLY | O_NONBLOCK)
        defer { if open == nil { FileIO.close(descriptor) } }
        // Two updates in a row may cross one slow reading; an owner that writes faster than that does not exist.
        var last = DownloadError(.corruptInfo, "No slot of the info file is valid.")
        for _ in 0..<3 {
            do {
                return try read(descriptor, path: path, containing: needle)
            } catch let error as DownloadError where error.code == .corruptInfo {
                last = error
            }
        }
        throw last
    }

    /// Writes the next generation. On any error the previous generation stays valid, `handle` is unchanged, and the
    /// next call uses the same slot again.
    ///
    /// - Parameters:
    ///   - counters: the task's live counters while it runs, so that they follow a file that has to move.
    ///   - rangesChanged: true when ranges were dropped, renumbered or begun anew since the last write. The live
    ///     counters then count for nothing until the record that gives them their new meaning is in the file, also
    ///     where that takes a second call because the first one has failed.
    ///     The caller sees to it that the counters already hold the new ranges' positions.
    ///   - dropsCounters: true for the first record of a boot. The words in the file are of an earlier boot: once the record
    ///     bears the present one's id, they would count again, for bytes that never got to the disk.
    ///   - open: keeps the file open from one update to the next, where two follow each other closely; nil opens and
    ///     closes it.
    /// - Throws: `.notFound` when the file is gone; `.noSpace`, `.disk`; `.tooLarge` for a record of more than 16 MiB.
    package static func update(
        _ path: String, record: TaskRecord, handle: inout InfoHandle, counters: LiveCounters? = nil,
        rangesChanged: Bool = false, dropsCounters: Bool = false, open: OpenInfoFile? = nil
    ) throws {
        let text = try record.jsonText(leading: InfoFormat.slotHeaderSize)
        let next = handle.generation + 1
        if rangesChanged { try counters?.invalidateMirror() }
        if text.count + InfoFormat.slotHeaderSize > Int(handle.slotSize) {
            try grow(
                path, text, generation: next, handle: &handle, counters: counters, dropsCounters: dropsCounters)
            // What is open is the file that was just replaced.
            open?.close()
            if rangesChanged { counters?.validateMirror() }
            return
        }
        let geometry = InfoFormat.Geometry(slotSize: Int(handle.slotSize))
        let offset = geometry.slotOffset(generation: next)
        let descriptor = try open?.descriptor(path) ?? FileIO.open(path, O_WRONLY)
        do {
            if dropsCounters { try dropCounters(descriptor, geometry, path: path) }
            try text.withMemory { slot in
                InfoFormat.sealSlot(generation: next, slot)
                try FileIO.write(UnsafeRawBufferPointer(slot), to: descriptor, at: offset, path: path)
            }
        } catch {
            if open == nil { FileIO.close(descriptor) }
            throw error
        }
        if open == nil { try FileIO.close(descriptor, written: path) }
        handle.generation = next
        if rangesChanged { counters?.validateMirror() }
    }

    /// Waits until the info file is on the disk itself; with `folder`, its name as well (after `create`).
    package static func synchronize(_ path: String, folder: Bool = false) throws {
        try FileIO.synchronize(path)
        if folder { try FileIO.synchronize((path as NSString).deletingLastPathComponent) }
    }

    /// The counters as they are now, for a process that does not own the engine.
    package static func readCounters(_ path: String) throws -> [Int64] {
        try read(path).counters
    }

    /// The newest valid payload as it stands in the file, for people.
    package static func rawPayload(_ path: String) throws -> String {
        let bytes = try FileIO.contents(of: path, limit: 4 * InfoFormat.maxSlotSize)
        return try bytes.withUnsafeBytes { file in
            let geometry = try InfoFormat.readHeader(file)
            guard let slot = InfoFormat.validSlots(file, geometry).first else {
                throw DownloadError(.corruptInfo, "No slot of the info file \(path) is valid.")
            }
            return String(decoding: file[slot.payload], as: UTF8.self)
        }
    }

    // MARK: Inside

    private static func read(
        _ descriptor: Int32, path: String, containing needle: [UInt8]?
    ) throws -> InfoContents? {
        let usual = InfoFormat.Geometry(slotSize: InfoFormat.usualSlotSize).fileSize
        return try Heap.with(usual) { buffer in
            let count = try FileIO.read(into: buffer, from: descriptor, at: 0, path: path)
            guard count > 0 else { throw DownloadError(.notFound, "The info file \(path) was never written.") }
            let file = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            let geometry = try located(path) { try InfoFormat.readHeader(file) }
            if geometry.fileSize <= usual || count < usual {
                return try parse(file, geometry, path: path, containing: needle)
            }
            // A header may claim more than there is: memory is taken for what is there.
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw DownloadError(system: errno, "read", path) }
            let size = min(geometry.fileSize, Int(status.st_size))
            let whole = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
            defer { whole.deallocate() }
            let length = try FileIO.read(into: whole, from: descriptor, at: 0, path: path)
            return try parse(
                UnsafeRawBufferPointer(rebasing: whole[..<length]), geometry, path: path, containing: needle)
        }
    }

    /// Takes the newest slot whose payload can be decoded as well.
    private static func parse(
        _ file: UnsafeRawBufferPointer, _ geometry: InfoFormat.Geometry, path: String, containing needle: [UInt8]?
    ) throws -> InfoContents? {
        var failure = DownloadError(.corruptInfo, "No slot of the info file \(path) is valid.")
        for slot in InfoFormat.validSlots(file, geometry) {
            do {
                let payload = UnsafeRawBufferPointer(rebasing: file[slot.payload])
                if let needle, !payload.contains(sequence: needle) { return nil }
                return InfoContents(
                    record: try located(path) { try TaskRecord.read(payload) },
                    handle: InfoHandle(generation: slot.generation, slotSize: UInt32(geometry.slotSize)),
                    counters: InfoFormat.counters(file, geometry))
            } catch let error as DownloadError {
                failure = error
            }
        }
        throw failure
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
        counters: LiveCounters?, dropsCounters: Bool
    ) throws {
        let geometry = try InfoFormat.Geometry.holding(payload: text.count)
        let previous = dropsCounters ? [] : (try? readCounters(path)) ?? []
        // A file that vanished (`trash`) is not brought back by an update.
        guard access(path, F_OK) == 0 else { throw DownloadError(system: errno, "write", path) }
        let wasAttached = counters?.isAttached ?? false
        try withImage(geometry, generation: generation, text, counters: previous) { image in
            try FileIO.replace(path, aside: path + ".new", image) {
                if wasAttached { try counters?.attach(path: path + ".new") }
            }
        }
        handle = InfoHandle(generation: generation, slotSize: UInt32(geometry.slotSize))
    }

    /// A whole file with one valid slot.
    private static func withImage(
        _ geometry: InfoFormat.Geometry, generation: UInt64, _ text: borrowing JSONText, counters: [Int64],
        _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try Heap.with(geometry.fileSize) { file in
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

extension UnsafeRawBufferPointer {
    /// True when these bytes stand somewhere in the buffer.
    fileprivate func contains(sequence needle: [UInt8]) -> Bool {
        guard let base = baseAddress, let first = needle.first else { return needle.isEmpty }
        var offset = 0
        while offset + needle.count <= count,
            let found = memchr(base + offset, Int32(first), count - needle.count - offset + 1)
        {
            if memcmp(found, needle, needle.count) == 0 { return true }
            offset = UnsafeRawPointer(found) - base + 1
        }
        return false
    }
}
