import FKMiddleware
import Foundation

/// A program that stands in a middleware chain. It reads a JSON object from its standard input and may write one to its
/// standard output.
///
/// ```swift
/// let sign = try MiddlewareProgram(name: "sign", stage: .request, arguments: ["/usr/local/bin/sign", "--key", "7"])
/// try await downloader.programs.add(sign)                             // in the work path, for every process
/// downloader.middlewares.register(request: sign.middleware())   // only in this process
/// ```
public struct MiddlewareProgram: Sendable, Hashable {
    /// The chain that the program stands in.
    public enum Stage: String, Codable, Sendable, Hashable, CaseIterable {
        /// Before each request: may change the URL and the header fields.
        case request
        /// When the head of the response is there, before a byte is written: may refuse the file.
        case head
        /// At each change of state: is told, and changes nothing.
        case download
        /// After the last byte: may check, move or reject the file. It does not run for failed tasks.
        case response
        /// After each failed attempt: may ask for another one, or fail the task.
        case failure
    }

    /// Identifies it in its work path: 1 to 64 bytes without control characters and slashes.
    public let name: String
    /// The chain that it stands in.
    public let stage: Stage
    /// The position in the chain, at least 1. Lower values run earlier. The default is 100.
    package let priority: Int
    /// The barrel whose members it handles; nil, the default, for all tasks.
    package let barrel: String?
    /// The time that one run may take, 0.1 s to 1 hour. The default is 10 s. A program that takes longer is killed.
    package let timeLimit: Duration
    /// The program and its arguments, passed without a shell: at most 1,000 texts of 16 KiB in all. A program without a
    /// slash in its name is looked up in `PATH`.
    package let arguments: [String]
    /// The folder that the program runs in, and that a relative path of the program starts from.
    package let directory: String

    /// Describes a program. It may be missing: tasks then fail until it is there.
    ///
    /// - Parameters:
    ///   - folder: a file URL; nil, the default, for the current folder.
    /// - Throws: `.invalidArgument` for a value outside its range.
    public init(
        name: String, stage: Stage, priority: Int = 100, barrel: String? = nil, timeLimit: Duration = .seconds(10),
        arguments: [String], folder: URL? = nil
    ) throws(DownloadError) {
        try self.init(
            name: name, stage: stage, priority: priority, barrel: barrel, timeLimit: timeLimit, arguments: arguments,
            directory: folder?.absoluteURL.filePath ?? ProcessInfo.currentFolder ?? "/")
    }

    /// Describes a program that runs in the folder of an absolute path.
    package init(
        name: String, stage: Stage, priority: Int = 100, barrel: String? = nil, timeLimit: Duration = .seconds(10),
        arguments: [String], directory: String
    ) throws(DownloadError) {
        self.name = name
        self.stage = stage
        self.priority = priority
        self.barrel = barrel
        self.timeLimit = timeLimit
        self.arguments = arguments
        self.directory = directory
        try validate()
    }

    /// The longest name in bytes.
    static let maxNameBytes = 64
    /// The number of arguments with the program, and their bytes in all.
    static let maxArguments = (count: 1_000, bytes: 16 << 10)

    private func validate() throws(DownloadError) {
        guard (1...Self.maxNameBytes).contains(name.utf8.count), name != ".", name != "..",
            !name.utf8.contains(UInt8(ascii: "/")), !name.unicodeScalars.contains(where: \.isHidden)
        else {
            throw invalid("has a name of 1 to \(Self.maxNameBytes) bytes without slashes and control characters")
        }
        guard priority >= 1 else { throw invalid("has a priority of at least 1, not \(priority)") }
        guard (0.1...3_600).contains(timeLimit.inSeconds) else {
            throw invalid("has a time limit of 0.1 to 3600 seconds")
        }
        guard let program = arguments.first, !program.isEmpty else { throw invalid("needs a program to run") }
        let bytes = arguments.reduce(arguments.count) { $0 + $1.utf8.count }
        guard arguments.count <= Self.maxArguments.count, bytes <= Self.maxArguments.bytes else {
            throw invalid("has more arguments than \(Self.maxArguments.count), or than 16 KiB")
        }
        guard !(arguments + [directory]).contains(where: { $0.utf8.contains(0) }) else {
            throw invalid("has a zero byte in its arguments or its folder")
        }
        guard directory.utf8.first == UInt8(ascii: "/") else { throw invalid("runs in a folder with an absolute path") }
        guard let barrel else { return }
        do { try barrel.validateAsBarrelName() } catch {
            throw DownloadError(wrapping: error, code: .invalidArgument, message: "The barrel's name is invalid.")
        }
    }

    private func invalid(_ text: String) -> DownloadError {
        DownloadError(.invalidArgument, "The middleware program \(name.prefix(80).visible) \(text).")
    }

    /// The tasks that it handles.
    package var scope: MiddlewareScope { barrel.map { .barrel($0) } ?? .all }

    /// The path of the program, if it can be run at present.
    ///
    /// - Throws: `.middleware` with the reason: it is missing or not executable.
    package func locate() throws(DownloadError) -> String {
        try ProgramPath.find(arguments[0], from: directory, path: ProgramPath.searched)
    }
}

extension MiddlewareProgram: Codable {
    private enum CodingKeys: String, CodingKey {
        case name, stage, priority, barrel, timeLimit, directory
        case arguments = "program"
    }

    /// Reads a description, and checks it.
    ///
    /// - Throws: `DecodingError`, or `.invalidArgument` for a value outside its range.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        let seconds = try fields.decode(Double.self, forKey: .timeLimit)
        try self.init(
            name: fields.decode(String.self, forKey: .name), stage: fields.decode(Stage.self, forKey: .stage),
            priority: fields.decode(Int.self, forKey: .priority),
            barrel: fields.decodeIfPresent(String.self, forKey: .barrel),
            timeLimit: .milliseconds(Int64((min(max(seconds, 0), 1e6) * 1_000).rounded())),
            arguments: fields.decode([String].self, forKey: .arguments),
            directory: fields.decode(String.self, forKey: .directory))
    }

    /// Writes the description. The time limit is in seconds.
    ///
    /// - Throws: the encoder's error.
    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(name, forKey: .name)
        try fields.encode(stage, forKey: .stage)
        try fields.encode(priority, forKey: .priority)
        try fields.encodeIfPresent(barrel, forKey: .barrel)
        try fields.encode(timeLimit.inSeconds, forKey: .timeLimit)
        try fields.encode(arguments, forKey: .arguments)
        try fields.encode(directory, forKey: .directory)
    }
}
