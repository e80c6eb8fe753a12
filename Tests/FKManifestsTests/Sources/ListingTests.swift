import Foundation
import TestSupport
import Testing

@testable import FKManifests

/// What is read of the pages that servers make of a folder.
@Suite("Listings of folders") struct ListingTests {
    private static func read(
        _ text: String, at url: String = ListingPages.url, path: String = ""
    ) throws -> FolderPage {
        let scope = try #require(SourceScope(ListingPages.url))
        return try HTMLListing.read(Array(text.utf8), in: WebEntry(path: path, url: url), scope, base: url)
    }

    private static func names(_ page: FolderPage) -> [String] {
        (page.files.map { $0.name ?? "" } + page.folders.map { $0.path + "/" }).sorted()
    }

    /// A page of one link, with the title of a listing.
    private static func page(_ target: String, text: String = "x") -> String {
        "<html><title>Index of /pub/</title><body><a href=\"\(target)\">\(text)</a></body></html>"
    }

    @Test("the same names are read of the pages of all servers", arguments: ListingPages.all)
    func servers(page: ListingPages.Page) throws {
        let found = try Self.read(page.text)
        #expect(Self.names(found) == ["a b.txt", "sub/", "x&y#1.bin"])
        #expect(found.folders.map(\.url) == ["http://h.example/pub/sub/"])
        #expect(found.faults.isEmpty && found.leftOut.isEmpty)
        for file in found.files {
            #expect((file.version != nil) == page.hasVersions, "\(file)")
            // Words are no facts.
            #expect(file.size == nil && file.modified == nil)
        }
        let url = try #require(found.files.first { $0.name == "x&y#1.bin" }?.sources.first?.url)
        #expect(SourceScope(ListingPages.url)?.name(of: url) == "x&y#1.bin")
    }

    @Test("a version belongs to its own row", arguments: ListingPages.all.filter(\.hasVersions))
    func versions(page: ListingPages.Page) throws {
        let before = try Self.read(page.text)
        // The time of the row of `a b.txt` alone changes.
        let lines =
            page.name.hasPrefix("IIS")
            ? page.text.components(separatedBy: "<br>")
            : page.text.utf8.split(separator: 0x0a, omittingEmptySubsequences: false).map { String(Substring($0)) }
        let text = lines.map { $0.contains("a b.txt") ? $0.replacing("2026", with: "2027") : $0 }.joined(
            separator: page.name.hasPrefix("IIS") ? "<br>" : "\n")
        #expect(text != page.text)
        let after = try Self.read(text)
        let changed = zip(before.files, after.files).filter { $0.version != $1.version }.map { $0.0.name }
        #expect(changed == ["a b.txt"])
    }

    @Test("two names that are equal for Swift and not for a disk are two files, and two folders") func normalForms()
        throws
    {
        let rows = ["\u{fc}", "u\u{308}"].map {
            "<a href=\"\($0)\">\($0)</a> 26-Nov-2026 18:44 1\n<a href=\"\($0)/\">\($0)/</a>\n"
        }
        let found = try Self.read("<html><title>Index of /pub/</title><pre>\(rows.joined())</pre></html>")
        #expect(found.files.count == 2 && found.folders.count == 2)
    }

    @Test(
        "a row with a time is a version, and a size in words is none",
        arguments: [
            ("26-Nov-2026 18:44  1", true), ("2026-11-26", true), ("11/26/2026", true), ("4.9K", false), ("12", false),
            ("-", false),
        ])
    func rows(row: String, isVersion: Bool) throws {
        let found = try Self.read("<html><title>Index of /pub/</title><pre><a href=\"x\">x</a> \(row)\n</pre></html>")
        #expect((found.files.first?.version != nil) == isVersion && found.files.count == 1)
    }

