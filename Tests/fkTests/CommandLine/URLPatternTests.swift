import Testing

@testable import fk

@Suite("URLs that stand for several") struct URLPatternTests {
    @Test(
        "ranges, steps, letters and lists, in order",
        arguments: [
            ("http://h/d[1-3].bin", ["http://h/d1.bin", "http://h/d2.bin", "http://h/d3.bin"]),
            ("http://h/[08-11]", ["http://h/08", "http://h/09", "http://h/10", "http://h/11"]),
            ("http://h/[0-90:45]", ["http://h/0", "http://h/45", "http://h/90"]),
            ("http://h/{a,b}/[x-z:2]", ["http://h/a/x", "http://h/a/z", "http://h/b/x", "http://h/b/z"]),
            ("http://h/{,.sig}", ["http://h/", "http://h/.sig"]),
            ("http://[::1]:80/a[1-2]", ["http://[::1]:80/a1", "http://[::1]:80/a2"]),
            ("http://h/plain", ["http://h/plain"]),
        ])
    func expands(text: String, urls: [String]) throws {
        #expect(try URLPattern.expand(text) == urls)
    }

    @Test(
        "a part without values is refused",
        arguments: ["[3-1]", "[a-3]", "[1-3", "{a,b", "[x]", "[1-3:0]", "[1-999999999]", "[1-400][1-400]", "[a-]"])
    func refused(part: String) {
        #expect(throws: URLPattern.Fault.self) { try URLPattern.expand("http://h/\(part)") }
    }

    @Test(
        "a note is for parts that would be expanded",
        arguments: [
            ("http://h/d[1-3].bin", "[1-3]"), ("http://h/{a,b}", "{a,b}"), ("http://h/a[x].bin", nil),
            ("http://[::1]/a", nil), ("http://h/{guid}", nil), ("http://h/?q[1-2]=3", "[1-2]"),
        ])
    func part(url: String, part: String?) {
        #expect(URLPattern.part(of: url) == part)
    }
}
