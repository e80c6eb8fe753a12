import FKCore
import FKEngine
import FKMiddleware
import FKStore
import Foundation

/// A program that lists the files of a place: `SCHEME:REST`.
///
/// It reads one line of JSON from its standard input, `{"source": "SCHEME:REST", "include": [...], "exclude": [...]}`, and writes an object
/// for each file on a line of its own. Its word is that of a list from a server.
public struct SourceProgram: Codable, Sendable, Hashable {
    /// The scheme in lower case.
    public let scheme: String
    /// The program and its arguments, passed without a shell: at most 1,000 texts of 16 KiB in all. A program without a slash in its name
    /// is looked up in `PATH`.
    public let arguments: [String]
    /// The folder that the program runs in, and that a relative path of the program starts from.
    package let directory: String
    /// The time that one listing may take, 0.1 s to 1 hour. A program that takes longer is killed. The default is 10 s.
    public var timeLimit: Duration { .milliseconds(Int64((seconds * 1_000).rounded())) }
    private let seconds: Double

    private enum CodingKeys: String, CodingKey {
        case scheme, directory
        case arguments = "program"
        case seconds = "timeLimit"
    }

    /// Describes a program. It may be missing: its places cannot be listed then.
    ///
    /// - Parameter directory: the absolute path of a folder.
    /// - Throws: `.invalidArgument` for a value outside its range, and for a scheme that no reference can have.
    package init(
        scheme: String, arguments: [String], timeLimit: Duration = .seconds(10), directory: String
    ) throws(DownloadError) {
        self.scheme = scheme.lowercased()
        self.arguments = arguments
        self.directory = directory
        seconds = timeLimit.inSeconds
        try validate()
    }

    /// Reads a description, and checks it.
    ///
    /// - Throws: `DecodingError`, or `.invalidArgument` for a value outside its range.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        scheme = try fields.decode(String.self, forKey: .scheme)
        arguments = try fields.decode([String].self, forKey: .arguments)
        directory = try fields.decode(String.self, forKey: .directory)
        seconds = try fields.decode(Double.self, forKey: .seconds)
        try validate()
    }

    private func validate() throws(DownloadError) {
        func invalid(_ text: String) -> DownloadError {
            DownloadError(.invalidArgument, "The source \(scheme.prefix(80).visible): \(text).")
        }
        guard SourceReference.isScheme(scheme[...]), scheme == scheme.lowercased() else {
            throw invalid("a scheme has 2 to 32 letters, digits, '+', '-' and '.', with a letter first")
        }
        guard (0.1...3_600).contains(seconds) else { throw invalid("its time limit is 0.1 to 3600 seconds") }
        guard let program = arguments.first, !program.isEmpty else { throw invalid("it needs a program to run") }
        let bytes = arguments.reduce(arguments.count) { $0 + $1.utf8.count }
        guard arguments.count <= 1_000, bytes <= 16 << 10 else {
            throw invalid("it has more arguments than 1,000, or than 16 KiB")
        }
        guard !(arguments + [directory]).contains(where: { $0.utf8.contains(0) }) else {
            throw invalid("it has a zero byte in its arguments or its folder")
        }
        guard directory.utf8.first == UInt8(ascii: "/") else { throw invalid("its folder has no absolute path") }
    }

    /// The path of the program, if it can be run at present.
    ///
    /// - Throws: `.middleware` with the reason: it is missing or not executable.
    package func locate() throws(DownloadError) -> String { try ProgramRun(arguments, in: directory).locate() }
}

extension SourceProgram {
    /// The programs that list places, of a work path, by their schemes. It is a small JSON file, `sources`, replaced as a whole; without it
    /// there are none.
    package struct List: Sendable {
        private typealias File = ProgramFile<SourceProgram>

        private var file: File
        /// The programs, in the order in which they were added.
        package var programs: [SourceProgram] { file.programs }
        private let workPath: WorkPath

        /// Reads the list of a work path. A missing file is an empty list.
        ///
        /// - Throws: `.corruptInfo`, `.laterVersion`, `.tooLarge` or `.disk`, with the file's path.
        package init(in workPath: WorkPath) throws(DownloadError) {
            self.workPath = workPath
            let path = workPath.sourcesPath
            file = try File(
                at: path,
                damaged:
                    "The list of source programs, \(path), is damaged: correct the file, or remove it and add the programs again."
            ) { $0.scheme }
        }

        package subscript(scheme: String) -> SourceProgram? { programs.first { $0.scheme == scheme.lowercased() } }

        /// True if a program was added to this work path, and not to the one that this is a copy of.
        package func isTrusted(_ program: SourceProgram) -> Bool {
            let home = ProgramHome(workPath)
            return home != nil && file[home: program.scheme] == home
        }

        /// Changes the list, under a lock, and writes it.
        ///
        /// - Throws: the errors of `change`, and those of the file, which is then unchanged.
        package static func change(
            in workPath: WorkPath, _ change: (inout SourceProgram.List) throws -> Void
        ) throws {
            try workPath.withSettingsLock {
                var list = try SourceProgram.List(in: workPath)
                try change(&list)
                try list.file.write(to: workPath.sourcesPath)
            }
        }

        /// Adds a program, or lets the same one run that came with a copy of the work path.
        ///
        /// - Returns: false if it is there already, with the same settings, and may run.
        /// - Throws: `.invalidArgument` if the scheme has another program, or if there are too many.
        mutating func append(_ program: SourceProgram) throws(DownloadError) -> Bool {
            if let other = self[program.scheme] {
                guard other == program else {
                    throw DownloadError(
                        .invalidArgument,
                        "The scheme '\(program.scheme)' has another program already. Remove it first, or choose another scheme."
                    )
                }
                guard !isTrusted(program) else { return false }
            } else {
                guard programs.count < File.maxCount else {
                    throw DownloadError(.invalidArgument, "A work path has at most \(File.maxCount) source programs.")
                }
                file.programs.append(program)
            }
            trust(program)
            return true
        }

        /// - Throws: `.notFound` if there is none of that scheme.
        package mutating func remove(scheme: String) throws(DownloadError) {
            guard let program = self[scheme] else {
                throw DownloadError(.notFound, "There is no source program for '\(scheme.visible)'.")
            }
            file.programs.removeAll { $0 == program }
            file[home: program.scheme] = nil
        }

        /// Lets all programs run that came with a copy of the work path. Returns their schemes.
        package mutating func trust() -> [String] {
            let untrusted = programs.filter { !isTrusted($0) }
            untrusted.forEach { trust($0) }
            return untrusted.map(\.scheme)
        }

        private mutating func trust(_ program: SourceProgram) {
            file[home: program.scheme] = ProgramHome(workPath)
        }
    }
}
