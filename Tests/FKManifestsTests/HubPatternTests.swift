import TestSupport
import Testing

@testable import FKManifests

@Suite("Hub: references, patterns, links, tokens") struct HubPatternTests {
    @Test(
        "Patterns mean what they mean to fnmatch of Python",
        arguments: [
            ("*.bin", "a.bin", true), ("*.bin", "sub/a.bin", true), ("*.bin", "a.bin.x", false), ("a?c", "abc", true),
            ("a?c", "a/c", true), ("a?c", "ac", false), ("[ab].x", "a.x", true), ("[!ab].x", "a.x", false),
            ("[a-c].x", "b.x", true), ("[c-a].x", "b.x", false), ("[]].x", "].x", true), ("[!]].x", "].x", false),
            ("[a.x", "[a.x", true), ("[a-].x", "-.x", true), ("[--a].x", ".x", false), ("[a-c-e]", "-", true),
            ("[a-c-e]", "d", false), ("sub/", "sub/a/b", true), ("sub/", "sub", false), ("**", "", true),
            ("", "a", false), ("*a*b*c", "xxaxxbxxbxc", true), ("*a*b*c", "xxaxxcxxb", false), ("A*", "a", false),
            ("é?", "éü", true), ("[!]", "[!]", true), ("[]", "[]", true),
        ])
    func patterns(pattern: String, path: String, isMatch: Bool) {
        #expect(HubPattern(pattern).matches(path) == isMatch)
    }

    @Test("A pattern with many stars takes no square of time") func stars() {
        let pattern = HubPattern(String(repeating: "*a", count: 200) + "b")
        #expect(!pattern.matches(String(repeating: "a", count: 2_000)))
    }

    @Test("Included unless excluded") func choosing() {
        func chosen(_ path: String, _ include: [String], _ exclude: [String]) -> Bool {
            HubPattern.chooses(path, include: include.map(HubPattern.init), exclude: exclude.map(HubPattern.init))
        }
        #expect(chosen("a.bin", [], []))
        #expect(chosen("a.bin", ["*.txt", "*.bin"], []) && !chosen("a.bin", ["*.txt"], []))
        #expect(!chosen("a.bin", ["*.bin"], ["a*"]) && !chosen("a.bin", [], ["*"]))
    }

    @Test("References of repositories") func references() throws {
        let plain = try HubReference(parsing: "hf:o/r")
        #expect(plain.repository == "o/r" && plain.revision == "main" && plain.apiPath == "api/models/o/r")
        let data = try HubReference(parsing: "hf:datasets/o/r@refs/pr/1")
        #expect(data.repository == "datasets/o/r" && data.revision == "refs/pr/1" && data.apiPath == "api/datasets/o/r")
        #expect("\(data)" == "hf:datasets/o/r@refs/pr/1")
        for text in ["hf:", "hf:o", "hf:o/r/s", "hf:o/r@", "hf:../r", "hf:o/r?x", "hf:o/ r", "o/r", "hf:o/r@a b"] {
            #expect(throws: DownloadError.self, "\(text)") { try HubReference(parsing: text) }
        }
    }

    @Test("Links of RFC 8288") func links() {
        let links = LinkField.parse([
            "<https://h/a?x=1,2>; rel=\"next last\"; a=b, </b>;rel=duplicate;pri=2;geo=\"d\\\"e\"", "<c>", "x", "<d",
        ])
        #expect(links.map(\.target) == ["https://h/a?x=1,2", "/b", "c"])
        #expect(links[0].relations == ["next", "last"] && links[0].parameters == ["a": "b"])
        #expect(links[1].parameters == ["pri": "2", "geo": "d\"e"] && links[2].relations.isEmpty)
    }

    @Test("The token is where the hub's client has it, and goes to the hub alone") func token() async throws {
        let folder = NSTemporaryDirectory() + "fk-hub-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: "\(folder)/huggingface", withIntermediateDirectories: true)
        try "filed\n".write(toFile: "\(folder)/huggingface/token", atomically: true, encoding: .utf8)
        #expect(HubToken.find(in: ["HF_TOKEN": " own\n"]) == "own")
        #expect(HubToken.find(in: ["XDG_CACHE_HOME": folder]) == "filed")
        #expect(HubToken.find(in: ["HF_HOME": "\(folder)/huggingface"]) == "filed")
        #expect(HubToken.find(in: ["HF_TOKEN": "x", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"]) == nil)
        #expect(HubToken.find(in: ["HF_TOKEN": "a\u{7}b"]) == nil && HubToken.find(in: [:]) == nil)
        let middleware = try #require(TokenMiddleware.all(["HF_TOKEN": "t", "HF_ENDPOINT": "http://hub:81/"]).first)
        let task = TaskContext(id: TaskID(url: "http://hub/a"), originalURL: URL(fileURLWithPath: "/"))
        for (url, token) in [
            ("http://hub:81/a", "Bearer t"), ("http://hub/a", nil), ("https://hub:81/a", nil), ("http://x/a", nil),
        ] as [(String, String?)] {
            let request = URLRequest(url: try #require(URL(string: url)))
            let sent = try await middleware.process(request, for: task)
            #expect(sent.value(forHTTPHeaderField: "Authorization") == token)
        }
    }

    @Test("Digests: SHA-224, and git's id of a file, from memory and from a file") func digests() throws {
        func hex(_ algorithm: Checksum.Algorithm, _ text: String) -> String {
            Digester.hex(Digester.bytes(of: text, algorithm))
        }
        #expect(hex(.sha224, "abc") == "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7")
        #expect(hex(.gitBlob, "hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a")
        let path = NSTemporaryDirectory() + "fk-blob-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try "hello\n".write(toFile: path, atomically: true, encoding: .utf8)
        let url = URL(fileURLWithPath: path)
        #expect(try Digester.hex(ofFile: url, .gitBlob) == "ce013625030ba8dba906f756967f9e9ca394464a")
        #expect(Checksum.Algorithm(digits: 56) == .sha224 && Checksum.Algorithm(digits: 40) == .sha1)
        #expect(
            ServerDigest.parse(ResponseHead(status: 200, fields: [.init("Digest", "git-blob-sha-1=AAAA")], url: ""))
                == nil)
    }
}
