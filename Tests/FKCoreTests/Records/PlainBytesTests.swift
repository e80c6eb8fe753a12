import Testing

@testable import FKModel

@Suite("Bytes that a JSON string contains without an escape")
struct PlainBytesTests {
    private func prefix(_ bytes: [UInt8]) -> (count: Int, isASCII: Bool) {
        bytes.withUnsafeBytes { PlainBytes.prefix(of: $0) }
    }

    @Test("each byte at each place of texts of up to 17 bytes is told as RFC 8259 section 7 has it")
    func everyByte() {
        for length in 1...17 {
            for place in 0..<length {
                for byte in UInt8.min...UInt8.max {
                    var text = [UInt8](repeating: UInt8(ascii: "a"), count: length)
                    text[place] = byte
                    let isPlain = byte >= 0x20 && byte != 0x22 && byte != 0x5c
                    let found = prefix(text)
                    #expect(isPlain == (found.count == length))
                    // What is counted is plain, and no more than seven plain bytes are left to the caller.
                    #expect(isPlain || found.count <= place && found.count > place - 8)
                    if isPlain { #expect(found.isASCII == (byte < 0x80)) } else { #expect(found.isASCII) }
                }
            }
        }
        #expect(prefix([]).count == 0 && prefix([]).isASCII)
    }

    @Test(
        "two special bytes in one word hide nothing",
        arguments: [0x00, 0x1f, 0x20, 0x22, 0x5c, 0x7f, 0x80, 0xff] as [UInt8])
    func pairs(first: UInt8) {
        for second in UInt8.min...UInt8.max {
            for (one, two) in [(first, second), (second, first)] {
                let text: [UInt8] = [0x61, one, two, 0x61, 0x61, 0x61, 0x61, 0x61]
                let isPlain = [one, two].allSatisfy { $0 >= 0x20 && $0 != 0x22 && $0 != 0x5c }
                #expect((prefix(text).count == 8) == isPlain)
            }
        }
    }
}
