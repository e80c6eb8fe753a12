import FKMiddleware

/// The rules for names of barrels.
package enum BarrelName {
    /// - Throws: `.invalidArgument` for a name that is empty, longer than 100 bytes of UTF-8, `.` or `..`, or that has
    ///   a slash or a control character.
    package static func validate(_ name: String) throws {
        let problem: String? =
            if name.isEmpty {
                "is empty"
            } else if name.utf8.count > 100 {
                "is longer than 100 bytes"
            } else if name == "." || name == ".." {
                "is reserved"
            } else if name.utf8.contains(UInt8(ascii: "/")) {
                "has a slash"
            } else if name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
                "has a control character"
            } else {
                nil
            }
        if let problem {
            throw DownloadError(.invalidArgument, "\"\(printable(name))\" cannot be a barrel's name: it \(problem).")
        }
    }

    /// A file name of ASCII letters, digits, `-`, `_` and inner dots, everything else percent-encoded: the name
    /// survives file systems that fold case or normalise, and never begins with a dot. At most 300 bytes would come
    /// of 100, so a name whose encoded form is over 200 bytes is cut and made unique by its digest.
    static func fileName(_ name: String) -> String {
        var text = ""
        for byte in name.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x5f: text.unicodeScalars.append(Unicode.Scalar(byte))
            case 0x2e where !text.isEmpty: text += "."
            default: text += "%" + Digester.hex([byte])
            }
        }
        guard text.utf8.count > 200 else { return text }
        return "\(text.prefix(160))%~\(Digester.hex(Digester.bytes(of: name, .sha256).prefix(16)))"
    }

    private static func printable(_ name: String) -> String {
        let text = name.unicodeScalars.prefix(40).map { scalar in
            scalar.properties.generalCategory == .control
                ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
        }
        return text.joined()
    }
}
