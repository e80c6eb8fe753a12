import FKMiddleware
import Foundation

extension TransportOptions {
    /// Reads the lines with a cookie of a `cookieFile` of at most 16 MiB. libcurl parses them.
    ///
    /// - Throws: `.invalidArgument` if the file cannot be read, or if it has lines and none is a cookie in Netscape's form. The
    ///   message has no line of the file.
    package static func cookies(in path: String) throws(DownloadError) -> [String] {
        let bytes = try [UInt8](ofFile: path, limit: 16 << 20, named: "cookie file")
        let lines = bytes.split { $0 == 0x0a || $0 == 0x0d }
        let cookies = lines.filter(isCookie)
        if cookies.isEmpty, lines.contains(where: { !isComment($0) }) {
            throw DownloadError(
                .invalidArgument,
                "The cookie file \(path.visible) has no cookie in Netscape's form: seven fields with tabs between them."
            )
        }
        return cookies.map { String(decoding: $0, as: UTF8.self) }
    }

    /// True for seven fields, or six and an empty value. Other lines could be commands of `CURLOPT_COOKIELIST`, or
    /// `Set-Cookie` fields without a domain.
    private static func isCookie(_ line: ArraySlice<UInt8>) -> Bool {
        let tabs = line.count { $0 == 0x09 }
        return (5...6).contains(tabs) && !line.contains(0) && !isComment(line)
    }

    private static func isComment(_ line: ArraySlice<UInt8>) -> Bool {
        line.allSatisfy { $0 == 0x20 || $0 == 0x09 }
            || (line.first == UInt8(ascii: "#") && !line.starts(with: "#HttpOnly_".utf8))
    }
}
