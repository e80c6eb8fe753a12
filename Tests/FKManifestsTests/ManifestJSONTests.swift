import Foundation
import Testing

@testable import FKManifests

@Suite("JSON, lock files and hub trees") struct ManifestJSONTests {
    private static let hex = SampleDigest.sha256

    @Test("An export of a barrel, as an array or as a document") func export() throws {
        let task = """
            {"id":"0f","url":"https://h/a.bin","state":"complete","received":3,"expected":3,"path":"/d/a.bin","error":null,
             "directory":"/d","fileName":"a.bin","checksum":"sha-256=\(Self.hex)","mirrors":["http://m/a.bin"],"attributes":{"x":"y"}}
            """
        for text in ["[\(task)]", "{\"name\":\"books\",\"total\":1,\"members\":[\(task)],\"more\":[{}]}"] {
            let manifest = try Manifest(text)
            #expect(manifest.form == .json)
            let entry = try #require(manifest.entries.first)
            #expect(entry.name == "a.bin" && entry.directory == "/d" && entry.size == 3)
            #expect(entry.sources.map(\.url) == ["https://h/a.bin", "http://m/a.bin"])
            #expect(entry.checksum?.hex == Self.hex)
            #expect(manifest.facts.barrel == (text.first == "{" ? "books" : nil))
        }
        #expect(try Manifest("[]").entries.isEmpty)
    }

    @Test(
        "Bad members are left out with line and column",
        arguments: [
            ("{}", "the member has no 'url'"), ("{\"url\":\"ftp://h/a\"}", "scheme 'ftp'"),
            ("{\"url\":1}", "an address is no text"),
            ("{\"url\":\"http://h/a\",\"fileName\":\"../x\"}", "'../x': its name has '..'"),
            ("{\"url\":\"http://h/a\",\"expected\":-1}", "its size"),
            ("{\"url\":\"http://h/a\",\"expected\":1.5}", "its size"),
            ("{\"url\":\"http://h/a\",\"checksum\":\"sha-256=12\"}", "its 'checksum' is not"),
            ("{\"url\":\"http://h/a\",\"directory\":\"\"}", "its 'directory' is no folder"),
            ("{\"url\":\"http://h/a?token=***\"}", "are shown as ***"),
            ("{\"url\":\"http://***@h/a\"}", "are shown as ***"),
            (
                "{\"url\":\"http://h/a\",\"pieces\":[{\"length\":1,\"type\":\"md5\",\"hashes\":\"12\"}]}",
                "are not of 32 digits"
            ),
            ("{\"url\":\"http://h/a\",\"digests\":{\"md5\":\"12\"}}", "a md5 digest has 32"),
        ])
    func bad(member: String, reason: String) throws {
        let manifest = try Manifest("[\n{\"url\":\"http://h/good\"},\n  \(member)]")
        #expect(manifest.urls == [["http://h/good"]])
        #expect(manifest.faults.first?.line == 3 && manifest.faults.first?.column == 3)
        #expect(manifest.faults.first?.reason.contains(reason) == true, "\(manifest.faults)")
    }

