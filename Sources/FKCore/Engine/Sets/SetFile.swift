import FKMiddleware
import Foundation

/// The system calls for the files of sets.
enum SetFile {
    /// How a file got into a set.
    enum Way: Hashable {
        /// Its blocks are shared with the file of the member.
        case cloned
        /// It is the file of the member, by another name.
        case linked
        /// It is a file of the old set, by another name.
        case reused
        /// Its bytes were copied.
        case copied
    }

    /// Exchanges two entries in one step.
    ///
    /// - Returns: 0, or the error number; one of `withoutExchange` where the file system cannot do that.
    static func exchange(_ path: String, _ other: String) -> Int32 {
        #if canImport(Darwin)
            return renamex_np(path, other, UInt32(RENAME_SWAP)) == 0 ? 0 : errno
        #else
            guard let renameAt2 else { return ENOSYS }
            let exchange: UInt32 = 2
            let code = path.withCString { path in
                other.withCString { renameAt2(AT_FDCWD, path, AT_FDCWD, $0, exchange) }
            }
            return code == 0 ? 0 : errno
        #endif
    }

    /// The errors of file systems that cannot exchange entries.
    static let withoutExchange: Set<Int32> = [EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP]

    #if !canImport(Darwin)
        private typealias RenameAt2 =
            @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32

        /// The headers that Swift imports do not have it.
        private static let renameAt2: RenameAt2? = dlsym(nil, "renameat2").map {
            unsafeBitCast($0, to: RenameAt2.self)
        }
    #endif

    /// The digest of a file.
    static func digest(of path: String, _ algorithm: Checksum.Algorithm) throws -> String {
        let source = try FileIO.open(path, O_RDONLY, isOwn: false)
        defer { FileIO.close(source) }
        var status = stat()
        guard fstat(source, &status) == 0 else { throw DownloadError(system: errno, "read", path) }
        let digester = Digester(algorithm, length: Int64(status.st_size))
        try read(source, path) { bytes, _ in digester.update(bytes) }
        return digester.hex()
    }

    /// True if both files can be read and have the same bytes.
    static func isEqual(_ path: String, _ other: String) -> Bool {
        guard let one = try? FileIO.open(path, O_RDONLY, isOwn: false) else { return false }
        defer { FileIO.close(one) }
        guard let two = try? FileIO.open(other, O_RDONLY, isOwn: false) else { return false }
        defer { FileIO.close(two) }
        var (first, second) = (stat(), stat())
        guard fstat(one, &first) == 0, fstat(two, &second) == 0, first.st_size == second.st_size else { return false }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4_096)
        defer { buffer.deallocate() }
        do {
            try read(one, path) { bytes, offset in
                let count = try FileIO.read(into: buffer, from: two, at: offset, path: other)
                guard count == bytes.count, memcmp(bytes.baseAddress!, buffer.baseAddress!, count) == 0 else {
                    throw Differ()
                }
            }
            return true
        } catch {
            return false
        }
    }

    private struct Differ: Error {}

    /// Clones or copies an open file to a new one, with its mode and its time of the last write.
    ///
    /// - Parameter digester: receives the bytes that are copied.
    /// - Returns: true if the file is a clone.
    /// - Throws: `.noSpace`, `.destination` or `.disk`. There is no new file then.
    static func duplicate(
        _ source: Int32, _ status: stat, from path: String, to copy: String, _ digester: Digester?, mayCopy: Bool
    ) throws -> Bool? {
        let target = try FileIO.open(copy, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
        do {
            let isClone = FileClone.clone(source, to: target)
            if !isClone {
                guard mayCopy else {
                    FileIO.close(target)
                    unlink(copy)
                    return nil
                }
                try read(source, path) { bytes, offset in
                    digester?.update(bytes)
                    try FileIO.write(bytes, to: target, at: offset, path: copy)
                }
            }
            _ = fchmod(target, status.st_mode & 0o777)
            _ = futimens(target, times(status.modificationTime))
            try FileIO.close(target, written: copy)
            return isClone
        } catch {
            unlink(copy)
            throw error
        }
    }

    /// Sets the time of the last write, in nanoseconds since 1970.
    static func setTime(of path: String, _ time: Int64) { _ = utimensat(AT_FDCWD, path, times(time), 0) }

    private static func times(_ time: Int64) -> [timespec] {
        Array(
            repeating: timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000)), count: 2)
    }

    private static func read(
        _ source: Int32, _ path: String, _ body: (UnsafeRawBufferPointer, Int) throws -> Void
    ) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4_096)
        defer { buffer.deallocate() }
        var offset = 0
        while true {
            let count = try FileIO.read(into: buffer, from: source, at: offset, path: path)
            if count == 0 { return }
            try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]), offset)
            offset += count
        }
    }

    /// The entries below a folder, by their paths below it: a folder comes before what is in it.
    ///
    /// - Throws: `.disk` if a folder cannot be listed.
    static func entries(below folder: String) throws -> [(name: String, status: stat)] {
        var found: [(name: String, status: stat)] = []
        var open = [""]
        while let inner = open.popLast() {
            let path = inner.isEmpty ? folder : folder.path(of: inner)
            for name in try FileIO.names(in: path) {
                var status = stat()
                guard lstat(path.path(of: name), &status) == 0 else { continue }
                let relative = inner.isEmpty ? name : inner.path(of: name)
                found.append((relative, status))
                if status.st_mode & S_IFMT == S_IFDIR { open.append(relative) }
            }
        }
        return found
    }

    /// Makes the folders of a path below a folder that exists.
    static func makeFolders(of name: String, below folder: String, _ step: () throws -> Void) throws {
        var made = folder
        for part in name.split(separator: "/").dropLast() {
            made = made.path(of: String(part))
            if access(made, F_OK) == 0 { continue }
            try step()
            try FileIO.makeOuterFolder(made)
        }
    }
}
