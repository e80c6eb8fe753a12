/// Recognises common URLs that are in normal form already. A list may contain a hundred thousand of them, and the
/// full rules (`URLNormalizer`) take five times as long to return the same text.
enum PlainURL {
    /// True only if the full rules would return the same text. False when in doubt.
    static func isNormal(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            let prefix = bytes.starts(with: "https://".utf8) ? 8 : bytes.starts(with: "http://".utf8) ? 7 : 0
            guard prefix > 0, bytes.count <= 2_000 else { return false }
            guard let slash = bytes[prefix...].firstIndex(of: UInt8(ascii: "/")) else { return false }
            return isHost(bytes[prefix..<slash], isSecure: prefix == 8) && isTarget(bytes[slash...])
        }
    }

    private static func isHost(_ bytes: Slice<UnsafeBufferPointer<UInt8>>, isSecure: Bool) -> Bool {
        var host = bytes
        if let colon = bytes.firstIndex(of: UInt8(ascii: ":")) {
            host = bytes[..<colon]
            var port = 0
            let digits = bytes[(colon + 1)...]
            guard (1...5).contains(digits.count), digits.first != UInt8(ascii: "0") else { return false }
            for digit in digits {
                guard digit.isASCIIDigit else { return false }
                port = port * 10 + Int(digit - 0x30)
            }
            guard port <= 65_535, port != (isSecure ? 443 : 80) else { return false }
        }
        guard (1...200).contains(host.count) else { return false }
        // Only labels of letters and digits. The full rules handle all others, such as `xn--` and hyphens.
        var label = 0
        for byte in host {
            if byte == UInt8(ascii: ".") {
                guard label > 0 else { return false }
                label = 0
            } else {
                guard byte.isASCIIDigit || (0x61...0x7a).contains(byte), label < 60 else { return false }
                label += 1
            }
        }
        return label > 0
    }

    private static func isTarget(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        var marks = 0
        for byte in bytes {
            if byte == UInt8(ascii: "?") { marks += 1 }
            guard byte.isASCIIDigit || byte.isASCIILetter || isPlain(byte) else { return false }
        }
        return marks <= 1
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"),
            UInt8(ascii: "?"), UInt8(ascii: "="), UInt8(ascii: "&"), UInt8(ascii: ":"), UInt8(ascii: "+"),
            UInt8(ascii: ","):
            true
        default: false
        }
    }
}
