import FKMiddleware

extension String {
    /// Checks the name of a barrel.
    ///
    /// - Throws: `.invalidArgument` for a name that is empty, longer than 100 bytes of UTF-8, `.` or `..`, or that
    ///   contains a slash or a control character.
    package func validateAsBarrelName() throws {
        let problem: String? =
            if isEmpty {
                "is empty"
            } else if utf8.count > 100 {
                "is longer than 100 bytes"
            } else if self == "." || self == ".." {
                "is reserved"
            } else if utf8.contains(UInt8(ascii: "/")) {
                "has a slash"
            } else if unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
                "has a control character"
            } else {
                nil
            }
        if let problem {
            throw DownloadError(
                .invalidArgument, "\"\(Self.printable(self))\" cannot be a barrel's name: it \(problem).")
        }
    }

    /// A barrel's name made from the name of a folder: without control characters, and at most 100 bytes long; nil if none is left.
    package var barrelName: String? {
        var name = ""
        for character in self
        where !character.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            let next = character == "/" ? "-" : String(character)
            guard name.utf8.count + next.utf8.count <= 100 else { break }
            name += next
        }
        return (try? name.validateAsBarrelName()) == nil ? nil : name
    }

    /// The file name of a barrel: ASCII letters, digits, `-`, `_` and inner dots, everything else percent-encoded. It
    /// survives file systems that fold case or normalise, and never starts with a dot. A name of 100 bytes could
    /// become 300, so an encoded form over 200 bytes is cut and made unique by its digest.
    package var barrelFileName: String {
        var text = ""
        for byte in utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x5f: text.unicodeScalars.append(Unicode.Scalar(byte))
            case 0x2e where !text.isEmpty: text += "."
            default: text += "%" + Digester.hex([byte])
            }
        }
        guard text.utf8.count > 200 else { return text }
        return "\(text.prefix(160))%~\(Digester.hex(Digester.bytes(of: self, .sha256).prefix(16)))"
    }

    private static func printable(_ name: String) -> String {
        let text = name.unicodeScalars.prefix(40).map { scalar in
            scalar.properties.generalCategory == .control
                ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
        }
        return text.joined()
    }
}
