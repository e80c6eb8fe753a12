import FKCore
import FKManifests
import FKMiddleware

/// Small files beside a file, which describe it: its signature and its digests.
enum NearbyFile {
    /// True for a URL, false for a path.
    static func isURL(_ place: String) -> Bool { place.urlFault == nil }

    /// The place with a suffix. In a URL, the suffix stands before the query.
    static func adding(_ suffix: String, to place: String) -> String {
        guard isURL(place), let end = place.firstIndex(where: { $0 == "?" || $0 == "#" }) else { return place + suffix }
        return place[..<end] + suffix + place[end...]
    }

    /// - Parameter subject: the URL of the file that it describes. The header fields of `-H`, the cookies and the signature are for
    ///   that server and go to no other. The place itself is named by the owner, so the login that `~/.netrc` has for its host counts.
    static func fetch(
        _ place: String, beside subject: String?, _ options: TaskOptions, limit: Int, over transport: any Transport
    ) async throws -> [UInt8] {
        try await answer(of: place, beside: subject, options, limit: limit, over: transport).bytes ?? []
    }

    /// The same, with the URL that answered.
    static func answer(
        of place: String, beside subject: String?, _ options: TaskOptions, limit: Int, over transport: any Transport
    ) async throws -> DocumentRequest.Answer {
        var request = DocumentRequest(url: try place.normalizedURL(), options: options)
        let origin = URLOrigin(request.url)
        if let subject, options.secretOrigin(of: subject) == origin {
            request.headers = options.headers ?? []
            request.secretHeaders = Set((options.secretHeaders ?? []).map { $0.lowercased() })
        } else {
            request.options.cookiePath = nil
            request.options.awsSignature = nil
        }
        request.origin = origin
        request.limit = limit
        return try await request.fetch(over: transport)
    }
}
