import Foundation

/// A new empty folder that goes away with the last reference to this object.
package final class TemporaryFolder: Sendable {
    package let url: URL
    package var path: String { url.path }

    /// - Parameter parent: the folder of the new one; the default is the system's for temporary files.
    package init(in parent: URL = FileManager.default.temporaryDirectory) throws {
        url = parent.resolvingSymlinksInPath().appendingPathComponent("fk-test-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    /// A folder in memory, if that is another file system than the one for temporary files.
    package static let memory: URL? = {
        let memory = URL(fileURLWithPath: "/dev/shm", isDirectory: true)
        let devices = [memory, FileManager.default.temporaryDirectory].map {
            (try? FileManager.default.attributesOfItem(atPath: $0.path))?[.systemNumber] as? Int
        }
        return devices[0] != nil && devices[0] != devices[1] && access(memory.path, W_OK) == 0 ? memory : nil
    }()

    /// The names of everything in the folder, sorted.
    package var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

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
