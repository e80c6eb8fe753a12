import FKCore
import FKMiddleware
import Foundation
import Testing

@testable import fk

@Suite("Input lists") struct InputListTests {
    private func parse(_ text: String) throws -> [InputList.Entry] {
        try InputList.parse(Array(text.utf8), source: "list")
    }

    private func fault(_ text: String) -> String {
        do {
            _ = try parse(text)
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test("One URL a line; comments, indented ones too, and empty lines are skipped") func plain() throws {
        let entries = try parse("# list\n\nhttp://h/a\n   \n  # comment\nhttps://h/b")
        #expect(entries.map(\.url) == ["http://h/a", "https://h/b"])
        #expect(entries.map(\.line) == [3, 6])
    }

    @Test("Nothing is a list of nothing", arguments: ["", "\n\n", "#\n", "\u{feff}", " \t \r\n"])
    func empty(text: String) throws {
        #expect(try parse(text).isEmpty)
    }

    @Test("Line ends and the byte order mark do not matter", arguments: ["\n", "\r\n", "\r"])
    func lineEnds(end: String) throws {
        let lines = ["\u{feff}http://h/a", "  out=x", "", "# c", "http://h/b "]
        let entries = try parse(lines.joined(separator: end) + end)
        #expect(entries.map(\.url) == ["http://h/a", "http://h/b"])
        #expect(entries.map(\.line) == [1, 5])
        #expect(entries[0].fileName == "x")
    }

    @Test("Tabs separate mirrors") func mirrors() throws {
        let entry = try #require(try parse("http://a/f\thttp://b/f\t\thttps://c/f\t").first)
        #expect(entry.url == "http://a/f")
        #expect(entry.mirrors == ["http://b/f", "https://c/f"])
    }

    @Test("aria2's indented options belong to the URL above") func options() throws {
        let hex = String(repeating: "0f", count: 20)
        let entries = try parse(
            "http://h/a\n\tout=a b.iso\n  dir = /data/ü \n checksum=sha-1=\(hex)\n  header=X-A: 1\n  header=X-B: 2\nhttp://h/b"
        )
        #expect(entries[0].fileName == "a b.iso")
        #expect(entries[0].directory == "/data/ü")
        #expect(entries[0].checksum?.hex == hex)
        #expect(entries[0].headers == [.init("X-A", "1"), .init("X-B", "2")])
        #expect(entries[1].fileName == nil && entries[1].checksum == nil)
    }

    @Test("aria2's options that mean something act on the task; the others are named once") func otherOptions() throws {
        let list = "http://h/a\n  split=4\n  seed-time=1\n  referer=http://r/\nhttp://h/b\n  seed-time=2\n  gid=0f\n"
        var warnings: [String] = []
        let entries = try InputList.parse(Array(list.utf8), source: "list") { warnings.append($0) }
        var options = TaskOptions()
        entries[0].apply(to: &options)
        #expect(options.connections == .fixed(4))
        #expect(options.headers == [.init("Referer", "http://r/")])
        #expect(options.secretHeaders == ["referer"])
        #expect(warnings == ["list: aria2's options without a meaning here are ignored: seed-time, gid."])
    }

    @Test(
        "Faults name the source, the line and the reason",
        arguments: [
            ("http://h/a\nnonsense\n", "list:2: 'nonsense' has no scheme"),
            ("http:/h/a\n", "list:1: 'http:/h/a' does not begin with http://"),
            ("ftp://h/a", "list:1: 'ftp://h/a': scheme 'ftp'"),
            ("http://h/a\thttp:///x", "list:1: 'http:///x' has no host"),
            ("\n  out=x", "list:2: an option stands before"),
            ("http://h/a\n  gid2=1", "list:2: option 'gid2' is not known"),
            ("http://h/a\n  split=x", "list:2: option 'split': 'x' cannot be used"),
            ("http://h/a\n  whatever", "list:2: an indented line"),
            ("http://h/a\n  out=", "list:2: out= needs"), ("http://h/a\n  dir=", "list:2: dir= needs"),
            ("http://h/a\n  checksum=md5=12", "list:2: A md5 digest has 32"),
            ("http://h/a\n header=Range: x", "list:2: header 'Range'"),
            ("http://h/a\u{1b}[2J", "list:1: 'http://h/a\\e[2J' holds a control character"),
        ])
    func faults(text: String, start: String) {
        #expect(fault(text).hasPrefix(start), "\(fault(text))")
    }

    @Test("A secret header's value is not in the fault") func secret() {
        #expect(!fault("http://h/a\n header=Authorization secret").contains("secret"))
    }

    @Test("Bytes that are not UTF-8 are refused by line") func notUTF8() {
        #expect(throws: InputList.Fault(source: "l", line: 2, reason: "the line is not UTF-8 text")) {
            try InputList.parse(Array("http://h/a\nhttp://h/".utf8) + [0xff, 0x0a], source: "l")
        }
    }

    @Test("A folder or a missing file is a fault of the whole list") func unreadable() {
        #expect(throws: InputList.Fault.self) { try InputList.read("/nowhere/at/all") }
        #expect(throws: InputList.Fault.self) { try InputList.read("/") }
    }

    @Test("A file is read as it is") func file() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("http://h/a\r\nhttp://h/b\r\n", "list")
        #expect(try InputList.read(path).count == 2)
    }

    @Test("100,000 lines are read in a moment", .timeLimit(.minutes(1))) func long() throws {
        var text = ""
        for index in 0..<100_000 { text += "https://example.com/folder/file-\(index).bin\n" }
        let entries = try parse(text)
        #expect(entries.count == 100_000)
        #expect(entries.last?.line == 100_000)
    }
}
