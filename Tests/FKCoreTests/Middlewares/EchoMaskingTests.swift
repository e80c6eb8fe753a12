import TestSupport
import Testing

@testable import FKTransport

@Suite("Secrets in error pages")
struct EchoMaskingTests {
    private func mask(_ text: String, from url: String, cookie: String = "") throws -> String {
        var request = URLRequest(url: try #require(URL(string: "http://h/file")))
        request.setValue(cookie, forHTTPHeaderField: "Cookie")
        return EchoMasking(request: request, secretHeaders: []).mask(text, url: url)
    }

    @Test("a secret is hidden in the middle and where the text ends in it") func hidden() throws {
        let url = "http://h/file?sig=abcdefgh"
        #expect(try mask("no abcdefgh here", from: url) == "no *** here")
        #expect(try mask("no abcde", from: url) == "no ***")
        #expect(try mask("no abc", from: url) == "no abc")
        #expect(try mask("no abcdefgh", from: "http://h/file", cookie: "a=abcdefgh; b=c") == "no ***")
    }

    @Test("the secrets of files that libcurl reads: logins of netrc, and cookies of the host") func files() {
        let text =
            "machine h login u password s3cret!word\ndefault login \"v w\" password other-word account third-word"
        let logins = SecretFiles.logins(in: text)
        #expect(
            logins.isSuperset(of: [
                "s3cret!word", "other-word", "third-word", Data("u:s3cret!word".utf8).base64EncodedString(),
            ]))
        let line = "#HttpOnly_.example.org\tTRUE\t/\tFALSE\t0\tsession\tabc def"
        #expect(SecretFiles.cookie(line, of: ["a.example.org"]) == "abc def")
        #expect(SecretFiles.cookie(line, of: ["example.org"]) == "abc def")
        #expect(SecretFiles.cookie(line, of: ["badexample.org"]) == nil && SecretFiles.cookie("x", of: ["x"]) == nil)
    }

    @Test("a text is hidden as a whole if a server makes the secrets too long to search", arguments: [0, 1])
    func bounded(excess: Int) throws {
        let url = "http://h/file?sig="
        let own = "http://h/file".utf8.count
        let secret = String(repeating: "y", count: EchoMasking.maxPlaces - own - url.utf8.count + excess)
        #expect(try mask("no file", from: url + secret) == (excess == 0 ? "no file" : "***"))
        let rest = EchoMasking.maxPlaces - 2 * own
        let cookie = String(repeating: "a=b;", count: rest / 4) + String(repeating: "c", count: rest % 4 + excess)
        #expect(try mask("no file", from: "http://h/file", cookie: cookie) == (excess == 0 ? "no file" : "***"))
    }
}
