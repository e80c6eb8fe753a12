import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Moves each finished file into a folder.
///
/// ```swift
/// chains.register(response: MoveToFolderMiddleware(folder: movies) { response in
///     response.response?.suggestedFilename        // nil keeps the name
/// })
/// ```
///
/// Nothing is replaced: where the name is taken, `name.1.ext`, `name.2.ext`, … is used. A folder on another file system
/// works too: the file is copied under a hidden name, synchronised, and then gets its name.
///
/// Where a process dies between the two steps of a move, the next run takes up the second name of the file. Where it dies
/// after a move and before the task's record tells of it, the file is fetched again and gets the next free name.
public struct MoveToFolderMiddleware: ResponseMiddleware {
    /// Gives the name the file shall have; nil keeps the one it has.
    public typealias Name = @Sendable (DownloadResponse) async throws -> String?

    /// Position in the chain.
    public let priority: Int
    /// Where files go.
    public let folder: URL
    private let name: Name

    /// - Parameters:
    ///   - folder: made with the folders above it when it is not there.
    ///   - priority: position in the chain; 200 by default, so that a file is checked before it is moved.
    ///   - name: a name with a slash, `.`, `..` or a control character in it is refused.
    public init(folder: URL, priority: Int = 200, name: @escaping Name = { _ in nil }) {
        self.folder = folder
        self.priority = priority
        self.name = name
    }

    /// Returns the response with the new place in `fileURL`. After a failure of the task it does nothing.
    ///
    /// - Throws: `.destination`, `.noSpace` or `.disk`; the file is then where it was.
    public func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        guard response.error == nil, let file = response.fileURL else { return response }
        let name = try await self.name(response) ?? file.lastPathComponent
        try Self.validate(name)
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        } catch {
            throw DownloadError(
                .destination, "The folder \(folder.path) cannot be made.", underlying: String(describing: error))
        }
        if file.standardizedFileURL.path == folder.appendingPathComponent(name).standardizedFileURL.path {
            return response
        }
        var response = response
        response.fileURL = try Self.move(file, into: folder, name: name, of: response.task.id)
        return response
    }

    private static func validate(_ name: String) throws {
        let isSafe =
            !name.isEmpty && name != "." && name != ".." && name.utf8.count <= 255
            && name.utf8.allSatisfy { $0 != 0x2f && $0 >= 0x20 && $0 != 0x7f }
        guard isSafe else {
            throw DownloadError(
                .destination,
                "\(String(reflecting: String(name.prefix(100)))) cannot be the name of a file in a folder.")
        }
    }

    private static func move(_ file: URL, into folder: URL, name: String, of task: String) throws -> URL {
        for number in 0..<10_000 {
            let target = folder.appendingPathComponent(numbered(name, number), isDirectory: false)
            // A hard link never replaces anything, which makes it the rename that refuses a taken name.
            if link(file.path, target.path) == 0 {
                unlink(file.path)
                return target
            }
            switch errno {
            case EEXIST where isSame(file, target):
                unlink(file.path)
                return target
            case EEXIST: continue
            case EXDEV, EPERM, EOPNOTSUPP, EMLINK: return try copy(file, into: folder, name: name, of: task)
            default: throw failure("moved", file, folder)
            }
        }
        throw DownloadError(.destination, "All names like \(name) are taken in \(folder.path).")
    }

    /// Two names of one file: between the two steps of a move the process died.
    private static func isSame(_ file: URL, _ other: URL) -> Bool {
        var one = stat()
        var two = stat()
        return lstat(file.path, &one) == 0 && lstat(other.path, &two) == 0 && one.st_ino == two.st_ino
            && one.st_dev == two.st_dev
    }

    /// For another file system, or one without hard links.
    private static func copy(_ file: URL, into folder: URL, name: String, of task: String) throws -> URL {
        // The same name each time: a copy that was interrupted is replaced by the next one.
        let aside = folder.appendingPathComponent(".fk-\(task.prefix(16)).moving", isDirectory: false)
        do {
            unlink(aside.path)
            try FileManager.default.copyItem(at: file, to: aside)
            let handle = try FileHandle(forUpdating: aside)
            defer { try? handle.close() }
            try handle.synchronize()
            let target = try publish(aside, in: folder, name: name)
            try FileManager.default.removeItem(at: file)
            return target
        } catch {
            unlink(aside.path)
            throw DownloadError(
                wrapping: error, code: .destination, message: "\(file.path) cannot be copied to \(folder.path).")
        }
    }

    private static func publish(_ aside: URL, in folder: URL, name: String) throws -> URL {
        for number in 0..<10_000 {
            let target = folder.appendingPathComponent(numbered(name, number), isDirectory: false)
            if link(aside.path, target.path) == 0 {
                unlink(aside.path)
                return target
            }
            if errno == EEXIST { continue }
            // Without hard links the name is reserved first; the empty file is ours to replace.
            let descriptor = open(target.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
            if descriptor < 0, errno == EEXIST { continue }
            guard descriptor >= 0, close(descriptor) == 0, rename(aside.path, target.path) == 0 else {
                throw failure("moved", aside, folder)
            }
            return target
        }
        throw DownloadError(.destination, "All names like \(name) are taken in \(folder.path).")
    }

    private static func failure(_ verb: String, _ file: URL, _ folder: URL) -> DownloadError {
        let code = errno
        let kind: DownloadError.Code = code == ENOSPC || code == EDQUOT ? .noSpace : .destination
        return DownloadError(
            kind, "\(file.path) cannot be \(verb) to \(folder.path): \(String(cString: strerror(code))).",
            underlying: "errno \(code)")
    }

    /// The name itself, then `name.1.ext`, `name.2.ext`, …; at most 255 bytes, which is what file systems take.
    static func numbered(_ name: String, _ number: Int) -> String {
        number == 0 ? name : FileNameParts.numbered(name, number, maxBytes: 255)
    }
}
