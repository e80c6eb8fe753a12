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
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.currentDirectoryURL = folder
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "\(name) \(arguments.joined(separator: " ")) failed: \(output)")
        }
        return output
    }
}
