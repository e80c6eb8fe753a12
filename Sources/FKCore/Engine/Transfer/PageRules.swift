import FKMiddleware
import Foundation

/// Decides whether an answer is a web page in the place of a file, such as a login form.
///
/// | the file's name | Content-Type `text/html` or `application/xhtml+xml` |
/// | --- | --- |
/// | an archive, image, medium, package or document (`a.zip`, `a.tar.gz`) | refused |
/// | without an extension, or with another one (`a`, `a.html`, `a.php`, `a.txt`) | accepted |
///
/// An expected type decides alone: `file` refuses a page under every name, and a type such as `application/zip` or `image/*`
/// every other one. Without one, other types than pages are accepted: many servers send `text/plain` or nothing for files that they do not know.
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

    /// The error for a page in the place of a file; nil if the answer may be the file.
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
            .protocolViolation, message, url: head.redirects > 0 ? URLMasking.mask(head.url) : nil,
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
