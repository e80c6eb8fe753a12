import Foundation

/// The executable of this process, to start it again.
enum OwnProgram {
    /// - Throws: `CommandFailure` if the system does not report it.
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
