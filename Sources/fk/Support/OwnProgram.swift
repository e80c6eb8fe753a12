import Foundation

/// The file this process runs from, to start it once more.
enum OwnProgram {
    /// - Throws: when the system does not tell.
    static func path() throws -> String {
        #if os(Linux)
            return try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        #else
            guard let path = Bundle.main.executablePath else {
                throw CommandFailure("This program cannot find its own file.", status: ExitStatus.taskFailed)
            }
            return path
        #endif
    }
}