    @Test(
        "Malformed JSON is refused with line and column",
        arguments: [
            ("[\n{\"url\":\"http://h/a\"", "line 2, column 20: the document ends where"),
            ("[1]", "line 1, column 2: an object is expected"),
            ("[{}] x", "line 1, column 6: the end is expected"), ("[{\"a\":\"\\x\"}]", "line 1, column 9: an escape"),
            ("[{\"a\":\"\\ud800\"}]", "line 1, column 14: half of a surrogate"),
            ("[{\"a\":01}]", "line 1, column 9: a digit"),
            ("[{\"a\":\"\n\"}]", "line 1, column 8: a control character"),
            ("[{\"a\" 1}]", "line 1, column 7: ':' is expected"),
            ("[{},]", "line 1, column 5: a value is expected"), ("{\"a\":1}", "the object has no array of files"),
            ("[{\"a\":\(String(repeating: "[", count: 40))", "line 1, column 39: more than 32"),
        ])
    func malformed(text: String, reason: String) {
        let fault = Manifest.fault(in: text)
        #expect(fault.hasPrefix("JSON list") && fault.contains(reason), "\(fault)")
    }

    @Test("An array with one file has all objects with addresses, and the others are counted") func arrays() throws {
        let first = "{\"images\":[{\"url\":\"http://h/0\"},{\"url\":\"http://h/1\",\"size\":57},"
        let list = try Manifest(
            first + "{\"url\":\"http://h/2\",\"size\":null},{\"title\":\"x\"}],\"see\":[{\"url\":\"http://page\"}]}")
        #expect(Set(list.urls.map { $0[0] }) == ["http://h/0", "http://h/1", "http://h/2"])
        #expect(list.passedOver == ["object of 'images' without an address": 1])
        let fault = Manifest.fault(in: "{\"images\":[\n{\"url\":\"http://h/0\"},{\"url\":\"http://h/1\"}]}")
        #expect(fault.contains("line 2: the objects of 'images' have addresses"), "\(fault)")
        #expect(fault.contains("--column 'url=url'"))
        let deep = "{\"a\":{\"b\":{\"c\":{\"d\":{\"files\":[{\"url\":\"http://h/0\",\"size\":57}]}}}}}"
        #expect(try Manifest(deep).urls == [["http://h/0"]])
    }

    @Test(
        "Names without addresses are below the base",
        arguments: [
            "[{\"name\":\"a.bin\",\"sha256\":\"\(hex)\"}]",
            "{\"files\":[{\"filename\":\"a.bin\",\"sha256\":\"\(hex)\"}]}",
        ])
    func names(text: String) throws {
        let list = try Manifest(text, base: "http://h/p/")
        #expect(list.urls == [["http://h/p/a.bin"]] && list.entries[0].digests.count == 1)
        #expect(try Manifest(text).faults.count == 1)
    }

    @Test("A lock file has a header, then a member a line") func lock() throws {
        let manifest = try Manifest(
            """
            {"fk-lock":1,"barrel":"m","origin":"hf:o/r","commit":"c0"}
            {"name":"a/b.bin","size":3,"sha-256":"\(Self.hex)","url":"https://h/b","mirrors":["http://m/b",{"url":"http://n/b","priority":2,"location":"de"}],"later":true}

            {"name":"c","url":"https://h/c","pieces":[{"length":2,"type":"sha-256","hashes":"\(Self.hex)\(Self.hex)"}]}
            """)
        #expect(manifest.form == .lock && manifest.names == ["a/b.bin", "c"])
        #expect(manifest.facts.barrel == "m" && manifest.facts.origin == "hf:o/r" && manifest.facts.commit == "c0")
        #expect(manifest.entries[0].sources[2] == .init("http://n/b", priority: 2, location: "de"))
        #expect(manifest.entries[1].pieces[0].count == 2 && manifest.entries.map(\.line) == [2, 4])
    }

    @Test(
        "What is wrong with a lock file",
        arguments: [
            ("{\"fk-lock\":2}", "lock file, line 1: the lock file is of version 2"),
            ("{\"fk-lock\":1}\n{", "lock file, line 2, column 2: the document ends"),
            ("{\"fk-lock\":1}\n<<<<<<< HEAD", "lock file, line 2: a merge conflict"),
            ("{\"fk-lock\":1}\n=======", "lock file, line 2: a merge conflict"),
            ("<<<<<<< HEAD\n{\"fk-lock\":1}", "lock file, line 1: a merge conflict"),
            ("{\"fk-lock\":1}\n[]", "lock file, line 2, column 1: an object is expected"),
        ])
    func badLock(text: String, start: String) {
        let fault = Manifest.fault(in: text)
        #expect(fault.hasPrefix(start), "\(fault)")
    }

    @Test("Bad members of a lock file are left out with their line") func badMembers() throws {
        let manifest = try Manifest(
            """
            {"fk-lock":1}
            {"name":"/etc/x","url":"http://h/a"}
            {"name":"a"}
            {"url":"http://h/a"}
            {"name":"b","url":"http://h/b"}
            {"name":"./b","url":"http://h/other"}
            {"name":"c","url":"http://h/c","sha-256":"00"}
            """)
        #expect(manifest.names == ["b"] && manifest.faults.map(\.line) == [2, 3, 4, 6, 7])
    }

    private static let tree = """
        [{"type":"directory","oid":"\(SampleDigest.hex(.sha1))","size":0,"path":"onnx"},
         {"type":"file","oid":"\(SampleDigest.hex(.sha1))","size":12,"path":"config.json"},
         {"type":"file","oid":"\(SampleDigest.hex(.sha1))","size":134,"path":"onnx/m ü.safetensors","xetHash":"0",
          "lfs":{"oid":"\(hex)","size":1000,"pointerSize":134}},
         {"type":"file","oid":"12","size":1,"path":"bad"},
         {"type":"file","oid":"\(SampleDigest.hex(.sha1))","size":1,"path":"../bad"}]
        """

    @Test("A page of a hub's tree gives LFS digests, git blob ids and addresses at the commit") func hub() throws {
        var reading = Manifest.Reading()
        reading.hub = .init(endpoint: "https://hub/", repository: "datasets/o/r", commit: "c0")
        let manifest = try Manifest(parsing: Array(Self.tree.utf8), reading)
        #expect(manifest.form == .hubTree && manifest.names == ["config.json", "onnx/m ü.safetensors"])
        #expect(manifest.entries.map(\.size) == [12, 1_000])
        #expect(try manifest.entries[0].digests == [Checksum(.gitBlob, hex: SampleDigest.hex(.sha1))])
        #expect(try manifest.entries[1].digests == [Checksum(.sha256, hex: Self.hex)])
        #expect(manifest.urls[1] == ["https://hub/datasets/o/r/resolve/c0/onnx/m%20%C3%BC.safetensors"])
        #expect(manifest.facts.origin == "hf:datasets/o/r" && manifest.facts.commit == "c0")
        #expect(manifest.faults.map(\.line) == [5, 6])
    }

    @Test("A hub's refusal is its own text") func refusal() {
        let fault = Manifest.fault(in: "{\"error\":\"Repository not found\"}", as: .hubTree)
        #expect(fault == "hub tree: the hub answers: Repository not found")
    }

    @Test(
        "JSON is read as Foundation reads it",
        arguments: [
            "[\"\\u0041\\n\\/\\\"\\ud83d\\ude00\"]", "[1,-0.5e+3,true,false,null,{\"a\":[],\"b\":{}}]", " [ ] ",
            "[\"ü\"]",
        ])
    func foundation(text: String) throws {
        var reader = JSONReader(Array(text.utf8))
        let value = try reader.value()
        try reader.expectEnd()
        let wanted = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSArray
        #expect(Self.object(value) as? NSArray == wanted)
    }

    static func object(_ value: JSONReader.Value) -> Any {
        switch value {
        case .null: NSNull()
        case .bool(let flag): flag
        case .number(let text): Double(text) ?? 0
        case .string(let text): text
        case .array(let values): values.map(object)
        case .object(let object):
            Dictionary(object.members.map { ($0.name, Self.object($0.value)) }, uniquingKeysWith: { $1 })
        }
    }
}
