import FKMiddleware

/// The file of one kind of programs of a work path, with where each was added. It is small JSON, and replaced as a whole.
package struct ProgramFile<Program: Codable & Sendable & Hashable>: Codable, Sendable, Hashable {
    private struct Version: Codable {
        var format: Int
    }

    private var format = 1
    /// The programs, in the order in which they were added.
    package var programs: [Program] = []
    /// nil in files of earlier versions.
    private var homes: [String: ProgramHome]? = [:]

    /// The most programs of a work path.
    package static var maxCount: Int { 100 }
    /// The most bytes of the file.
    private static var maxBytes: Int { 8 << 20 }

    /// Where the program of that name was added; nil where that is unknown.
    package subscript(home name: String) -> ProgramHome? {
        get { homes?[name] }
        set {
            homes = homes ?? [:]
            homes?[name] = newValue
        }
    }

    package init() {}

    /// Reads the file; without one there are no programs.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - damaged: the message for a file that cannot be understood.
    ///   - name: a program's name. Two programs of one name are damage.
    /// - Throws: `.corruptInfo`, `.laterVersion`, `.tooLarge` or `.disk`, with the file's path.
    package init(at path: String, damaged: String, name: (Program) -> String) throws(DownloadError) {
        do {
            let bytes = try FileIO.contents(of: path, limit: Self.maxBytes)
            let version = try StoreJSON.decode(Version.self, from: bytes).format
            guard version == 1 else {
                throw DownloadError(.laterVersion, "\(path) has format \(version); this program knows 1.")
            }
            self = try StoreJSON.decode(Self.self, from: bytes)
            guard programs.count <= Self.maxCount, Set(programs.map { ExactText(name($0)) }).count == programs.count
            else {
                throw DownloadError(.corruptInfo, "It has too many programs, or two of one name.")
            }
        } catch let error as DownloadError where error.code == .notFound {
            self.init()
        } catch let error as DownloadError where error.code == .corruptInfo {
            throw DownloadError(.corruptInfo, damaged, underlying: error.underlying ?? error.message)
        } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "Cannot read \(path).")
        }
    }

    /// Replaces the file.
    ///
    /// - Throws: `.noSpace` or `.disk`. The file is then unchanged.
    package func write(to path: String) throws {
        try StoreJSON.encode(self).withUnsafeBytes { try FileIO.replace(path, aside: path + ".new", $0) }
    }
}
