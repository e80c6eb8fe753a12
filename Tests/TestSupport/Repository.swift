import Foundation

/// The files of the package that the tests belong to.
package enum Repository {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    package static func url(_ path: String) -> URL { root.appendingPathComponent(path) }

    package static func text(_ path: String) throws -> String { try String(contentsOf: url(path), encoding: .utf8) }

    /// The texts of the Swift files below a folder, by their paths in it.
    package static func sources(_ folder: String) throws -> [String: String] {
        let names = FileManager.default.enumerator(atPath: url(folder).path)?.compactMap { $0 as? String } ?? []
        let paths = names.filter { $0.hasSuffix(".swift") }
        return Dictionary(uniqueKeysWithValues: try paths.map { ($0, try text("\(folder)/\($0)")) })
    }
}
