import Foundation

/// Runs programs that tests need and says clearly when one is missing.
package enum Program {
    package struct Failure: Error, CustomStringConvertible {
        package var description: String
    }

    /// Looks in PATH and in the folders for system programs.
    package static func find(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders =
            path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]
        return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Runs a program to its end.
    ///
    /// - Returns: what it wrote to its standard output and error.
    /// - Throws: `Failure` when it is missing or its status is not 0.
    @discardableResult
    package static func run(_ name: String, _ arguments: [String], in folder: URL? = nil) throws -> String {
        guard let program = find(name) else {
            throw Failure(description: "The program \(name) is needed for this test and is not installed.")
        }
        let scratch = try TemporaryFolder()
        let status = try ChildProcess(
            [program] + arguments, folder: (folder ?? scratch.url).path, output: .file(scratch.file("output").path)
        ).end()
        let output = String(decoding: (try? scratch.read("output")) ?? [], as: UTF8.self)
        guard status == 0 else {
            throw Failure(description: "\(name) \(arguments.joined(separator: " ")) failed: \(output)")
        }
        return output
    }

    /// Writes a script that is about to be started, in a process of its own: a program that another test starts at this
    /// moment would hold the file open for writing for an instant, and the system starts no such file.
    ///
    /// - Returns: its path.
    package static func writeScript(_ text: String, to path: String, mode: Int = 0o755) throws -> String {
        let commands = #"printf %s "$1" > "$0" && chmod "$2" "$0""#
        try run("sh", ["-c", commands, path, text, String(mode, radix: 8)])
        return path
    }
}
