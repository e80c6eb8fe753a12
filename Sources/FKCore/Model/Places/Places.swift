import FKMiddleware
import Foundation

/// The stored form of places: the absolute paths of folders and files in records and barrel files.
///
/// ```text
/// work:files/ab/…     below the work path
/// documents:music/a   below the base of that name; `documents:` is the base itself
/// /data/a             below no base
/// :/data/a            the same, where a base has moved away from /data
/// ```
///
/// A base is a folder that may move with all that it has. Memory has only absolute paths: records and barrel files are converted
/// when they are read and written. Paths are compared by their bytes; a symbolic link is another path.
package struct Places: Sendable, Hashable {
    /// A folder that places are relative to.
    package struct Base: Sendable, Hashable {
        /// The name in stored places.
        package let name: String
        /// The present path.
        package let root: String
        /// The path when the base got its name. The ids of tasks are computed with it, and older records have it.
        package let first: String

        package init(name: String, root: String, first: String) {
            (self.name, self.root, self.first) = (name, root, first)
        }

        fileprivate var hasMoved: Bool { !root.isExactly(first) }
    }

    /// The name of the work path as a base.
    package static let work = "work"
    /// Without a base: every place is absolute.
    package static let none = Places([])

    /// The longest root first, so that the nearest base is found first.
    package let bases: [Base]
    /// The same bases, the longest former root first.
    private let formerly: [Base]
    private let hasMoved: Bool

    /// Creates the form. Of two bases with the same root, the work path is used, else the first by name.
    package init(_ bases: [Base]) {
        self.bases = bases.sorted {
            if $0.root.utf8.count != $1.root.utf8.count { return $0.root.utf8.count > $1.root.utf8.count }
            return Self.precedes($0.name, $1.name)
        }
        // Of two with one former root, the one that places had then is first.
        formerly = bases.sorted {
            if $0.first.utf8.count != $1.first.utf8.count { return $0.first.utf8.count > $1.first.utf8.count }
            return Self.precedes($0.name, $1.name)
        }
        hasMoved = bases.contains(where: \.hasMoved)
    }

    /// The order of two bases with one root.
    private static func precedes(_ one: String, _ other: String) -> Bool {
        one == work ? other != work : other != work && one < other
    }

    /// The nearest base of a place; nil if it is in none.
    package func base(of place: String) -> Base? { bases.first { Self.remainder(of: place, in: $0.root) != nil } }

    // MARK: Converting

    /// The stored form of an absolute path; nil if it is the path itself.
    package func stored(_ place: String) -> String? {
        for base in bases {
            if let rest = Self.remainder(of: place, in: base.root) { return "\(base.name):\(rest)" }
        }
        let isAbsolute = place.utf8.first == UInt8(ascii: "/")
        let isUnclear = isAbsolute ? isLeft(place) : place.utf8.contains(UInt8(ascii: ":"))
        return isUnclear ? ":" + place : nil
    }

    /// The absolute path of a stored place; nil if it is the text itself.
    ///
    /// - Throws: `.destination` for a base that has no folder here, `.corruptInfo` for a text that is never stored.
    package func resolved(_ text: String) throws(DownloadError) -> String? {
        if text.utf8.first == UInt8(ascii: "/") {
            // An earlier version wrote it, or it was stored before its folder became a base.
            guard let base = formerBase(of: text), base.hasMoved, let rest = Self.remainder(of: text, in: base.first)
            else {
                return nil
            }
            return Self.path(base.root, rest)
        }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let (name, rest) = (String(text[..<colon]), String(text[text.utf8.index(after: colon)...]))
        if name.isEmpty { return rest }
        guard Self.isName(name), !Self.leadsUp(rest) else {
            throw DownloadError(.corruptInfo, "The record is invalid: a place leads out of its base.")
        }
        guard let base = bases.first(where: { $0.name == name }) else { throw Self.unnamed(name) }
        return Self.path(base.root, rest)
    }

    /// The path that a place had when its base got its name; nil if it is the same. `:NAME:REST` is a place whose former path
    /// belongs to another base, and `:PATH` a place without a base where one has been.
    package func former(_ place: String) -> String? {
        guard hasMoved else { return nil }
        guard let base = base(of: place), let rest = Self.remainder(of: place, in: base.root) else {
            return isLeft(place) ? ":" + place : nil
        }
        let former = base.hasMoved ? Self.path(base.first, rest) : place
        if let owner = formerBase(of: former), owner.name != base.name { return ":\(base.name):\(rest)" }
        return base.hasMoved ? former : nil
    }

    /// The base that a former path belonged to: the nearest one.
    private func formerBase(of path: String) -> Base? {
        formerly.first { Self.remainder(of: path, in: $0.first) != nil }
    }

    /// True for a place outside of all bases where one has been.
    private func isLeft(_ place: String) -> Bool { formerBase(of: place)?.hasMoved ?? false }

    private static func unnamed(_ name: String) -> DownloadError {
        DownloadError(
            .destination, "The base \"\(name)\" of a task's place has no folder here; the task stays as it is.",
            remedy: .nameBase)
    }

    // MARK: Paths

    /// The part of a path below a folder, empty for the folder itself; nil if it is not below, or leads out of it with `..`.
    package static func remainder(of place: String, in folder: String) -> String? {
        let (all, length) = (place.utf8.count, folder.utf8.count)
        guard all >= length, length > 0 else { return nil }
        let isBelow = bytes(place) { place in
            bytes(folder) { folder in
                memcmp(place.baseAddress!, folder.baseAddress!, length) == 0
                    && (all == length || place[length] == UInt8(ascii: "/"))
            }
        }
        guard isBelow else { return nil }
        if all == length { return "" }
        let rest = bytes(place) { String(decoding: $0[(length + 1)...], as: UTF8.self) }
        // A slash at the end would be lost.
        return rest.isEmpty || leadsUp(rest) ? nil : rest
    }

    private static func path(_ root: String, _ rest: String) -> String { rest.isEmpty ? root : "\(root)/\(rest)" }

    private static func leadsUp(_ rest: String) -> Bool {
        guard rest.utf8.contains(UInt8(ascii: ".")) else { return false }
        return rest.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
    }

    private static func bytes<Result>(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = text.utf8.withContiguousStorageIfAvailable(body) { return result }
        var text = text
        return text.withUTF8(body)
    }

    // MARK: Names

    /// True for 1 to 64 ASCII letters, digits, `-` and `_`.
    private static func isName(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20) || $0 == 0x2d || $0 == 0x5f
            }
    }

    /// Why a base cannot have this name and this path; nil if it can.
    package static func fault(_ name: String, _ path: String) -> String? {
        if !isName(name) || name == work {
            return "the name of a base has 1 to 64 letters, digits, - and _, and is not \"\(work)\""
        }
        let isUsable =
            path.isAbsolutePath && path.utf8.count > 1 && path.utf8.last != UInt8(ascii: "/") && !leadsUp(path)
        return isUsable ? nil : "the base \"\(name)\" needs an absolute folder below /"
    }
}
