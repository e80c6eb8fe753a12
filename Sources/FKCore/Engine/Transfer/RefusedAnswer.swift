import FKMiddleware

/// A response with an error status. The start of its body often gives the reason. It is never written to the part file.
struct RefusedAnswer {
    /// The bytes of the body that are kept.
    private static let most = 512
    private let error: DownloadError
    private var body: [UInt8] = []

    init(_ error: DownloadError) { self.error = error }

    mutating func append(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        body.append(contentsOf: bytes.prefix(Self.most - body.count))
        return body.count < Self.most ? .consumed : .fail(error)
    }

    /// The error, with the text of the body.
    func explained(by head: ResponseHead?, _ echo: EchoMasking) -> DownloadError {
        var error = error
        // A body with a content coding is not readable text.
        let isText = head?.contentCoding == nil || String(validating: body, as: UTF8.self) != nil
        error.underlying = isText ? ErrorPage.text(body).map { echo.mask($0, url: head?.url) } : nil
        return error
    }
}
