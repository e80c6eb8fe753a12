/// A pattern for the paths of a repository, as the hub's own client reads it (`fnmatch` of Python): `*` is any text,
/// also with slashes; `?` is one character; `[abc]`, `[a-z]` and `[!a]` are sets. Case counts. A pattern that ends with
/// a slash means everything in that folder.
package struct HubPattern: Sendable, Hashable {
    private enum Part: Hashable {
        case anything
        case one
        case literal(Unicode.Scalar)
        case set(ranges: [ClosedRange<UInt32>], isNegated: Bool)

        func matches(_ scalar: Unicode.Scalar) -> Bool {
            switch self {
            case .anything, .one: true
            case .literal(let own): own == scalar
            case .set(let ranges, let isNegated): ranges.contains { $0.contains(scalar.value) } != isNegated
            }
        }
    }

    private let parts: [Part]

    /// Reads a pattern. Every text is one.
    package init(_ text: String) {
        let scalars = Array((text.utf8.last == UInt8(ascii: "/") ? text + "*" : text).unicodeScalars)
        var parts: [Part] = []
        var index = 0
        while index < scalars.count {
            let scalar = scalars[index]
            index += 1
            switch scalar {
            case "*": if parts.last != .anything { parts.append(.anything) }
            case "?": parts.append(.one)
            case "[":
                if let (set, end) = Self.set(scalars, from: index) {
                    parts.append(set)
                    index = end
                } else {
                    parts.append(.literal(scalar))
                }
            default: parts.append(.literal(scalar))
            }
        }
        self.parts = parts
    }

    /// Reads a set behind its bracket; nil if it has no end.
    private static func set(_ scalars: [Unicode.Scalar], from start: Int) -> (Part, end: Int)? {
        var index = start
        let isNegated = index < scalars.count && scalars[index] == "!"
        if isNegated { index += 1 }
        let first = index
        // A bracket in the first place is a member.
        if index < scalars.count, scalars[index] == "]" { index += 1 }
        while index < scalars.count, scalars[index] != "]" { index += 1 }
        guard index < scalars.count else { return nil }
        var ranges: [ClosedRange<UInt32>] = []
        var position = first
        while position < index {
            let low = scalars[position].value
            if position + 2 < index, scalars[position + 1] == "-" {
                let high = scalars[position + 2].value
                if low <= high { ranges.append(low...high) }
                position += 3
            } else {
                ranges.append(low...low)
                position += 1
            }
        }
        return (.set(ranges: ranges, isNegated: isNegated), index + 1)
    }

    /// True if the whole path matches.
    package func matches(_ path: String) -> Bool {
        let scalars = Array(path.unicodeScalars)
        var part = 0
        var index = 0
        // The place to go on from if a later part does not match: the last `*` takes one character more.
        var star: (part: Int, index: Int)?
        while index < scalars.count {
            if part < parts.count, parts[part] == .anything {
                star = (part, index)
                part += 1
            } else if part < parts.count, parts[part].matches(scalars[index]) {
                part += 1
                index += 1
            } else if let last = star {
                star = (last.part, last.index + 1)
                part = last.part + 1
                index = last.index + 1
            } else {
                return false
            }
        }
        return parts[part...].allSatisfy { $0 == .anything }
    }

    /// True if every path in a folder matches.
    ///
    /// - Parameter folder: the path of the folder, without a final slash.
    package func matchesAll(below folder: String) -> Bool { parts.last == .anything && matches(folder + "/") }

    /// True if a path is chosen: it matches a pattern of `include`, or there is none, and no pattern of `exclude`.
    package static func chooses(_ path: String, include: [HubPattern], exclude: [HubPattern]) -> Bool {
        (include.isEmpty || include.contains { $0.matches(path) }) && !exclude.contains { $0.matches(path) }
    }
}

extension String {
    /// The text as a pattern for paths.
    package var pathPattern: HubPattern { HubPattern(self) }

    /// True if the path is chosen: it matches a pattern of `include`, or there is none, and no pattern of `exclude`.
    package func isChosen(include: [String], exclude: [String]) -> Bool {
        HubPattern.chooses(self, include: include.map(HubPattern.init), exclude: exclude.map(HubPattern.init))
    }
}
