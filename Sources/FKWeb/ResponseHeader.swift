import FKMiddleware
import FKRPC

struct ResponseHeader {
    let status: Int
    let type: String?
    let length: Int
    let request: WebRequest
    /// True if the origin of the request may read the answer.
    let isAllowed: Bool
    let closes: Bool
    let isPage: Bool

    /// What the page may load: its own files, and the RPC.
    static let contentPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

    private static let reasons: [Int: String] = [
        200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 411: "Length Required",
        413: "Content Too Large", 426: "Upgrade Required", 431: "Request Header Fields Too Large",
        500: "Internal Server Error", 505: "HTTP Version Not Supported",
    ]

    var text: String {
        var lines = ["HTTP/1.1 \(status) \(Self.reasons[status] ?? "Error")", "Content-Length: \(length)"]
        if let type { lines.append("Content-Type: \(type)") }
        lines.append("Cache-Control: no-cache")
        lines.append("X-Content-Type-Options: nosniff")
        if isPage {
            lines.append("Content-Security-Policy: \(Self.contentPolicy)")
            lines.append("Referrer-Policy: no-referrer")
        }
        if isAllowed, let origin = request["origin"], Self.isPlain(origin) {
            lines.append("Access-Control-Allow-Origin: \(origin)")
            lines.append("Vary: Origin")
            if request.method == "OPTIONS" {
                lines.append("Access-Control-Allow-Methods: POST, GET, OPTIONS")
                lines.append("Access-Control-Max-Age: 1728000")
                if let names = request["access-control-request-headers"], Self.isPlain(names) {
                    lines.append("Access-Control-Allow-Headers: \(names)")
                }
            }
        }
        if status == 426 { lines += ["Upgrade: websocket", "Sec-WebSocket-Version: 13"] }
        lines.append("Connection: \(closes ? "close" : "keep-alive")")
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static func isPlain(_ text: String) -> Bool {
        text.isFieldValue && text.utf8.allSatisfy { $0 < 0x7f }
    }
}
