import TestSupport
import Testing

@Suite("URL normal form")
struct URLTests {
    @Test(
        "is what is stored and sent",
        arguments: [
            // As they are
            ("http://example.com/a/b.zip", "http://example.com/a/b.zip"),
            ("https://example.com/a?b=c&d=e/f?g:h@i", "https://example.com/a?b=c&d=e/f?g:h@i"),
            ("http://example.com/a/../b/./c", "http://example.com/a/../b/./c"),
            ("http://example.com/!$&'()*+,;=:@-._~", "http://example.com/!$&'()*+,;=:@-._~"),
            // Blanks around
            ("  \t\r\n http://example.com/a \r\n", "http://example.com/a"),
            // Case, port, path
            ("HTTP://EXAMPLE.Com/A", "http://example.com/A"),
            ("http://example.com", "http://example.com/"),
            ("http://example.com?x=1", "http://example.com/?x=1"),
            ("http://example.com:80/", "http://example.com/"),
            ("https://example.com:443/", "https://example.com/"),
            ("http://example.com:443/", "http://example.com:443/"),
            ("http://example.com:/a", "http://example.com/a"),
            ("http://example.com:00080/a", "http://example.com/a"),
            ("http://example.com:65535/", "http://example.com:65535/"),
            ("http://example.com:1/", "http://example.com:1/"),
            ("http://example.com/?", "http://example.com/?"),
            ("http://example.com./a", "http://example.com./a"),
            ("http://a_b.example/a", "http://a_b.example/a"),
            ("http://127.0.0.1:8080/a", "http://127.0.0.1:8080/a"),
            ("http://localhost/a", "http://localhost/a"),
            // Fragment
            ("http://example.com/a#top", "http://example.com/a"),
            ("http://example.com#top", "http://example.com/"),
            ("http://example.com/a?b#c?d#e", "http://example.com/a?b"),
            ("http://example.com/中文#片段", "http://example.com/%E4%B8%AD%E6%96%87"),
            // Chinese, kana, emoji, blanks
            ("http://example.com/中文.zip", "http://example.com/%E4%B8%AD%E6%96%87.zip"),
            ("http://example.com/カタカナ", "http://example.com/%E3%82%AB%E3%82%BF%E3%82%AB%E3%83%8A"),
            ("http://example.com/ひらがな?q=か", "http://example.com/%E3%81%B2%E3%82%89%E3%81%8C%E3%81%AA?q=%E3%81%8B"),
            ("http://example.com/😀.png", "http://example.com/%F0%9F%98%80.png"),
            ("http://example.com/a b/c d.txt?e f", "http://example.com/a%20b/c%20d.txt?e%20f"),
            ("http://example.com/e\u{301}", "http://example.com/e%CC%81"),
            ("http://example.com/\u{e9}", "http://example.com/%C3%A9"),
            // Encoded once, twice, badly
            ("http://example.com/%E4%B8%AD.zip", "http://example.com/%E4%B8%AD.zip"),
            ("http://example.com/%e4%b8%ad.zip", "http://example.com/%e4%b8%ad.zip"),
            ("http://example.com/%25E4%25B8%25AD", "http://example.com/%25E4%25B8%25AD"),
            ("http://example.com/%E4%B8%AD文", "http://example.com/%E4%B8%AD%E6%96%87"),
            ("http://example.com/100%", "http://example.com/100%25"),
            ("http://example.com/100%2", "http://example.com/100%252"),
            ("http://example.com/100%zz?50%&%41", "http://example.com/100%25zz?50%25&%41"),
            ("http://example.com/%%41", "http://example.com/%25%41"),
            // Not allowed in a path or a query
            ("http://example.com/[a]|^\"<>\\`{}", "http://example.com/%5Ba%5D%7C%5E%22%3C%3E%5C%60%7B%7D"),
            ("http://example.com/?x[]=1|2", "http://example.com/?x%5B%5D=1%7C2"),
            // User information
            ("http://user:pass@example.com/a", "http://user:pass@example.com/a"),
            ("http://us er:p@ss@example.com/", "http://us%20er:p%40ss@example.com/"),
            ("http://用户@example.com/", "http://%E7%94%A8%E6%88%B7@example.com/"),
            ("http://@example.com/", "http://example.com/"),
            // IPv6
            ("http://[::1]/a", "http://[::1]/a"),
            ("http://[2001:DB8::A]:8080/", "http://[2001:db8::a]:8080/"),
            ("http://[::1]:80/", "http://[::1]/"),
            ("http://[fe80::1%25eth0]/", "http://[fe80::1%25eth0]/"),
            ("http://[fe80::1%eth0]/", "http://[fe80::1%25eth0]/"),
            ("http://[::ffff:127.0.0.1]/", "http://[::ffff:127.0.0.1]/"),
            // IDNA
            ("http://中文.com/路径", "http://xn--fiq228c.com/%E8%B7%AF%E5%BE%84"),
            ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
            ("http://例え.テスト:8080/", "http://xn--r8jz45g.xn--zckzah:8080/"),
            ("http://中文。com/", "http://xn--fiq228c.com/"),
            ("http://%E4%B8%AD%E6%96%87.com/", "http://xn--fiq228c.com/"),
            ("http://xn--fiq228c.com/", "http://xn--fiq228c.com/"),
            ("http://用户:密@中文.com:81/", "http://%E7%94%A8%E6%88%B7:%E5%AF%86@xn--fiq228c.com:81/"),
        ])
    func normal(text: String, expected: String) throws {
        let result = try text.normalizedURL()
        #expect(Array(result.utf8) == Array(expected.utf8))
        #expect(try result.normalizedURL() == result, "the normal form is its own normal form")
        #expect(URL(string: result)?.absoluteString == result, "Foundation takes it as it is")
    }

