import TestSupport
import Testing

private let id = TaskID(url: "http://example.com/a")

@Suite("File names")
struct NameRulesTests {
    @Test(
        "are cleaned",
        arguments: [
            ("a.zip", "a.zip"), ("中文.zip", "中文.zip"), ("a b.txt", "a b.txt"), ("a:b?.txt", "a:b?.txt"),
            ("👨‍👩‍👧.png", "👨‍👩‍👧.png"),
            // Fault 39
            ("../../etc/passwd", "passwd"), ("..\\..\\boot.ini", "boot.ini"), ("/etc/passwd", "passwd"),
            ("C:\\Windows\\a.exe", "a.exe"), ("~/.bashrc", "_bashrc"), ("~root", "_root"), ("~", "_"), ("a/b/", "b"),
            // Fault 40
            ("a\u{0}b\u{1b}[31mc\nd\u{7f}\u{85}", "a_b_[31mc_d__"), ("a\r\nb", "a__b"),
            ("a\u{202e}txt.exe", "a_txt.exe"), ("a\u{2066}b\u{200f}\u{feff}\u{2028}", "a_b___"),
            // Fault 41
            ("", "download"), (".", "download"), ("..", "download"), ("/", "download"), ("...", "download"),
            ("a/..", "download"), (" . . ", "download"), ("\\", "download"),
            // Fault 42
            ("CON", "CON_"), ("con.txt", "con_.txt"), ("nul.tar.gz", "nul_.tar.gz"), ("COM1", "COM1_"),
            ("lpt9.x", "lpt9_.x"),
            ("COM¹", "COM¹_"), ("conin$", "conin$_"), ("aux .txt", "aux _.txt"), ("console", "console"), ("COM", "COM"),
            ("COMA", "COMA"), ("com10", "com10"),
            // Fault 43
            ("  a.txt  ", "a.txt"), ("a.txt. . .", "a.txt"), ("\u{a0}a\u{3000}", "a"), ("\ta", "_a"),
            // Fault 44
            (".bashrc", "_bashrc"), ("..a", "_a"), (" .a", "_a"), (".a.b", "_a.b"),
            // Fault 45
            ("-rf", "_-rf"), ("--help", "_--help"), ("a-b", "a-b"),
            // Fault 49
            ("a.fkpart", "a.fkpart_"), ("a.FKPART", "a.FKPART_"), ("a.zip.fkrejected", "a.zip.fkrejected_"),
            (".a.0123456789abcdef.fkpart", "_a.0123456789abcdef.fkpart_"), ("fkpart", "fkpart"),
        ])
    func cleaned(name: String, expected: String) {
        #expect(
            FileNameRules.clean(name).unicodeScalars.elementsEqual(expected.unicodeScalars),
            "\(FileNameRules.clean(name))")
    }

    @Test(
        "are cut at a character, keeping the extension",
        arguments: [
            (String(repeating: "a", count: 300) + ".zip", 215, ".zip"),
            (String(repeating: "a", count: 300), 215, "a"),
            (String(repeating: "a", count: 300) + ".tar.gz", 215, ".tar.gz"),
            (String(repeating: "中", count: 100) + ".zip", 214, ".zip"),
            (String(repeating: "👨‍👩‍👧", count: 30) + ".png", 202, ".png"),
            (String(repeating: "a", count: 300) + "." + String(repeating: "b", count: 300), 215, "a"),
            ("a" + String(repeating: "\u{301}", count: 300), 215, "\u{301}"),
            (String(repeating: "a", count: 214) + " b", 214, "a"),
            (String(repeating: "a", count: 215), 215, "a"),
            (String(repeating: "a", count: 300) + ".fkpart", 215, ".fkpart_"),
        ])
    func cut(name: String, bytes: Int, end: String) {
        let result = FileNameRules.clean(name)
        #expect(result.utf8.count == bytes)
        #expect(Array(result.utf8.suffix(end.utf8.count)) == Array(end.utf8))
    }

    @Test(
        "come from Content-Disposition, then the URL, then the type",
        arguments: [
            // (URL, Content-Disposition, Content-Type, name)
            ("http://e.com/a/b.zip", nil, nil, "b.zip"),
            ("http://e.com/a/b.zip?c=/d.txt", nil, "text/html", "b.zip"),
            ("http://e.com/a/b.zip#x/y", nil, nil, "b.zip"),
            ("http://e.com/%E4%B8%AD%E6%96%87.zip", nil, nil, "中文.zip"),
            ("http://e.com/a%20b", nil, "text/plain", "a b"),
            ("http://e.com/a%2Fb", nil, nil, "b"), ("http://e.com/..%2F..%2Fpasswd", nil, nil, "passwd"),
            ("http://e.com/%FF%E4a%41", nil, nil, "%FF%E4aA"), ("http://e.com/100%25", nil, nil, "100%"),
            ("http://e.com/dir/", nil, "text/html", "dir"),
            ("http://e.com/", nil, nil, "download"),
            ("http://e.com/", nil, "text/html; charset=utf-8", "download.html"),
            ("http://e.com/", nil, "APPLICATION/ZIP", "download.zip"),
            ("http://e.com/..", nil, "application/pdf", "download.pdf"),
            ("http://e.com/", nil, "application/octet-stream", "download"), ("http://e.com/", nil, "x/y", "download"),
            ("http://e.com", nil, nil, "download"),
            ("http://e.com/a.php", "attachment; filename=\"r.pdf\"", "application/pdf", "r.pdf"),
            ("http://e.com/a.php", "attachment; filename=r", "application/pdf", "r"),
            ("http://e.com/a.php", "attachment; filename=\"../../x.sh\"", nil, "x.sh"),
            ("http://e.com/a.php", "attachment; filename=\"..\"", nil, "a.php"),
            ("http://e.com/a.php", "attachment", nil, "a.php"),
            ("http://e.com/a.php", "inline; filename*=UTF-8''%e4%b8%ad.txt; filename=x", nil, "中.txt"),
        ] as [(String, String?, String?, String)])
    func source(url: String, disposition: String?, type: String?, expected: String) {
        var fields: [HeaderField] = []
        if let disposition { fields.append(.init("content-disposition", disposition)) }
        if let type { fields.append(.init("Content-Type", type)) }
        let head = ResponseHead(status: 200, fields: fields, url: "http://other.com/redirected.exe")
        #expect(FileNameRules.name(url: url, head: head) == expected)
        if disposition == nil, type == nil { #expect(FileNameRules.name(url: url, head: nil) == expected) }
    }

    @Test(
        "are numbered before the extension",
        arguments: [
            ("a.zip", 1, "a.1.zip"), ("a.tar.gz", 2, "a.2.tar.gz"), ("README", 1, "README.1"),
            ("v1.2.zip", 1, "v1.2.1.zip"), ("_bashrc", 3, "_bashrc.3"), ("a.b c", 1, "a.b c.1"),
            (".tar.gz", 1, ".tar.1.gz"), ("x.TAR.XZ", 1, "x.1.TAR.XZ"),
        ])
    func numbered(name: String, n: Int, expected: String) {
        #expect(FileNameRules.numbered(name, n) == expected)
    }

    @Test("leave room for our own suffixes", arguments: ["a.zip", "中文.zip", String(repeating: "中", count: 85)])
    func own(name: String) {
        let digits = id.hex.prefix(16)
        let part = FileNameRules.partName(for: name, id: id)
        let rejected = FileNameRules.rejectedName(for: name, id: id)
        #expect(part.utf8.count <= 255 && part.hasPrefix(".") && part.hasSuffix(".\(digits).fkpart"))
        #expect(rejected.utf8.count <= 255 && rejected.hasPrefix(".") && rejected.hasSuffix(".\(digits).fkrejected"))
        if name.utf8.count < 200 {
            #expect(part == ".\(name).\(digits).fkpart")
            #expect(rejected == ".\(name).\(digits).fkrejected")
        }
    }

    @Test("hidden names have the first 16 digits of the id, short ids 12")
    func hidden() {
        let id = TaskID(url: "http://a.example/f")
        #expect(id.leadingDigits(16) == id.hex.prefix(16) && id.short == id.hex.prefix(12))
        #expect(FileNameRules.partName(for: "f.bin", id: id) == ".f.bin.\(id.hex.prefix(16)).fkpart")
        #expect(FileNameRules.rejectedName(for: "f", id: id, number: 3) == ".f.\(id.hex.prefix(16)).3.fkrejected")
        let long = FileNameRules.oldName(for: String(repeating: "x", count: 300), id: id, number: 12)
        #expect(long.utf8.count == 255 && long.hasSuffix("x.\(id.hex.prefix(16)).12.fkpart.old"))
    }

    @Test("the path of a URL alone is that of its parts")
    func paths() {
        for url in ["http://u@a.example:8/p/q?r#s", "http://a", "http://a?x=/", "p/q#f", "", "//a/b", "ftp://a/ü/"] {
            #expect(
                Array(url.utf8).withUnsafeBufferPointer {
                    $0[URLParts.path(of: $0)].elementsEqual(URLParts(url).path.utf8)
                })
        }
    }
}

