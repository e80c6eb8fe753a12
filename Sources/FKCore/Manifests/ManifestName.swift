import FKMiddleware

extension String {
    /// Why the text cannot be a file's path in a list; nil for a valid one. It stays in the folder of the list and may contain
    /// subfolders. Its bytes are not changed, including backslashes and line feeds.
    package var listedPathFault: String? {
        if isUsualPath { return nil }
        if isEmpty { return "the name is empty" }
        let bytes = utf8
        if bytes.contains(0) { return "its name holds a zero byte" }
        if bytes.first == slash { return "its name is an absolute path" }
        if Self.isDrive(self) { return "its name begins with a drive letter" }
        if bytes.first == backslash, bytes.dropFirst().first == backslash { return "its name is a network path" }
        if bytes.count > Self.longestListedPath {
            return "its name has \(bytes.count) bytes, and at most \(Self.longestListedPath) are allowed"
        }
        if Self.leaves(bytes.split(separator: slash)) || Self.leaves(bytes.split { $0 == slash || $0 == backslash }) {
            return "its name has '..', which leaves the folder"
        }
        if bytes.last == slash { return "its name ends in a slash and names no file" }
        let parts = listedParts
        guard let last = parts.last, !bytes.elementsEqual(".".utf8), !utf8.suffix(2).elementsEqual("/.".utf8)
        else {
            return "its name names no file"
        }
        if parts.contains(where: { $0.utf8.count > 255 }) {
            return "a part of its name is longer than the 255 bytes it may have"
        }
        if unicodeScalars.contains(where: Self.isRefused) { return "its name holds control characters" }
        if FileNameRules.joinsSlash(last) { return "its name begins with a mark that has no letter" }
        if FileNameRules.isOwn(last) { return "names that end so are for unfinished files" }
        return nil
    }

    /// The path of a list without `.` parts and doubled slashes, so that all names of one file are equal.
    package var plainListedPath: String {
        if isUsualPath { return self }
        let all = utf8.split(separator: slash, omittingEmptySubsequences: false)
        guard all.contains(where: { $0.isEmpty || $0.elementsEqual(".".utf8) }) else { return self }
        return listedParts.joined(separator: "/")
    }

    /// True for a name of letters, digits, `-`, `_`, blanks and dots, with parts that are neither empty nor begin with a dot. It is a fast
    /// path, because a list may have a million names.
    private var isUsualPath: Bool {
        var name = self
        return name.withUTF8 { bytes in
            guard bytes.count <= 255 else { return false }
            var isStart = true
            for byte in bytes {
                switch byte {
                case slash, UInt8(ascii: "."):
                    if isStart { return false }
                    isStart = byte == slash
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), 0x20:
                    isStart = false
                default: return false
                }
            }
            return !isStart && !Self.hasOwnEnding(bytes)
        }
    }

    private static func hasOwnEnding(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let last = bytes[((bytes.lastIndex(of: slash) ?? -1) + 1)...]
        // They have `.fk` in them.
        guard last.contains(UInt8(ascii: "k")) else { return false }
        return FileNameRules.isOwn(String(decoding: last, as: UTF8.self))
    }

    private var listedParts: [String] {
        utf8.split(separator: slash).map { String(Substring($0)) }.filter { !$0.isExactly(".") }
    }

    private static func leaves(_ parts: [Substring.UTF8View]) -> Bool { parts.contains { $0.elementsEqual("..".utf8) } }

    private static func isDrive(_ name: String) -> Bool {
        let start = Array(name.utf8.prefix(3))
        return start.count == 3 && start[0].isASCIILetter && start[1] == UInt8(ascii: ":")
            && (start[2] == slash || start[2] == backslash)
    }

    /// True for C0 and C1 controls and DEL, except the tab and those with an escape in checksum lists and bags.
    private static func isRefused(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0a, 0x0d: false
        case 0..<0x20, 0x7f..<0xa0: true
        default: false
        }
    }

    /// The maximum length of a path in bytes.
    private static let longestListedPath = 4_000
}

private let slash = UInt8(ascii: "/")
private let backslash = UInt8(ascii: "\\")
