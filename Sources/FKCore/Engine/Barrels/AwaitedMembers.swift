import FKMiddleware
import Foundation

/// The URLs that were put into barrels before they had a task. Their tasks join when they are made.
///
/// They are in `<root>/awaited`, a line each: the URL, a tab and the barrel's name with control characters and `%` percent-encoded. The file exists only
/// while there are any. Confined to the engine.
struct AwaitedMembers {
    private let workPath: WorkPath
    /// The names of the barrels by URL; nil until the file is read.
    private var barrels: [String: [String]]?

    /// The maximum size of the file in bytes.
    private static let maxSize = 64 << 20

    init(_ workPath: WorkPath) { self.workPath = workPath }

    private var path: String { workPath.awaitedPath }

    /// The barrels that the task of a URL joins.
    ///
    /// - Parameter url: percent-encoded, as in records.
    /// - Throws: `.disk` if the file cannot be read.
    mutating func names(of url: String) throws -> [String] { try read()[url] ?? [] }

    /// Adds URLs to a barrel.
    ///
    /// - Throws: `.disk` or `.noSpace`.
    mutating func insert(_ urls: [String], into barrel: String) throws {
        var all = try read()
        for url in urls where all[url]?.containsExactly(barrel) != true { all[url, default: []].append(barrel) }
        if all != barrels { try write(all) }
    }

    /// Removes these URLs from a barrel; nil removes all of the barrel.
    ///
    /// - Returns: the number of removed URLs.
    /// - Throws: `.disk` or `.noSpace`.
    @discardableResult
    mutating func remove(_ urls: Set<String>?, from barrel: String) throws -> Int {
        var all = try read()
        var count = 0
        for (url, names) in all where urls?.contains(url) != false && names.containsExactly(barrel) {
            let rest = names.filter { !$0.isExactly(barrel) }
            all[url] = rest.isEmpty ? nil : rest
            count += 1
        }
        if count > 0 { try write(all) }
        return count
    }

    private mutating func read() throws -> [String: [String]] {
        if let barrels { return barrels }
        var read: [String: [String]] = [:]
        do {
            let bytes = try FileIO.contents(of: path, limit: Self.maxSize)
            for line in bytes.split(separator: 0x0a) {
                let parts = line.split(separator: 0x09, maxSplits: 1)
                guard parts.count == 2, let name = String(validating: parts[1].percentDecoded, as: UTF8.self) else {
                    continue
                }
                read[String(decoding: parts[0], as: UTF8.self), default: []].append(name)
            }
        } catch let error as DownloadError where error.code == .notFound {
        }
        barrels = read
        return read
    }

    private mutating func write(_ all: [String: [String]]) throws {
        if all.isEmpty {
            try FileIO.remove(path)
        } else {
            var text = ""
            for (url, names) in all.sorted(by: { $0.key < $1.key }) {
                for name in names { text += "\(url)\t\(Self.encoded(name))\n" }
            }
            try Array(text.utf8).withUnsafeBytes { try FileIO.replace(path, aside: "\(path).new", $0) }
        }
        barrels = all
    }

    private static func encoded(_ name: String) -> String {
        var bytes: [UInt8] = []
        for byte in name.utf8 {
            if byte < 0x20 || byte == UInt8(ascii: "%") {
                bytes.appendPercentEncoded(byte)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
