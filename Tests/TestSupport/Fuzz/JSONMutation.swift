/// Changes JSON so that it mostly stays JSON and says something else: other numbers, other texts, members gone, doubled
/// or in another place.
package enum JSONMutation {
    private static let numbers = [
        "0", "-0", "-1", "1", "63", "64", "255", "4294967296", "9007199254740993", "9223372036854775807",
        "-9223372036854775808", "9223372036854775808", "18446744073709551615", "1e19", "1e308", "-1e308", "1e999",
        "0.5", "1700000000.123456789", "null", "true", "\"1\"", "[]", "{}", "00", "1.", ".5", "+1", "NaN",
        "1000000000000000000000000000000",
    ]
    private static let texts = [
        "", "/", "..", "../x", "/etc/passwd", "a/b", "\\u0000", "\\u202e", "\\ud800", "\\u001b[2J", "complete",
        "action", "idle", "unknown", ".x.0123456789abcdef.fkpart", "-", "http://h/", "file:///etc/passwd", "\\\"", "\\",
        "\u{301}", "no space", "no\\u0020space",
    ]

    /// One change somewhere in the text.
    package static func apply(_ json: inout [UInt8], _ random: inout SeededRandom) {
        guard !json.isEmpty else { return }
        let start = random.below(json.count)
        switch random.below(8) {
        case 0, 1, 2: replaceNumber(&json, from: start, random.pick(numbers))
        case 3: replaceText(&json, from: start, random.oneIn(3) ? NastyText.make(&random) : random.pick(texts))
        case 4: member(&json, from: start, random.oneIn(2))
        case 5:
            json.insert(
                contentsOf: random.pick(["{", "}", "[", "]", ",", ":", "\"", " ", "\n", "[[[[", "{}", "1"]).utf8,
                at: start)
        case 6:
            json.insert(
                contentsOf: repeatElement(random.pick([0x5b, 0x7b, 0x22, 0x39, 0x20]), count: random.below(3_000)),
                at: start)
        default: Mutation.apply(&json, with: json, &random)
        }
    }

    private static func isNumber(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || byte == 0x2d || byte == 0x2e }

    private static func replaceNumber(_ json: inout [UInt8], from start: Int, _ text: String) {
        // Behind a colon, a bracket or a comma, so that digits inside of texts are left.
        guard
            let first = json.indices[start...].first(where: {
                $0 > 0 && isNumber(json[$0]) && (json[$0 - 1] == 0x3a || json[$0 - 1] == 0x5b || json[$0 - 1] == 0x2c)
            })
        else { return }
        let end = json.indices[first...].first { !isNumber(json[$0]) } ?? json.count
        json.replaceSubrange(first..<end, with: text.utf8)
    }

    private static func replaceText(_ json: inout [UInt8], from start: Int, _ text: String) {
        guard let open = json[start...].firstIndex(of: 0x22), let close = json[(open + 1)...].firstIndex(of: 0x22)
        else { return }
        json.replaceSubrange(open + 1..<close, with: text.utf8)
    }

    /// Drops what stands between two commas, or says it again somewhere else.
    private static func member(_ json: inout [UInt8], from start: Int, _ isDropped: Bool) {
        guard let open = json[start...].firstIndex(of: 0x2c), let close = json[(open + 1)...].firstIndex(of: 0x2c)
        else { return }
        if isDropped {
            json.removeSubrange(open..<close)
        } else {
            json.insert(contentsOf: Array(json[open..<close]), at: open)
        }
    }
}
