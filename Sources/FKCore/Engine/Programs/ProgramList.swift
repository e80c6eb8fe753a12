import FKMiddleware

/// The middleware programs of a work path, in the order in which they were added. It is a small JSON file,
/// `middlewares`, replaced as a whole; without it there are none.
package struct ProgramList: Sendable, Hashable {
    private struct File: Codable {
        var format: Int
        var programs: [MiddlewareProgram]
    }

    private struct Version: Codable {
        var format: Int
    }

    /// The most programs of a work path.
    package static let maxCount = 100
    /// The most bytes of the file.
    private static let maxBytes = 8 << 20

    /// The programs.
    package private(set) var programs: [MiddlewareProgram] = []

    /// An empty list.
    package init() {}

    /// Reads the list of a work path. A missing file is an empty list.
    ///
    /// - Throws: `.corruptInfo`, `.laterVersion`, `.tooLarge` or `.disk`, with the file's path.
    package init(in workPath: WorkPath) throws(DownloadError) {
        let path = workPath.middlewaresPath
        do {
            let bytes = try FileIO.contents(of: path, limit: Self.maxBytes)
            let version = try StoreJSON.decode(Version.self, from: bytes).format
            guard version == 1 else {
                throw DownloadError(.laterVersion, "\(path) has format \(version); this program knows 1.")
            }
            programs = try StoreJSON.decode(File.self, from: bytes).programs
            guard programs.count <= Self.maxCount, Set(programs.map { ExactText($0.name) }).count == programs.count
            else {
                throw DownloadError(.corruptInfo, "It has too many programs, or two of one name.")
            }
        } catch let error as DownloadError where error.code == .notFound {
            return
        } catch let error as DownloadError where error.code == .corruptInfo {
            throw DownloadError(
                .corruptInfo,
                "The list of middleware programs, \(path), is damaged. Nothing is downloaded without them: correct the file, "
                    + "or remove it and add the programs again.", underlying: error.underlying ?? error.message)
        } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "Cannot read \(path).")
        }
    }

    /// Replaces the file.
    ///
    /// - Throws: `.noSpace` or `.disk`. The file is then unchanged.
    package func write(in workPath: WorkPath) throws {
        let bytes = try StoreJSON.encode(File(format: 1, programs: programs))
        try bytes.withUnsafeBytes {
            try FileIO.replace(workPath.middlewaresPath, aside: workPath.middlewaresPath + ".new", $0)
        }
    }

    /// Adds a program at the end.
    ///
    /// - Returns: false if it is there already, with the same settings.
    /// - Throws: `.invalidArgument` if another program has its name, or if there are too many.
    package mutating func add(_ program: MiddlewareProgram) throws(DownloadError) -> Bool {
        if let other = self[program.name] {
            if other == program { return false }
            throw DownloadError(
                .invalidArgument,
                "There is a middleware program named \(program.name) already. Remove it first, or choose another name.")
        }
        guard programs.count < Self.maxCount else {
            throw DownloadError(.invalidArgument, "A work path has at most \(Self.maxCount) middleware programs.")
        }
        programs.append(program)
        return true
    }

    /// Removes a program.
    ///
    /// - Throws: `.notFound` if there is none of that name.
    package mutating func remove(named name: String) throws(DownloadError) {
        guard let program = self[name] else { throw Self.missing(name) }
        programs.removeAll { $0 == program }
    }

    /// The program of that name; nil if there is none.
    package subscript(name: String) -> MiddlewareProgram? { programs.first { $0.name.isExactly(name) } }

    /// The error for a name without a program.
    package static func missing(_ name: String) -> DownloadError {
        DownloadError(.notFound, "There is no middleware program named \"\(name)\".")
    }
}
