import FKMiddleware
import Foundation

/// Decides whether an answer is a web page in the place of a file, such as a login form.
///
/// | the file's name | Content-Type `text/html` or `application/xhtml+xml` |
/// | --- | --- |
/// | an archive, image, medium, package or document (`a.zip`, `a.tar.gz`) | the first 512 bytes decide |
/// | without an extension, or with another one (`a`, `a.html`, `a.php`, `a.txt`) | accepted |
///
/// The type alone refuses nothing, because some servers (busybox httpd, storage boxes) send `text/html` for every extension that
/// they do not know. Bytes that begin as a web page does are refused, all others are the file. A part of the file (206) that
/// continues the stored bytes is never a page. Bytes with a content coding cannot be looked at, and the type decides.
///
/// An expected type: `file` looks at the bytes under every name, and a type such as `application/zip` or `image/*` refuses every
/// other one by its name alone. Without one, other types than pages are accepted: many servers send `text/plain` or nothing for
/// files that they do not know.
package enum PageRules {
    /// The extensions of files that are never web pages.
    static let binaryExtensions: Set<String> = [
        "7z", "aac", "aab", "apk", "appimage", "avi", "avif", "bin", "br", "bz2", "cab", "ckpt", "cpio", "crate", "deb",
        "dmg", "docx", "exe", "flac", "gem", "gguf", "gif", "gz", "h5", "heic", "ico", "img", "ipa", "iso", "jar",
        "jpeg",
        "jpg", "lz", "lz4", "lzma", "m4a", "m4v", "mkv", "mov", "mp3", "mp4", "mpeg", "mpg", "msi", "nc", "npy", "npz",
        "odt", "ogg", "onnx", "opus", "otf", "parquet", "pdf", "pkg", "png", "pptx", "pt", "pth", "qcow2", "rar", "rpm",
        "safetensors", "snap", "sqlite", "tar", "tbz2", "tgz", "tif", "tiff", "ttf", "txz", "vdi", "vhd", "vmdk", "war",
        "wasm", "wav", "webm", "webp", "whl", "woff", "woff2", "xlsx", "xz", "zip", "zst",
    ]

    /// The maximum number of bytes to look at.
    package static let lookedAt = 512

    /// True if the bytes begin a web page, as browsers decide it (https://mimesniff.spec.whatwg.org, section 7.1). nil if more
    /// bytes are needed.
    ///
    /// - Parameters:
    ///   - bytes: the first bytes of the file; at most `lookedAt` of them count.
    ///   - isAll: true if the file has no others.
    package static func isPage(_ bytes: some Collection<UInt8>, isAll: Bool) -> Bool? {
        let isAll = isAll || bytes.count >= lookedAt
        var rest = Array(bytes.prefix(lookedAt))[...]
        for mark: [UInt8] in [[0xef, 0xbb, 0xbf], [0xfe, 0xff], [0xff, 0xfe]] {
            guard rest.starts(with: mark) else {
                if !isAll, mark.starts(with: rest) { return nil }
                continue
            }
            rest = rest.dropFirst(mark.count)
            // UTF-16 has a zero byte beside each letter of a tag.
            if mark.count == 2 { rest = rest.filter { $0 != 0 }[...] }
            break
        }
        rest = rest.drop { [0x09, 0x0a, 0x0c, 0x0d, 0x20].contains($0) }
        guard let first = rest.first else { return isAll ? false : nil }
        guard first == UInt8(ascii: "<") else { return false }
        let text = rest.dropFirst().map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }
        var isOpen = false
        for tag in tags {
            let tag = tag.utf8
            guard text.starts(with: tag) else {
                if tag.starts(with: text) { isOpen = true }
                continue
            }
            guard text.count > tag.count else { return isAll ? true : nil }
            if [0x09, 0x0a, 0x0c, 0x0d, 0x20, UInt8(ascii: ">"), UInt8(ascii: "/")].contains(text[tag.count]) {
                return true
            }
        }
        for start in ["!--", "?xml"] {
            if text.starts(with: start.utf8) { return true }
            if start.utf8.starts(with: text) { isOpen = true }
        }
        return isOpen && !isAll ? nil : false
    }

    /// The tags that begin a web page, in lower case.
    private static let tags = [
        "!doctype", "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b",
        "body",
        "br", "p", "meta", "link", "center", "form", "noscript",
    ]

    /// True if an expected type refuses others by their name.
    static func isCertain(_ expected: String?) -> Bool { expected != nil && expected != "file" }

    /// The error for a page in the place of a file; nil if the answer may be the file. If no type other than `file` is expected,
    /// it counts only if the bytes are those of a page (`isPage`).
    ///
    /// - Parameters:
    ///   - name: the name that the URL alone gives to the file.
    ///   - head: the answer, with any status that brings bytes.
    ///   - expected: `TaskOptions.expectedType`; the default is nil.
    ///   - now: for a `Retry-After` with a date.
    package static func error(
        _ name: String, _ head: ResponseHead, expected: String? = nil, now: Date = Date()
    ) -> DownloadError? {
        let field = head.first("Content-Type")
        // Most answers have another type, and need no look at the name.
        guard expected != nil || field.map(mayBePage) == true && isBinary(name) else { return nil }
        let sent = field.map(mediaType)
        if let expected, expected != "file" { return mismatch(sent, mediaType(expected), head, now) }
        guard let type = sent, isPage(type) else { return nil }
        return refusal(
            "The server sent a web page (\(type)) instead of the file \(name): perhaps a login or an error page. Open the URL "
                + "in a browser, and give the login or cookie that it wants.",
            head, now)
    }

    /// A server that says when it can be asked again sends this page for a while only.
    private static func refusal(_ message: String, _ head: ResponseHead, _ now: Date) -> DownloadError {
        let wait = RetryRules.retryAfter(of: head, now: now)
        return DownloadError(
            .protocolViolation, message, url: head.redirects > 0 ? head.url.masked : nil,
            isRetryable: wait != nil, retryAfter: wait)
    }

    private static func mismatch(
        _ sent: String?, _ expected: String, _ head: ResponseHead, _ now: Date
    ) -> DownloadError? {
        let range = expected.hasSuffix("/*") ? String(expected.dropLast()) : nil
        guard sent != expected, range.map({ sent?.hasPrefix($0) != true }) ?? true else { return nil }
        let found = sent.map { "The server sent \($0)" } ?? "The server does not say which type it sends"
        return refusal("\(found), and \(expected) is expected.", head, now)
    }

    /// False for a type without the letter `h`, which both types of pages have.
    private static func mayBePage(_ field: String) -> Bool { field.utf8.contains { $0 | 0x20 == UInt8(ascii: "h") } }

    private static func isPage(_ type: String) -> Bool { type == "text/html" || type == "application/xhtml+xml" }

    /// True for a name with the extension of a file that is never a web page.
    package static func isBinary(_ name: String) -> Bool {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else { return false }
        return binaryExtensions.contains(name[name.index(after: dot)...].lowercased())
    }

    private static func mediaType(_ value: String) -> String {
        let type = value.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") }
        return String(decoding: type.filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }, as: UTF8.self)
            .lowercased()
    }
}
