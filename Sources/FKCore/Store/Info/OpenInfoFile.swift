import Foundation

/// An info file that stays open between two updates. Use it from one thread.
package final class OpenInfoFile {
    private var descriptor: Int32 = -1
    private var path = ""

    /// Creates it without opening a file.
    package init() {}

    deinit { close() }

    /// The descriptor for reading and writing; opens the file if necessary.
    package func descriptor(_ path: String) throws -> Int32 {
        if descriptor < 0 {
            descriptor = try FileIO.open(path, O_RDWR)
            self.path = path
        }
        return descriptor
    }

    /// Closes the file after the last update. An error that the system reports only now is thrown.
    package func closeWritten() throws {
        guard descriptor >= 0 else { return }
        defer { descriptor = -1 }
        try FileIO.close(descriptor, written: path)
    }

    /// Closes the file and ignores errors.
    package func close() {
        if descriptor >= 0 { FileIO.close(descriptor) }
        descriptor = -1
    }
}