    @Test("an empty folder is known by the path in its title, also with a blank") func blankTitle() throws {
        let url = "http://h.example/pub/empty%20dir/"
        let text =
            "<html><title>h.example - /pub/empty dir/</title><body><h1>h</h1><a href=\"/pub/\">up</a></body></html>"
        #expect(try Self.read(text, at: url, path: "empty dir").files.isEmpty)
        #expect(throws: ListingFault.self) {
            try Self.read(text.replacing("empty dir/<", with: "other/<"), at: url, path: "empty dir")
        }
    }

    @Test("a page that is cut off is refused, wherever that is", arguments: ListingPages.all)
    func cut(page: ListingPages.Page) throws {
        let bytes = Array(page.text.utf8)
        let scope = try #require(SourceScope(ListingPages.url))
        // The last element may lack its end: no name is lost then.
        let end = page.text.utf8.count - 1
        let last = try #require(
            page.text.range(of: "x&amp;y", options: .backwards) ?? page.text.range(of: "x&#x26;y", options: .backwards))
        let limit = page.text.utf8.distance(from: page.text.startIndex, to: last.lowerBound)
        for length in stride(from: 0, to: min(end, limit), by: 7) {
            let found = try? HTMLListing.read(
                Array(bytes[..<length]), in: WebEntry(path: "", url: ListingPages.url), scope, base: ListingPages.url)
            #expect(found == nil, "\(length) of \(bytes.count) bytes")
        }
    }

    @Test("other pages are no listings", arguments: ListingPages.others.map(\.text))
    func others(text: String) { #expect(throws: ListingFault.self) { try Self.read(text) } }

    @Test(
        "empty folders are listings without files",
        arguments: [
            "<html><head><title>Index of /pub/</title></head><body><pre><a href=\"../\">../</a></pre></body></html>",
            "<pre>\n</pre>\n",
            "<html><title>Directory listing for /pub/</title><body><ul></ul></body></html>",
        ])
    func empty(text: String) throws { #expect(Self.names(try Self.read(text)) == []) }

    @Test(
        "links that are no entries are left out",
        arguments: [
            "../", "..", "/", "/other/x", "./", "", "#top", "?C=N;O=D", "x?y=1", "https://h.example:8080/pub/x",
            "https://h.example/pub/x", "//other.example/pub/x", "http://other.example/pub/x", "javascript:void(0)",
            "mailto:a@b.example", "ftp://h.example/pub/x", "/publications/x", "../pub2/x", "../../pub/../x",
            "data:text/plain,x",
        ])
    func leftOut(target: String) throws {
        let found = try Self.read(Self.page(target))
        #expect(Self.names(found) == [])
        #expect(found.faults.isEmpty)
    }

    @Test(
        "addresses that could be read in two ways are faults",
        arguments: [
            "%2e%2e/x", "..%2fx", "a/%2e%2e/%2e%2e/x", "%2e%2e%2fx", "a%2fb", "%2E%2e/", "a%00b", "/pub/%2e%2e/x",
            "./.%2e/x", "%2e/x",
            "a%ff", "a//b",
        ])
    func ambiguous(target: String) throws {
        let found = try Self.read(Self.page(target))
        #expect(Self.names(found) == [])
        #expect(found.faults.count == 1 && found.faults[0].isIncomplete == false, "\(found.faults)")
    }

    @Test(
        "addresses of entries, however they are written",
        arguments: [
            ("x", "x"), ("./x", "x"), ("/pub/x", "x"), ("http://h.example/pub/x", "x"), ("//h.example/pub/x", "x"),
            ("HTTP://H.EXAMPLE:80/pub/x", "x"), ("../pub/x", "x"), ("a b", "a b"), ("a%20b", "a b"), ("a+b", "a+b"),
            ("a%2Bb;c=d", "a+b;c=d"), ("%C3%BC", "ü"), ("ü", "ü"), ("%2541", "%41"), ("100%", "100%"),
            ("a&amp;b", "a&b"), ("a&b", "a&b"),
            ("a&#38;b", "a&b"), ("a&#x26;b", "a&b"), ("a&quot;b", "a\"b"), ("a%5Cb", "a\\b"), ("a\\b", "a\\b"),
            ("a%3Fb%23c", "a?b#c"),
            ("x#part", "x"), (" x\n", "x"), ("./a:b", "a:b"), ("a/b/c.txt", "a/b/c.txt"), ("[a](b)", "[a](b)"),
            ("a'b", "a'b"),
        ] as [(String, String)])
    func written(target: String, name: String) throws {
        let found = try Self.read(Self.page(target))
        #expect(found.files.map(\.name) == [name])
        let url = try #require(found.files.first?.sources.first?.url)
        #expect((try? url.normalizedURL()) == url)
    }

    @Test("names that the listing shortens are whole in their links")
    func shortened() throws {
        let name = String(repeating: "long-", count: 50) + "end"
        let rows = (0..<3).map { "<a href=\"\(name)\($0)\">\(name.prefix(47))..&gt;</a> 26-Nov-2026 18:44 \($0)\r\n" }
        let found = try Self.read(
            "<html><head><title>Files</title></head><body><pre>\(rows.joined())</pre></body></html>")
        #expect(found.files.map(\.name) == (0..<3).map { "\(name)\($0)" })
    }

    @Test("a base of another server makes all links links elsewhere")
    func base() throws {
        let found = try Self.read(
            "<html><title>Index of /</title><base href=\"http://evil.example/pub/\"><a href=\"x\">x</a></html>")
        #expect(Self.names(found) == [])
        #expect(found.leftOut == ["links to other places": 1])
    }

    @Test("scripts, comments and styles have no links")
    func hidden() throws {
        let found = try Self.read(
            """
            <html><title>Index of /pub/</title><!-- <a href="c">c</a> --><script>"<a href='s'>s</a>"</script>
            <style><a href="t">t</a></style><body><a href="x">x</a></body></html>
            """)
        #expect(found.files.map(\.name) == ["x"])
    }

    @Test("each of many rows has its own version")
    func many() throws {
        var text = "<html><title>Index of /pub/</title><pre>"
        for number in 0..<20_000 { text += "<a href=\"f\(number)\">f\(number)</a>  26-Nov-2026 18:44  \(number)\n" }
        text += "</pre></html>"
        let found = try Self.read(text)
        #expect(found.files.count == 20_000)
        #expect(found.files.last?.version == "26-Nov-2026 18:44 19999")
    }

    // MARK: JSON and WebDAV

    private static func json(_ text: String) throws -> FolderPage { try json(Array(text.utf8)) }

    private static func json(_ bytes: [UInt8]) throws -> FolderPage {
        let scope = try #require(SourceScope(ListingPages.url))
        return try JSONListing.read(
            bytes, in: WebEntry(path: "", url: ListingPages.url), scope, base: ListingPages.url)
    }

    @Test("JSON of nginx and Caddy has sizes and times")
    func json() throws {
        let nginx = try Self.json(
            """
            [
            { "name":"sub", "type":"directory", "mtime":"Thu, 26 Nov 2026 18:44:51 GMT" },
            { "name":"x&y#1.bin", "type":"file", "mtime":"Thu, 26 Nov 2026 18:44:51 GMT", "size":40960 },
            { "name":"pipe", "type":"other", "mtime":"Thu, 26 Nov 2026 18:44:51 GMT" }
            ]
            """)
        let caddy = try Self.json(
            """
            [{"name":"sub/","size":4096,"url":"./sub/","mod_time":"2026-11-26T18:44:51.5Z","mode":2147484141,"is_dir":true,"is_symlink":false},
            {"name":"x&y#1.bin","size":40960,"url":"./x&y%231.bin","mod_time":"2026-11-26T18:44:51.5Z","mode":420,"is_dir":false,"is_symlink":false}]
            """)
        for page in [nginx, caddy] {
            #expect(Self.names(page) == ["sub/", "x&y#1.bin"])
            #expect(page.files.first?.size == 40_960)
            #expect(page.files.first?.version != nil)
            #expect(page.files.first?.modified == Date(timeIntervalSince1970: 1_795_718_691))
        }
        #expect(nginx.leftOut == ["entries that are no files": 1])
    }

    @Test("a name that is no UTF-8 leaves the others alone") func jsonBytes() throws {
        let row = "\",\"type\":\"file\",\"size\":1}"
        let page = try Self.json(
            Array("[{\"name\":\"a\(row),{\"name\":\"b".utf8) + [0xe4] + Array("\(row),{\"name\":\"\u{fc}\(row)]".utf8))
        #expect(Self.names(page) == ["a", "\u{fc}"] && page.faults.map(\.reason) == ["its name is no UTF-8"])
        // In a text that is UTF-8, U+FFFD is a letter of the name.
        #expect(try Self.names(Self.json("[{\"name\":\"c\u{fffd}\(row)]")) == ["c\u{fffd}"])
    }

    @Test(
        "names in JSON that are paths are faults",
        arguments: ["../x", "/etc/passwd", "..", ".", "", "a/b"])
    func jsonNames(name: String) throws {
        let page = try Self.json("[{\"name\":\"\(name)\",\"type\":\"file\",\"size\":1}]")
        #expect(page.files.isEmpty && page.faults.count == 1)
    }

    @Test(
        "JSON that is no listing is refused",
        arguments: [
            "", "{}", "[1]", "[{}]", "[{\"name\":1}]", "[{\"name\":\"a\",\"type\":\"file\"}", "[[[[", "null",
            "[{\"name\":\"a\"}]",
        ])
    func otherJSON(text: String) { #expect(throws: ListingFault.self) { try Self.json(text) } }

    private static func dav(_ text: String, path: String = "", url: String = ListingPages.url) throws -> FolderPage {
        let scope = try #require(SourceScope(ListingPages.url))
        return try DAVListing.read(Array(text.utf8), in: WebEntry(path: path, url: url), scope, base: url)
    }

    private static func response(_ href: String, _ properties: String, status: String = "HTTP/1.1 200 OK") -> String {
        """
        <D:response><D:href>\(href)</D:href><D:propstat><D:prop>\(properties)</D:prop><D:status>\(status)</D:status></D:propstat>
        <D:propstat><D:prop><D:getetag/></D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response>
        """
    }

    private static func multistatus(_ responses: String) -> String {
        "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">\(responses)</D:multistatus>"
    }

    @Test("WebDAV has exact sizes, entity tags and times")
    func webDAV() throws {
        let folder = "<D:resourcetype><D:collection/></D:resourcetype>"
        let file =
            "<D:resourcetype/><D:getcontentlength>40960</D:getcontentlength><D:getetag>\"t\"</D:getetag>"
            + "<D:getlastmodified>Thu, 26 Nov 2026 18:44:51 GMT</D:getlastmodified>"
        let page = try Self.dav(
            Self.multistatus(
                Self.response("/pub/", folder) + Self.response("/pub/sub/", folder)
                    + Self.response("http://h.example/pub/old", folder)
                    + Self.response("/pub/x&amp;y%231.bin", file) + Self.response("/pub/b%20c", file)))
        #expect(Self.names(page) == ["b c", "old/", "sub/", "x&y#1.bin"])
        #expect(page.folders.map(\.url) == ["http://h.example/pub/old/", "http://h.example/pub/sub/"])
        let first = try #require(page.files.first)
        #expect(first.size == 40_960 && first.version == "\"t\" Thu, 26 Nov 2026 18:44:51 GMT 40960")
        #expect(page.faults.isEmpty)
    }

    @Test(
        "resources of WebDAV outside of the folder are faults",
        arguments: ["/other/x", "http://evil.example/pub/x", "/pub/%2e%2e/x", "/pub/..%2fx", "/pub/x?y"])
    func outsideDAV(href: String) throws {
        let page = try Self.dav(Self.multistatus(Self.response(href, "<D:resourcetype/>")))
        #expect(page.files.isEmpty && page.folders.isEmpty && page.faults.count == 1)
    }

    @Test("a folder whose status is an error is a part that is missing")
    func davStatus() throws {
        let page = try Self.dav(
            Self.multistatus(
                "<D:response><D:href>/pub/x</D:href><D:status>HTTP/1.1 403 Forbidden</D:status></D:response>"))
        #expect(page.files.isEmpty && page.faults.map(\.isIncomplete) == [true])
    }

    @Test(
        "XML that is cut off, or is no answer of WebDAV, is refused",
        arguments: [
            "", "<a/>", "<html></html>", "<D:multistatus xmlns:D=\"DAV:\">", "<multistatus/>",
            "<D:multistatus xmlns:D=\"DAV:\"><D:response>",
            "<!DOCTYPE a [<!ENTITY x \"y\">]><D:multistatus xmlns:D=\"DAV:\"/>",
        ])
    func otherXML(text: String) { #expect(throws: ListingFault.self) { try Self.dav(text) } }

    // MARK: Any bytes

    private static func entries(_ reader: Int, _ page: [UInt8], _ folder: WebEntry, _ scope: SourceScope) -> FolderPage?
    {
        switch reader {
        case 0: try? HTMLListing.read(page, in: folder, scope, base: folder.url)
        case 1: try? JSONListing.read(page, in: folder, scope, base: folder.url)
        default: try? DAVListing.read(page, in: folder, scope, base: folder.url)
        }
    }

    @Test("any page ends in time, and names only what is below the folder", arguments: FuzzRun.shards)
    func fuzz(shard: Int) async throws {
        let pages = ListingPages.all.map { Array($0.text.utf8) }
        let json = Array(
            "[{\"name\":\"a\",\"type\":\"file\",\"size\":1,\"mtime\":\"x\"},{\"name\":\"b/\",\"is_dir\":true}]".utf8)
        let dav = Array(Self.multistatus(Self.response("/pub/x", "<D:getetag>t</D:getetag>")).utf8)
        let links = [
            "../", "%2e%2e/", "..%2f", "//h.example/pub/", "http://", "/pub/", "?", "#", "&#x2e;&#46;/", "\\..\\", "x:",
        ]
        try await FuzzRun("listings", usual: 5_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var page = random.pick(pages + [json, dav])
            for _ in 0...random.below(4) {
                if random.oneIn(3) {
                    page.insert(
                        contentsOf: Array("<a href=\"\(random.pick(links))\(NastyText.make(&random))\">x</a>".utf8),
                        at: random.below(page.count + 1))
                } else {
                    Mutation.apply(&page, with: random.pick(pages), &random)
                }
            }
            guard let scope = SourceScope(ListingPages.url) else { return "no scope" }
            let folder =
                random.oneIn(2)
                ? WebEntry(path: "", url: ListingPages.url) : WebEntry(path: "s", url: ListingPages.url + "s/")
            for reader in 0..<3 {
                guard let found = Self.entries(reader, page, folder, scope) else { continue }
                let prefix = folder.path.isEmpty ? "" : folder.path + "/"
                for (name, url) in found.files.map({ ($0.name ?? "", $0.sources.first?.url ?? "") })
                    + found.folders.map({ ($0.path, $0.url) })
                {
                    let path = URLParts(url).path
                    guard name.utf8.starts(with: prefix.utf8), URLOrigin(url) == URLOrigin(ListingPages.url),
                        path.hasPrefix("/pub/") || Array(path.utf8)[...].percentDecoded.starts(with: "/pub/".utf8),
                        !name.utf8.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual("..".utf8) })
                    else { return "\(name.debugDescription) at \(url)" }
                }
            }
            return nil
        }
    }
}