@Suite("Content-Disposition")
struct ContentDispositionTests {
    @Test(
        "gives a file name",
        arguments: [
            ("attachment; filename=\"a.txt\"", "a.txt"), ("attachment; filename=a.txt", "a.txt"),
            ("ATTACHMENT; FILENAME=a.txt", "a.txt"), ("inline; filename=\"a.txt\"", "a.txt"),
            ("attachment;filename=a.txt;size=3", "a.txt"), ("attachment; filename = \"a.txt\" ; x=y", "a.txt"),
            ("attachment; x=\"a;filename=b\"; filename=c", "c"), ("attachment; filename=\"a;b.txt\"", "a;b.txt"),
            ("attachment; filename=\"a\\\"b.txt\"", "a\"b.txt"), ("attachment; filename=\"a\\\\b\"", "a\\b"),
            ("attachment; filename=\"C:\\dir\\a.txt\"", "C:\\dir\\a.txt"),
            ("attachment; filename=\"a b.txt\"", "a b.txt"), ("attachment; filename='a.txt'", "'a.txt'"),
            ("attachment; filename=\"a.txt\"; filename=\"b.txt\"", "a.txt"),
            // Broken
            ("filename=a.txt", "a.txt"), ("; filename=a.txt", "a.txt"), ("attachment; filename=a b c.txt", "a b c.txt"),
            ("attachment; filename=\"a.txt", "a.txt"), ("attachment; filename=\"a.txt\"junk; x=y", "a.txt"),
            ("attachment; filename=a[1](2).txt", "a[1](2).txt"), ("\"attachment\"; filename=a.txt", "a.txt"),
            ("attachment;; filename=a.txt;", "a.txt"), ("attachment; =x; filename=a", "a"),
            ("attachment; filename=中文.txt", "中文.txt"),
            ("attachment; filename=\"\u{e4}\u{b8}\u{ad}.txt\"", "中.txt"),
            ("attachment; filename=\"\u{e9}.txt\"", "\u{e9}.txt"),
            ("attachment; filename=\"%E4%B8%AD.txt\"", "中.txt"), ("attachment; filename=\"100%25.txt\"", "100%25.txt"),
            ("attachment; filename=\"100%.txt\"", "100%.txt"), ("attachment; filename=\"%FF.txt\"", "%FF.txt"),
            ("attachment; filename=\"=?UTF-8?B?5Lit5paHLnR4dA==?=\"", "中文.txt"),
            ("attachment; filename=\"=?utf-8?Q?=E4=B8=AD_a.txt?=\"", "中 a.txt"),
            ("attachment; filename=\"=?utf-8?Q?100%25?=\"", "100%25"),
            ("attachment; filename=\"=?iso-8859-1?q?=E9?=\"", "\u{e9}"),
            ("attachment; filename=\"=?x?=\"", "=?x?="),
            // RFC 8187
            ("attachment; filename*=UTF-8''%e2%82%ac%20rates", "€ rates"),
            ("attachment; filename*=utf-8'en'a.txt", "a.txt"),
            ("attachment; filename*=iso-8859-1''%A3", "£"), ("attachment; filename=\"b\"; filename*=UTF-8''a", "a"),
            ("attachment; filename*=UTF-8''a; filename=b", "a"), ("attachment; filename*=\"UTF-8''a%20b\"", "a b"),
            ("attachment; filename*=UTF-8''it's", "it's"), ("attachment; filename*=UTF-8''中文", "中文"),
            ("attachment; filename*=UTF-8''%; filename=b", "b"), ("attachment; filename*=UTF-8''%FF; filename=b", "b"),
            ("attachment; filename*=GBK''%D6%D0; filename=b", "b"), ("attachment; filename*=a.txt; filename=b", "b"),
            ("attachment; filename*=UTF-8''; filename=b", "b"),
            // Fault 118
            ("attachment; filename*=iso-8859-1''caf\u{e9}; filename=b", "b"),
            ("attachment; filename=b; filename*=latin1''caf\u{c3}\u{a9}%E9", "b"),
            ("attachment; filename*=us-ascii''caf\u{e9}; filename=b", "b"),
            ("attachment; filename=\"caf\u{e9} 100%25 a%2Fb.txt\"", "caf\u{e9} 100%25 a%2Fb.txt"),
            ("attachment; filename=\"cafe 100%25 a%2Fb.txt\"", "cafe 100%25 a%2Fb.txt"),
            ("attachment; filename=\"caf%C3%A9 100%25 a%2Fb.txt\"", "caf%C3%A9 100%25 a%2Fb.txt"),
            ("attachment; filename=\"caf\u{c3}\u{a9} %E4%B8%ADx%20y\"", "caf\u{e9} \u{4e2d}x y"),
            ("attachment; filename=\"%E4%B8%AD%FF %zz%C3%A9\"", "%E4%B8%AD%FF %zz%C3%A9"),
            // A plain name is decoded as a whole or not at all.
            ("attachment; filename=\"%EC%98%88%20x\"", "\u{c608} x"),
            ("attachment; filename=\"a%20b.txt\"", "a%20b.txt"),
            ("attachment; filename=\"%EC%98%88 100%.txt\"", "%EC%98%88 100%.txt"),
            ("attachment; filename=\"%EC%98%88 100%25.txt\"", "\u{c608} 100%.txt"),
            ("attachment; filename=\"%EC%98%88%00%0A\"", "%EC%98%88%00%0A"),
            ("attachment; filename=\"%EC%98%88%5Cx\"", "%EC%98%88%5Cx"),
            ("attachment; filename=\"\u{c608}%20x\"", "\u{c608}%20x"),
            // Raw bytes in an extended name may be of any charset.
            ("attachment; filename*=UTF-8''caf\u{e9}; filename=good", "good"),
            ("attachment; filename=good; filename*=UTF-8''\u{c608}%20x", "good"),
            ("attachment; filename=\"\"; filename*=UTF-8''\u{c608}%20x", "\u{c608} x"),
        ])
    func present(value: String, expected: String) {
        #expect(ContentDisposition.fileName(value) == expected)
    }

    @Test(
        "gives none",
        arguments: [
            "", "attachment", "inline;", "attachment; filename=", "attachment; filename=\"\"", "attachment; name=a",
            "attachment; xfilename=a", "attachment; filename*=UTF-8''%FF", "form-data; name=\"filename=x\"", ";;;", "=",
            "\"", "attachment; filename",
        ])
    func absent(value: String) {
        #expect(ContentDisposition.fileName(value) == nil)
    }
}
