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
/// The old place is the engine's to remove, once the task's record tells of the new one (`DownloadResponse.leftBehind`). A
/// process that dies meanwhile leaves both, and the next run takes up the file in its new place. Only where the folder's file
/// system has no hard links does it copy once more, to the next free name.
public struct MoveToFolderMiddleware: ResponseMiddleware {
    /// Gives the name the file shall have; nil keeps the one it has.
    public typealias Name = @Sendable (DownloadResponse) async throws -> String?

    /// Position in the chain.
    public let priority: Int
    /// Where files go.
    public let folder: URL
    private let name: Name
    private let numbers = Locked(NameNumbers())

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
        let aside = folder.appendingPathComponent(".fk-\(response.task.id.prefix(16)).moving", isDirectory: false)
        if let place = try link(file, name: name) {
            response.fileURL = place
        } else {
            response.fileURL = try copy(file, by: aside, name: name)
            response.leftBehind.append(aside)
        }
        response.leftBehind.append(file)
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

    /// Nil where it cannot be done by a link: the folder is on another file system, or on one without them.
    ///
    /// A hard link never replaces anything, which makes it the rename that refuses a taken name.
    private func link(_ file: URL, name: String) throws -> URL? {
        // Only a file that has a second name may have it here already.
        for target in places(for: name, from: FileNames.hasOtherName(file.path) ? 0 : free(name)) {
            if Foundation.link(file.path, target.path) == 0 { return target }
            switch errno {
            // A process has died since it made the second name.
            case EEXIST where FileNames.areOfOneFile(file.path, target.path): return target
            case EEXIST: continue
            case EXDEV, EPERM, EOPNOTSUPP, EMLINK: return nil
            default: throw failure("moved", file)
            }
        }
        throw allTaken(name)
    }

    /// - Parameter aside: the same name each time, which stays until the task's record is written: a file in the folder
    ///   that it is another name of was copied by a process that died since.
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
            // Without hard links the name is reserved first; the empty file is ours to replace.
            let descriptor = open(target.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
            if descriptor < 0, errno == EEXIST { continue }
            guard descriptor >= 0, close(descriptor) == 0, rename(aside.path, target.path) == 0 else {
                throw failure("moved", aside)
            }
            return target
        }
        throw allTaken(name)
    }

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

    /// `name.first.ext`, and 10,000 more; the name itself for 0.
    private func places(for name: String, from first: Int) -> LazyMapSequence<Range<Int>, URL> {
        (first..<first + 10_000).lazy.map(place(for: name))
    }

    private func place(for name: String) -> (Int) -> URL {
        { folder.appendingPathComponent(Self.numbered(name, $0), isDirectory: false) }
    }

    /// The number of a free name: thousands of files that want one name do not all try all of them.
    private func free(_ name: String) -> Int {
        let place = place(for: name)
        return numbers.withLock { numbers in
            numbers.next("\(folder.path)/\(name)", owner: "") { FileNames.exists(place($0).path) ? .taken : .free }
        }
    }

    /// At most 255 bytes, which is what file systems take.
    static func numbered(_ name: String, _ number: Int) -> String {
        number == 0 ? name : FileNameParts.numbered(name, number, maxBytes: 255)
    }
}
