extension String {
    /// The text as one word of a command line to be copied into a shell, on one line and without hidden characters. A text with such
    /// characters gets the form `$'…'`, which bash, zsh, ksh and POSIX 2024 have.
    ///
    /// A word may begin with a dash: put `--` before operands.
    package var shellWord: String {
        let isPlain = !isEmpty && utf8.allSatisfy { Self.isAlphanumeric($0) || "-_./:,+@%".utf8.contains($0) }
        if isPlain { return self }
        guard unicodeScalars.contains(where: \.isHidden) else {
            return "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
        }
        var word = "$'"
        for scalar in unicodeScalars {
            if scalar == "'" || scalar == "\\" {
                word += "\\" + String(scalar)
            } else if scalar.isHidden {
                // Three octal digits: the next character is never taken for one.
                for byte in String(scalar).utf8 {
                    let digits = String(byte, radix: 8)
                    word += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
                }
            } else {
                word += String(scalar)
            }
        }
        return word + "'"
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20)
    }
}
