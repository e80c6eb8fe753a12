import FKCore
import TestSupport
import Testing

@testable import FKManifests

@Suite("Tasks of a list's entries") struct EntryTaskTests {
    @Test("header fields of an entry go to all of its addresses, those of the command line to the first origin")
    func headers() throws {
        let list = "http://a/f\thttp://b/f\n  header=Authorization: Basic list\n  header=X-Key: k\n  user-agent=lab\n"
        var shared = TaskOptions()
        shared.headers = [.init("Cookie", "a=secret")]
        shared.secretHeaders = ["cookie"]
        var folders = EntryFolders()
        let task = try #require(try Manifest(list).entries.first).task(in: "/d", shared, &folders)
        #expect(task.mirrors == ["http://b/f"])
        #expect(task.options.headers?.map(\.name) == ["Cookie", "Authorization", "X-Key", "User-Agent"])
        #expect(task.options.secretHeaders?.contains("authorization") == true)
        #expect(task.options.listHeaders == ["authorization", "user-agent", "x-key"])
    }

    @Test("nothing of a list is parsed before its signature is proven, and its lock names the signer")
    func list() throws {
        let bytes = Array("https://h/a\n".utf8)
        let (key, signature) = try Minisign.signed(bytes)
        var manifest = try Manifest.verified(by: key, signature: signature, parsing: bytes)
        #expect(manifest.entries.count == 1 && manifest.facts.signedBy == key.description)
        manifest.entries[0].name = "a"
        let lock = manifest.written(as: .lock).bytes
        // What a lock says of its signer is a claim, which nobody has verified.
        let read = try Manifest(parsing: lock).facts
        #expect(read.claimedSigner == key.description && read.signedBy == nil)
        // A malformed list is refused for its signature.
        let error = #expect(throws: DownloadError.self) {
            try Manifest.verified(by: key, signature: signature, parsing: [0xff])
        }
        #expect(error?.code == .checksumMismatch)
    }

    @Test(
        "a list's own proxy and the logins of ~/.netrc exclude each other",
        arguments: [
            ("all-proxy=http://p:1\n  no-netrc=false", nil, true), ("all-proxy=http://p:1", true, true),
            ("no-netrc=false", nil, false), ("all-proxy=http://p:1", nil, false),
            ("all-proxy=\n  no-netrc=false", nil, false),
            ("split=2", true, false),
        ] as [(String, Bool?, Bool)])
    func netrc(options: String, shared netrc: Bool?, isRefused: Bool) throws {
        var shared = TaskOptions()
        shared.netrc = netrc
        var folders = EntryFolders()
        let entry = try #require(try Manifest("http://a/f\n  \(options)\n").entries.first)
        let task = try? entry.task(in: "/d", shared, &folders)
        #expect((task == nil) == isRefused)
    }

    @Test("the reason why a URL of megabytes is refused is a line")
    func long() throws {
        let entry = Manifest.Entry(sources: [.init("http://a/" + String(repeating: "[", count: 2_000_000))])
        var folders = EntryFolders()
        let fault = #expect(throws: EntryFault.self) { try entry.task(in: "/d", TaskOptions(), &folders) }
        let reason = try #require(fault).reason
        #expect(reason.contains("longer than") && reason.utf8.count < 1_000, "\(reason.prefix(300))")
    }
}
