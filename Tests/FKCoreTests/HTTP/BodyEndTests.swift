import FKMiddleware
import FKModel
import Testing

@testable import FKTransport

/// What the end of a body proves, cell by cell.
@Suite("The end of a body")
struct BodyEndTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var framing: BodyFraming?
        var delivered: Int64 = 0
        var isHTTP2 = false
        var closeNotify: Int32 = -1
        var sawGoAway = false
        var isHEAD = false
        var isKept = false
        var isShared = false
        /// nil: the body is cut.
        var isVerified: Bool?
    }

    static let rows = [
        Row(testDescription: "no head", framing: nil),
        Row(testDescription: "a length that libcurl checks", framing: .length(5), delivered: 5, isVerified: true),
        Row(
            testDescription: "a length that is counted here", framing: .countedLength(5), delivered: 5, isVerified: true
        ),
        Row(testDescription: "a byte less than the counted length", framing: .countedLength(5), delivered: 4),
        Row(testDescription: "HEAD with a length", framing: .countedLength(5), isHEAD: true, isVerified: true),
        Row(testDescription: "chunks", framing: .delimited, delivered: 5, isVerified: true),
        Row(testDescription: "until the connection closes, plain", framing: .untilClose, isVerified: false),
        Row(testDescription: "TLS with a close notification", framing: .untilClose, closeNotify: 1, isVerified: false),
        Row(testDescription: "TLS without one", framing: .untilClose, closeNotify: 0),
        Row(testDescription: "HEAD over TLS without one", framing: .untilClose, closeNotify: 0, isHEAD: true),
        Row(
            testDescription: "a stream, connection kept", framing: .delimited, isHTTP2: true, isKept: true,
            isVerified: true),
        Row(testDescription: "a stream, connection closed", framing: .delimited, isHTTP2: true),
        Row(
            testDescription: "a stream, closed after GOAWAY", framing: .delimited, isHTTP2: true, sawGoAway: true,
            isVerified: false),
        Row(
            testDescription: "a stream, connection shared", framing: .delimited, isHTTP2: true, isShared: true,
            isVerified: false),
        Row(testDescription: "HEAD over HTTP/2", framing: .delimited, isHTTP2: true, isHEAD: true, isVerified: true),
        Row(
            testDescription: "HTTP/2 with a length", framing: .length(5), delivered: 5, isHTTP2: true, isVerified: true),
    ]

    @Test("each end is proven, unknown or cut", arguments: rows)
    func verdict(row: Row) {
        var end = BodyEnd()
        end.meter.framing = row.framing
        end.meter.record(Int(row.delivered))
        (end.isHTTP2, end.closeNotify, end.sawGoAway) = (row.isHTTP2, row.closeNotify, row.sawGoAway)
        let verdict = end.verdict(isHEAD: row.isHEAD, keepsConnection: row.isKept, isShared: row.isShared)
        if let isVerified = row.isVerified {
            #expect(verdict == .complete(lengthVerified: isVerified))
        } else {
            var found: DownloadError.Code?
            if case .cut(let code, _) = verdict { found = code }
            #expect(found == (row.framing == nil ? .connectionLost : .incompleteBody))
        }
    }
}
