import Foundation

/// Moves each finished file into a folder.
///
/// ```swift
/// chains.register(response: MoveToFolderMiddleware(folder: movies) { response in
///     response.response?.suggestedFilename        // nil keeps the name
/// })
/// ```
///
/// It never replaces a file: if the name is taken, it uses `name.1.ext`, `name.2.ext` and so on. The folder may be on
/// another file system: the file is then copied under a hidden name, synced, and renamed.
///
/// The engine removes the old place once the task's record contains the new one (`DownloadResponse.leftBehind`). A
/// process that dies in between leaves both, and the next run adopts the file in the new place. If the folder's file
/// system has no hard links, the next run copies the file again, to the next free name.
public struct MoveToFolderMiddleware: ResponseMiddleware {
    /// Returns the new name of the file; nil keeps its name.
    public typealias Name = @Sendable (DownloadResponse) async throws -> String?

    /// The position in the chain. The default is 200.
    public let priority: Int
    /// The folder that files are moved to.
    public let folder: URL
    private let name: Name
    private let numbers = Locked(NameNumbers())

    /// Creates the middleware.
    ///
    /// - Parameters:
    ///   - folder: is created with its parents if missing.
    ///   - priority: the position in the chain; the default is 200, so that a file is checked before it is moved.
    ///   - name: returns the new name. Names with a slash or a control character, `.`, `..`, and names over 255 bytes
    ///     are refused.
    public init(folder: URL, priority: Int = 200, name: @escaping Name = { _ in nil }) {
        self.folder = folder
        self.priority = priority
        self.name = name
    }

    /// Moves the file and returns the response with the new place in `fileURL`. It ignores a failed task.
    ///
    /// - Throws: `.destination`, `.noSpace` or `.disk`, and the error of `name`. The file then stays where it was.
    public func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        guard response.error == nil, let file = response.fileURL else { return response }
        guard !folder.path.isEmpty else {
            throw DownloadError(.destination, "The folder to move files to has no path in UTF-8.")
        }
        let name = try await self.name(response) ?? file.lastPathComponent
        try Self.validate(name)
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        } catch {
            throw DownloadError(
                .destination, "The folder \(folder.path) cannot be made.", underlying: String(describing: error))
        }
        let place = folder.appendingPathComponent(name).standardizedFileURL.path
        if file.standardizedFileURL.path.isExactly(place) { return response }
        var response = response
        let aside = folder.appendingPathComponent(Self.asideName(response.task.id, file), isDirectory: false)
        if let place = try link(file, name: name) {
            response.fileURL = place
        } else {
            response.fileURL = try copy(file, by: aside, name: name)
            response.leftBehind.append(aside)
        }
        response.leftBehind.append(file)
        return response
    }

    /// The hidden name of a copy. Two work paths may move files of one task into one folder at once: their received files have
    /// different paths.
    private static func asideName(_ id: TaskID, _ file: URL) -> String {
        let sum = Array(file.path.utf8).withUnsafeBytes { CRC32C.checksum($0) }
        return ".fk-\(id.hex.prefix(16))-\(String(sum, radix: 16)).moving"
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

    /// Links the file into the folder; nil if the folder is on another file system or its file system has no hard
    /// links.
    ///
    /// A hard link never replaces a file, so linking works as a rename that refuses a taken name.
    private func link(_ file: URL, name: String) throws -> URL? {
        // A file with a single name cannot be in the folder already.
        for target in places(for: name, from: FileNames.hasOtherName(file.path) ? 0 : free(name)) {
            if Foundation.link(file.path, target.path) == 0 { return target }
            switch errno {
            // A process died after it had made the second name.
            case EEXIST where FileNames.areOfOneFile(file.path, target.path): return target
            case EEXIST: continue
            case EXDEV, EPERM, EOPNOTSUPP, EMLINK: return nil
            case EINVAL where Self.isRefused(name), EILSEQ where Self.isRefused(name):
                return try link(file, name: FileNameParts.portable(name))
            default: throw failure("moved", file)
            }
        }
        throw allTaken(name)
    }

    /// Copies the file into the folder under a hidden name, then publishes it.
    ///
    /// - Parameter aside: the same name in each run. It stays until the task's record is written. A file in the
    ///   folder that is a second name of it is therefore a copy made by a process that died.
    private func copy(_ file: URL, by aside: URL, name: String) throws -> URL {
        let earlier =
            FileNames.hasOtherName(aside.path)
            ? places(for: name, from: 0).prefix { (try? $0.checkResourceIsReachable()) == true }
                .first { FileNames.areOfOneFile(aside.path, $0.path) } : nil
        if let earlier, FileManager.default.contentsEqual(atPath: file.path, andPath: earlier.path) { return earlier }
        do {
            unlink(aside.path)
            try FileManager.default.copyItem(at: file, to: aside)
            let handle = try FileHandle(forUpdating: aside)
            defer { try? handle.close() }
            try handle.synchronize()
            return try publish(aside, name: name)
        } catch {
            unlink(aside.path)
            throw DownloadError(
                wrapping: error, code: .destination, message: "\(file.path) cannot be copied to \(folder.path).")
        }
    }

    private func publish(_ aside: URL, name: String) throws -> URL {
        for target in places(for: name, from: free(name)) {
            if Foundation.link(aside.path, target.path) == 0 { return target }
            if errno == EEXIST { continue }
            if FileNames.renameByReserving(aside.path, to: target.path) == 0 { return target }
            if errno == EINVAL || errno == EILSEQ, Self.isRefused(name) {
                return try publish(aside, name: FileNameParts.portable(name))
            }
            guard errno == EEXIST else { throw failure("moved", aside) }
        }
        throw allTaken(name)
    }

    /// True if a file system may refuse the name, but not `FileNameParts.portable`.
    private static func isRefused(_ name: String) -> Bool { !FileNameParts.portable(name).isExactly(name) }

    private func failure(_ verb: String, _ file: URL) -> DownloadError {
        let code = errno
        let kind: DownloadError.Code = code == ENOSPC || code == EDQUOT ? .noSpace : .destination
        return DownloadError(
            kind, "\(file.path) cannot be \(verb) to \(folder.path): \(String(cString: strerror(code))).",
            underlying: "errno \(code)")
    }

    private func allTaken(_ name: String) -> DownloadError {
        DownloadError(.destination, "All names like \(name) are taken in \(folder.path).")
    }

    /// The place for number `first` and the 9,999 after it. Number 0 is the plain name.
    private func places(for name: String, from first: Int) -> LazyMapSequence<Range<Int>, URL> {
        (first..<first + 10_000).lazy.map(place(for: name))
    }

    private func place(for name: String) -> (Int) -> URL {
        { folder.appendingPathComponent(Self.numbered(name, $0), isDirectory: false) }
    }

    /// The number of a free name. `numbers` keeps thousands of files with one name from trying all numbers.
    private func free(_ name: String) -> Int {
        let place = place(for: name)
        return numbers.withLock { numbers in
            numbers.next("\(folder.path)/\(name)", owner: "") { place($0).path.existsOnDisk ? .taken : .free }
        }
    }

    /// The numbered name, at most 255 bytes long, which is the limit of most file systems.
    static func numbered(_ name: String, _ number: Int) -> String {
        number == 0 ? name : FileNameParts.numbered(name, number, maxBytes: 255)
    }
}
