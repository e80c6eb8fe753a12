import TestSupport
import Testing

@Suite("The key of a piece")
struct PieceKeyTests {
    private static let id = TaskID(url: "http://h.example/a")
    static let keys: [PieceKey] = [
        PieceKey(task: id, generation: 0), PieceKey(task: id, generation: 1, start: 0, end: 1),
        PieceKey(task: id, generation: .max, form: .max, condition: .max, start: .max - 1, end: .max),
        PieceKey(task: id, generation: 7, form: 1, condition: 0xabc, start: 5, end: 1 << 40),
    ]

    @Test("its text is read back, is a file name, and fits a task's description", arguments: keys)
    func text(_ key: PieceKey) {
        let text = key.description
        #expect(PieceKey(text) == key)
        #expect(text.utf8.count <= 180)
        #expect(
            text.utf8.allSatisfy {
                $0 == 0x2e || $0 == 0x2d || (0x30...0x39).contains($0) || (0x61...0x7a).contains($0)
            })
    }

    @Test("each change of one character is another key or none")
    func changes() {
        for key in Self.keys {
            let text = Array(key.description.utf8)
            for place in text.indices {
                for byte in [
                    UInt8(ascii: "0"), UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "A"),
                ] {
                    var other = text
                    other[place] = byte
                    guard other != text else { continue }
                    #expect(PieceKey(String(decoding: other, as: UTF8.self)) != key)
                }
                #expect(PieceKey(String(decoding: text[..<place], as: UTF8.self)) != key)
            }
        }
    }

    @Test(
        "other texts are none",
        arguments: [
            "", "fk1", "my own task", "fk2.\(id.hex).1.0.0.all", "fk1.\(id.hex).1.0.0.5-5", "fk1.\(id.hex).1.0.0.6-5",
            "fk1.\(id.hex).1.0.0.-1-5", "fk1.\(id.hex).01.0.0.all", "fk1.\(id.hex).1.0.0.all ",
            "fk1.\(id.hex).1.0.0.1-2-3", "fk1.\(id.hex).1.0.0.all.body",
        ])
    func foreign(_ text: String) { #expect(PieceKey(text) == nil) }

    @Test("a fingerprint is the same in each process, and divides texts")
    func fingerprint() {
        #expect(PieceKey.fingerprint([]) == 0xcbf2_9ce4_8422_2325 && PieceKey.fingerprint(["a"]) == 0x89bc907b544c769)
        #expect(PieceKey.fingerprint(["ab"]) != PieceKey.fingerprint(["a", "b"]))
        #expect(PieceKey.fingerprint(["a", "b"]) != PieceKey.fingerprint(["b", "a"]))
    }
}
