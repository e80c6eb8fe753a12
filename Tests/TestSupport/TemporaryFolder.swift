import Foundation

/// A new empty folder that goes away with the last reference to this object.
package final class TemporaryFolder: Sendable {
    package let url: URL
    package var path: String { url.path }

    package init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent(
            "fk-test-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    /// The path of something in the folder, which need not exist.
    package func file(_ name: String) -> URL {
        url.appendingPathComponent(name)
    }

    @discardableResult
    package func write(_ bytes: [UInt8], to name: String) throws -> URL {
        let target = file(name)
        try FileManager.default.createDirectory(
            at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: target)
        return target
    }

    package func read(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: file(name)))
    }
}
