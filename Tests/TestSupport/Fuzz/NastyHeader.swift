import Foundation

/// Header fields as they come from servers that are broken or mean harm.
package enum NastyHeader {
    /// A `Content-Disposition` that tries to name the file so.
    package static func disposition(_ name: String, _ random: inout SeededRandom) -> String {
        let type = random.pick([
            "attachment; ", "inline;", "", "ATTACHMENT ;", "form-data; name=x; ", "; ;", "\"", "attachment",
        ])
        return type + parameter(name, &random)
            + (random.oneIn(4) ? "; " + parameter(NastyText.make(&random), &random) : "")
            + random.pick(["", "", ";", "; size=1", "\"", "\\"])
    }

    private static func parameter(_ name: String, _ random: inout SeededRandom) -> String {
        let bytes = Array(name.utf8)
        switch random.below(9) {
        case 0: return "filename=" + name
        case 1: return "filename=\"" + name + "\""
        case 2:
            return "filename=\""
                + name.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"") + "\""
        case 3:
            let charset = random.pick(["utf-8", "UTF-8", "iso-8859-1", "us-ascii", "", "utf-7", "x"])
            return "filename*=" + charset + "'" + random.pick(["", "en", "'"]) + "'"
                + NastyText.percentEncoded(bytes, &random)
        case 4: return "filename*=\"utf-8''" + NastyText.percentEncoded(bytes, &random) + "\""
        case 5: return "filename=\"=?utf-8?B?" + Data(bytes).base64EncodedString() + "?=\""
        case 6:
            return "filename==?utf-8?Q?"
                + NastyText.percentEncoded(bytes, &random).replacingOccurrences(of: "%", with: "=") + "?="
        case 7:
            // UTF-8 read as Latin-1 by whatever stood between.
            return "filename=\"" + String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })) + "\""
        default: return "FileName = \"" + NastyText.percentEncoded(bytes, &random) + "\""
        }
    }

    /// Something in the form of the examples, with numbers, words and characters exchanged.
    package static func like(_ examples: [String], _ random: inout SeededRandom) -> String {
        var bytes = Array(random.pick(examples).utf8)
        for _ in 0...random.below(3) {
            switch random.below(5) {
            case 0: JSONMutation.apply(&bytes, &random)
            case 1: bytes.insert(contentsOf: NastyText.piece(&random).utf8, at: random.below(bytes.count + 1))
            case 2:
                let number = random.oneIn(2) ? "\(random.pick(Mutation.evilNumbers))" : "-\(random.below(200))"
                let digits = bytes.indices.filter { (0x30...0x39).contains(bytes[$0]) }
                guard !digits.isEmpty else { continue }
                let start = random.pick(digits)
                let end = bytes[start...].firstIndex { !(0x30...0x39).contains($0) } ?? bytes.count
                bytes.replaceSubrange(start..<end, with: number.utf8)
            case 3: Mutation.apply(&bytes, with: Array(random.pick(examples).utf8), &random)
            default: break
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
