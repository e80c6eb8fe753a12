import FKCore
import FKMiddleware
import Foundation

/// A folder for the files of one run, in TMPDIR or /tmp, which every user may write to. Its name is unpredictable, it
/// is new, and no other user may enter it.
enum ScratchFolder {
    /// The absolute path of TMPDIR or /tmp.
    ///
    /// - Throws: `UsageError` if the variable cannot be read.
    static func base(_ context: CommandContext) throws -> String {
        guard !context.unreadable.contains("TMPDIR") else { throw UsageError("The variable TMPDIR is not UTF-8 text.") }
        let named = context.environment["TMPDIR"] ?? ""
        return try Paths.absolute(named.isEmpty ? "/tmp" : named, from: context.workingDirectory)
    }

    /// - Returns: the absolute path of a new folder with mode 0700.
    /// - Throws: `UsageError` or `CommandFailure` with the folder in which it cannot be created.
    static func make(_ prefix: String, _ context: CommandContext) throws -> String {
        let base = try base(context)
        var template = Array("\(base)/\(prefix)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw CommandFailure(
                "A temporary folder cannot be made in \(base): \(String(cString: strerror(errno))).",
                status: ExitStatus.taskFailed)
        }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
