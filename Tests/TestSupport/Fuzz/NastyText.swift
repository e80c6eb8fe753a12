/// Makes texts out of pieces that have broken somebody's rules for names, headers, URLs or lists.
package enum NastyText {
    private static let paths = [
        "../", "..\\", "..", ".", "/", "\\", "//", "/etc/passwd", "C:\\Windows\\", "\\\\host\\share\\", "~", "~/",
        "~root/", "%2e%2e%2f", "%2E%2E/", "%2f", "%5c", "%252e%252e%252f", "..%00/", "..;/", "/\u{301}", "..\u{2215}",
        "\u{ff0e}\u{ff0e}\u{ff0f}", "./", "/./", "/.", "file:///", "/dev/null", "/proc/self/",
    ]
    private static let controls = [
        "\u{0}", "\u{1}", "\u{7}", "\u{8}", "\t", "\n", "\r", "\r\n", "\u{1b}", "\u{1b}[2J", "\u{1b}]0;x\u{7}",
        "\u{7f}", "\u{80}", "\u{85}", "\u{9b}", "\u{2028}", "\u{2029}", "%00", "%0a", "%0d%0a", "%1b", "\u{ad}",
        "\u{61c}", "\u{200b}", "\u{200e}", "\u{200f}", "\u{202a}", "\u{202e}", "\u{2066}", "\u{2069}", "\u{feff}",
        "\u{fffe}", "\u{e0041}", "\u{fff9}",
    ]
    private static let names = [
        "CON", "con.txt", "NUL", "aux", "prn.tar.gz", "COM1", "com9.x", "LPT1", "COM\u{b9}", "CONIN$", "clock$",
        ".fkpart", ".FKPART", ".fkrejected", ".new", ".info", ".tmp-", ".tar.gz", ".zip", ".bashrc", ".", "..", "...",
        ". ", " .", " ", "  ", "-", "--", "-rf", "--output=", "desktop.ini", "Thumbs.db", ".ssh", "index.html", "a",
        "b.txt", "name", "download", "x.1",
    ]
    private static let scripts = [
        "中文", "か\u{3099}", "が", "é", "e\u{301}", "ＡＢ", "ß", "ﬁ", "İ", "ı", "😀", "👨‍👩‍👧", "🏳️‍🌈", "🇩🇪", "\u{301}",
        "\u{200d}", "\u{fe0f}", "Å", "A\u{30a}", "\u{212b}", "\u{1d400}", "\u{fffd}", "\u{10ffff}", "\u{e000}",
        "\u{a0}", "\u{3000}", "\u{2003}",
    ]
    private static let codes = [
        "%", "%%", "%2", "%zz", "%FF", "%C0%AF", "%E4", "%E4%B8%AD", "%F0%9F%98%80", "%ED%A0%80", "%u202e", "+", "&",
        "=", ";", "\"", "'", "''", "\\\"", "\\\\", "?", "#", "*", ":", "|", "<", ">", "$(id)", "`id`", "${x}", "%s%n",
        "=?utf-8?B?Li4v?=", "=?utf-8?Q?=2E=2E=2F?=", "=?", "?=", "utf-8''", "UTF-8'en'", "iso-8859-1''%ff", "filename",
        "filename*", "filename=", "@",
    ]

    /// Up to a dozen pieces; now and then a very long text.
    package static func make(_ random: inout SeededRandom) -> String {
        var text = ""
        for _ in 0..<random.below(random.oneIn(4) ? 12 : 5) { text += piece(&random) }
        guard random.oneIn(20) else { return text }
        let unit = random.oneIn(2) ? piece(&random) : "x"
        return text + String(repeating: unit, count: random.below(400)) + (random.oneIn(2) ? ".zip" : "")
    }

    package static func piece(_ random: inout SeededRandom) -> String {
        switch random.below(8) {
        case 0: random.pick(paths)
        case 1: random.pick(controls)
        case 2, 3: random.pick(names)
        case 4: random.pick(scripts)
        case 5: random.pick(codes)
        case 6: String(Unicode.Scalar(UInt32(random.below(0x11_0000))).map(Character.init) ?? "\u{d7ff}")
        default: String(Unicode.Scalar(UInt8(random.below(128))))
        }
    }

    /// The same as bytes, in a quarter of all cases no UTF-8.
    package static func bytes(_ random: inout SeededRandom) -> [UInt8] {
        var bytes = Array(make(&random).utf8)
        if random.oneIn(4) {
            for _ in 0...random.below(3) {
                bytes.insert(
                    random.pick([0xff, 0xc0, 0xaf, 0xe4, 0xed, 0xa0, 0x80, 0xf8, 0x00]),
                    at: random.below(bytes.count + 1))
            }
        }
        return bytes
    }

    /// The bytes with `%XX` for those that a URL's path cannot hold, and for some that it can.
    package static func percentEncoded(_ bytes: [UInt8], _ random: inout SeededRandom) -> String {
        let digits = Array("0123456789ABCDEFabcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            let isPlain = byte > 0x20 && byte < 0x7f && byte != 0x25 && byte != 0x3f && byte != 0x23
            if isPlain, !random.oneIn(6) {
                text.append(byte)
            } else {
                text += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
