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

    /// Writes a script that is about to be started, in a process of its own: a program that another test starts at this
    /// moment would hold the file open for writing for an instant, and the system starts no such file.
    @discardableResult
    package func writeScript(_ text: String, to name: String, mode: Int = 0o755) throws -> String {
        let path = file(name).path
        let commands = #"printf %s "$1" > "$0" && chmod "$2" "$0""#
        try Program.run("sh", ["-c", commands, path, text, String(mode, radix: 8)])
        return path
    }

    package func read(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: file(name)))
    }
}
