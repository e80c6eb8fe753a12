/// Quotes texts for commands that are shown to be copied into a shell.
package enum ShellWord {
    /// The text as one word of a shell's command line, on one line and without hidden characters. A text with such characters gets the
    /// form `$'…'`, which bash, zsh, ksh and POSIX 2024 have.
    ///
    /// A word may begin with a dash: put `--` before operands.
    package static func quoted(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.utf8.allSatisfy { isAlphanumeric($0) || "-_./:,+@%".utf8.contains($0) }
        if isPlain { return text }
        guard text.unicodeScalars.contains(where: Escaping.isHidden) else {
            return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
        }
        var word = "$'"
        for scalar in text.unicodeScalars {
            if scalar == "'" || scalar == "\\" {
                word += "\\" + String(scalar)
            } else if Escaping.isHidden(scalar) {
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