    @Test(
        "is refused",
        arguments: [
            "", "   \n", "example.com", "example.com/a", "//example.com/a", "/a/b", "localhost:8080/a",
            "example.com:8080", "1http://a/", "中文", "http:", "http:/a", "http://", "http:///a", "http://?a",
            "http://#a", "http://user@/a", "http:a", "http://:80/", "http://example.com:0/",
            "http://example.com:65536/", "http://example.com:99999999999999999999/", "http://example.com:8a/",
            "http://example.com:-1/", "http://example.com:+1/", "http://a:b:80/", "http://ex ample.com/",
            "http://exa%2Fmple.com/", "http://exa%00mple.com/", "http://exa%mple.com/", "http://%FF.com/",
            "http://a..b/", "http://.a/", "http://./", "http://a|b/", "http://a<b>/", "http://a,b/", "http://中 文.com/",
            "http://中\u{ff0f}文.com/", "http://good.example\\@evil.example/",
            "http://\(String(repeating: "a", count: 64)).com/", "http://\(String(repeating: "中", count: 80)).com/",
            "http://\(String(repeating: "a.", count: 130))com/", "http://[::1/", "http://[::1]a/", "http://[]/",
            "http://[1.2.3.4]/", "http://[::g]/", "http://[v1.a]/", "http://[fe80::1%]/", "http://[fe80::1%a b]/",
            "http://::1/", "http://example.com/a\u{0}b", "http://example.com/a\rb", "http://example.com/a\nb",
            "http://example.com/a\r\nHost: evil", "http://example.com/\u{1b}[31m", "http://example.com/\u{7f}",
            "http://exam\tple.com/",
        ])
    func invalid(text: String) {
        #expect(code(text) == .invalidURL)
    }

    @Test(
        "names another scheme in the error",
        arguments: [
            "ftp://a/b", "file:///etc/passwd", "mailto:a@b", "FTP://a", "data:,x", "javascript:alert(1)", "gopher://a",
        ])
    func scheme(text: String) {
        #expect(code(text) == .unsupportedScheme)
    }

    @Test("has at most 64 KiB, before and after encoding")
    func length() throws {
        let room = 65_536 - "http://a/".utf8.count
        #expect(try ("http://a/" + String(repeating: "b", count: room)).normalizedURL().utf8.count == 65_536)
        #expect(code("http://a/" + String(repeating: "b", count: room + 1)) == .invalidURL)
        #expect(code("http://a/" + String(repeating: "中", count: room / 4)) == .invalidURL)
    }

    @Test("hints at the full form where the scheme is missing")
    func hint() {
        #expect(throws: DownloadError.self) { try "example.com/a".normalizedURL() }
        do {
            _ = try "example.com/a".normalizedURL()
        } catch {
            #expect(error.message.contains("https://"))
            #expect(!error.isRetryable)
        }
    }

    @Test("is its own normal form for whatever is typed")
    func random() {
        var generator = SeededRandom(seed: 7)
        let alphabet = Array("abc/?#%:@[]|^ \\\"<>.中か😀é=&;25E4")
        for _ in 0..<3_000 {
            let text =
                "http://h/"
                + String(
                    (0..<Int.random(in: 0...24, using: &generator)).map { _ in
                        alphabet.randomElement(using: &generator) ?? "a"
                    })
            guard let once = try? text.normalizedURL() else {
                Issue.record("refused: \(text)")
                continue
            }
            #expect((try? once.normalizedURL()) == once)
            #expect(URL(string: once)?.absoluteString == once)
        }
    }

    private func code(_ text: String) -> DownloadError.Code? {
        do {
            _ = try text.normalizedURL()
            return nil
        } catch {
            return error.code
        }
    }
}
