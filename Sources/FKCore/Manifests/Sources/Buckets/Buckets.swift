import FKMiddleware
import Foundation

/// The buckets of object stores: S3 and compatible servers, Google's and Azure's.
///
/// Requests are signed if the owner has credentials for the store, and only those to the bucket. Each object is bound to the entity tag of
/// the listing: another object under its key is an error, until the bucket is listed again.
struct Buckets: Source {
    var schemes: [String] { BucketPlace.Store.allCases.map(\.rawValue) }
    var form: String { BucketPlace.Store.allCases.map(\.form).joined(separator: ", ") }

    func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace {
        let bucket = try BucketPlace(parsing: reference.description)
        let region = bucket.store == .s3 ? try BucketAccess.region(environment) : nil
        let server = try BucketServer(bucket, region: region, in: environment)
        let name = bucket.key.split(separator: "/").last.map(String.init) ?? bucket.bucket
        return SourcePlace(
            reference, title: bucket.description, folderName: name, address: server.base, pinsFiles: true)
    }

    func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            let bucket = try BucketPlace(parsing: place.reference.description)
            var access = try await BucketAccess(bucket, client)
            if client.choice.isSingle || bucket.versionID != nil {
                try await send(access.single())
            } else {
                while let page = try await access.next() { try await send(page) }
            }
        }
    }
}

/// Lists a bucket, and finds out how it has to be asked.
struct BucketAccess {
    /// How often the list may name objects of an earlier page before it counts as endless.
    private static let maxEmptyPages = 100

    private let bucket: BucketPlace
    private let client: SourceClient
    private var server: BucketServer
    private let isSigned: Bool
    private var hasMoved = false
    /// True once credentials that had ended were replaced.
    private var hasRenewed = false
    private var token: String?
    private var tokens: Set<String> = []
    private var isAtEnd = false
    private var emptyPages = 0
    private var hasFiles = false

    init(_ bucket: BucketPlace, _ client: SourceClient) async throws(DownloadError) {
        self.bucket = bucket
        self.client = client
        let region = bucket.store == .s3 ? try Self.region(client.environment) : nil
        server = try BucketServer(bucket, region: region, in: client.environment)
        isSigned =
            bucket.store == .s3 && !client.choice.isAnonymous ? try await client.hasAWSCredentials() : false
    }

    /// The region of the environment.
    ///
    /// - Throws: `.invalidArgument` for a text that cannot be one.
    static func region(_ environment: [String: String]) throws(DownloadError) -> String? {
        guard let region = try AWSCredentials.region(environment) else { return nil }
        guard BucketServer.isRegion(region) else {
            throw DownloadError(.invalidArgument, "'\(region.visible)' is no region of AWS (AWS_REGION).")
        }
        return region
    }

    // MARK: Pages

    /// The next page; nil at the end.
    mutating func next() async throws(DownloadError) -> SourcePage? {
        while !isAtEnd {
            let list = try await list(bucket.prefix, token)
            isAtEnd = list.next == nil
            if let next = list.next {
                guard tokens.insert(next).inserted else { throw endless("it repeats a page") }
                token = next
            }
            emptyPages = list.objects.isEmpty ? emptyPages + 1 : 0
            guard emptyPages <= Self.maxEmptyPages else { throw endless("its pages have no objects any more") }
            if list.objects.isEmpty, list.folderCount == 0 {
                if isAtEnd, !hasFiles, let single = try await object() { return page([single], named: nil) }
                continue
            }
            hasFiles = true
            return page(list.objects, named: bucket.prefix)
        }
        return nil
    }

    private func endless(_ reason: String) -> DownloadError {
        DownloadError(.protocolViolation, "The list of objects does not end: \(reason).", url: server.base)
    }

    /// The object whose key is the name of the folder itself; nil if there is none.
    ///
    /// - Throws: `.notFound` if there is nothing of this name.
    private mutating func object() async throws(DownloadError) -> BucketPage.Object? {
        guard !bucket.key.isEmpty, !bucket.key.hasSuffix("/") else { return nil }
        let found = try await list(bucket.key, nil, size: 1).objects.first { $0.key.isExactly(bucket.key) }
        guard let found else {
            throw DownloadError(
                .notFound, "There is neither a folder nor an object '\(bucket.key.visible)' in the bucket.",
                url: server.base)
        }
        return found
    }

    /// - Parameter prefix: the beginning of all keys, which is no part of the names; nil names a single object by its last part.
    private func page(_ objects: [BucketPage.Object], named prefix: String?) -> SourcePage {
        var page = SourcePage()
        for object in objects {
            let name: String
            if let prefix {
                guard object.key.utf8.starts(with: prefix.utf8) else {
                    page.faults.append(SourceFault(object.key, "the key is not below the folder", isIncomplete: false))
                    continue
                }
                name = String(Substring(object.key.utf8.dropFirst(prefix.utf8.count)))
            } else {
                name = object.key.split(separator: "/").last.map(String.init) ?? object.key
            }
            if let part = BucketPlace.dotPart(of: object.key) {
                page.faults.append(
                    SourceFault(name, "its key has the part '\(part)', which no address can have", isIncomplete: false))
                continue
            }
            page.files.append(file(object, name))
        }
        page.orders = orders
        return page
    }

    private func file(_ object: BucketPage.Object, _ name: String) -> Manifest.FileFacts {
        var file = Manifest.FileFacts(
            name: name, sources: [.init(server.object(object.key, versionID: bucket.versionID))])
        file.size = object.size
        file.digests = object.digests
        file.entityTag = object.entityTag
        file.version = object.entityTag ?? object.modified.map { "\($0) \(object.size ?? -1)" }
        file.modified = object.modified.map { Date(timeIntervalSince1970: Double($0)) }
        return file
    }

    /// What the owner's credentials mean for the files.
    private var orders: SourcePage.Orders {
        var orders = SourcePage.Orders(address: server.base)
        if isSigned {
            orders.signature = signature
            orders.attributes[SourcePage.Orders.tokenAttribute] = server.store.rawValue
        }
        orders.headers = requestPayer
        if server.store != .s3, BucketToken.isThere(server.store, client.environment) {
            orders.attributes[SourcePage.Orders.tokenAttribute] = server.store.rawValue
        }
        return orders
    }

    private var signature: String { "aws:amz:\(server.region ?? "us-east-1"):s3" }

    /// The owner of the credentials pays for the requests (`AWS_REQUEST_PAYER=requester`).
    private var requestPayer: [HeaderField] {
        guard isSigned, client.environment["AWS_REQUEST_PAYER"]?.lowercased() == "requester" else { return [] }
        return [HeaderField("x-amz-request-payer", "requester")]
    }

    /// One object, by its head: reading it may be allowed where listing is not.
    mutating func single() async throws(DownloadError) -> SourcePage {
        guard !bucket.key.isEmpty, !bucket.key.hasSuffix("/") else {
            throw DownloadError(
                .invalidArgument,
                "\(bucket.description) names no object, but a bucket or a folder: give -r for all of its objects.")
        }
        let answer = try await ask { [bucket] in
            $0.object(bucket.key, versionID: bucket.versionID)
        } _: {
            $0.isWanted = { _ in false }
        }
        var object = BucketPage.Object(key: bucket.key)
        object.entityTag = answer.head.first("ETag").flatMap { BucketPage.quoted($0) }
        object.size = try? ContentLength.parse(answer.head)
        object.modified = answer.head.first("Last-Modified").flatMap { HTTPDate.parse($0) }.map {
            Int64($0.timeIntervalSince1970)
        }
        return page([object], named: nil)
    }

    // MARK: Requests

    private mutating func list(
        _ prefix: String, _ token: String?, size: Int = BucketServer.pageSize
    ) async throws(DownloadError) -> BucketPage {
        let answer = try await ask { $0.list(prefix, after: token, size: size) }
        do throws(AnswerFault) { return try BucketPage(answer.bytes) } catch {
            throw DownloadError(
                .protocolViolation, "The answer is no listing of a bucket: \(error.reason).",
                url: answer.head.url.masked)
        }
    }

    /// Sends a request. A bucket of S3 in another region is asked there, once.
    private mutating func ask(
        _ url: (BucketServer) -> String, _ change: (inout SourceRequest) -> Void = { _ in }
    ) async throws(DownloadError) -> SourceAnswer {
        while true {
            var request = SourceRequest(BucketToken.url(url(server), server, client.environment))
            request.statuses = [200, 203, 301, 307, 400, 401, 403, 404]
            request.readsErrors = true
            if isSigned { request.signature = (signature, server.base) }
            request.headers = requestPayer
            if server.store == .az { request.headers.append(HeaderField("x-ms-version", "2021-12-02")) }
            if let field = BucketToken.field(server.store, client.environment) {
                request.secrets = [SourceSecret(field, for: server.base)]
            }
            change(&request)
            let answer = try await client.get(request)
            if answer.head.status == 200 || answer.head.status == 203 { return answer }
            let refusal = BucketRefusal(answer.bytes)
            if isSigned, !hasRenewed, AWSCredentialBook.endedCodes.contains(refusal.code) {
                hasRenewed = true
                AWSCredentialBook.shared.recordRefusal()
                if try await client.hasAWSCredentials() { continue }
            }
            let named = answer.head.first("x-amz-bucket-region").flatMap { BucketServer.isRegion($0) ? $0 : nil }
            let region = named ?? refusal.region
            if server.store == .s3, !hasMoved, let region, region != server.region {
                hasMoved = true
                server = try BucketServer(bucket, region: region, in: client.environment)
                continue
            }
            throw error(answer.head, refusal)
        }
    }

    /// What is missing for signed requests, as a clause.
    private var credentialAdvice: String {
        let usual = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        guard !client.choice.isAnonymous, let name = client.environment["AWS_PROFILE"], !name.isEmpty else {
            return usual
        }
        guard let profile = try? AWSProfile(in: client.environment), !profile.values.isEmpty else {
            return "there is no profile '\(name.visible)' (AWS_PROFILE)"
        }
        return "the profile '\(name.visible)' has neither keys nor a credential_process"
    }

    /// The error for a request that the store refuses.
    private func error(_ head: ResponseHead, _ refusal: BucketRefusal) -> DownloadError {
        var error = RetryRules.error(for: head, now: Date())
        let said = refusal.code.isEmpty ? "" : " (\(refusal.code.visible): \(refusal.message.visible))"
        let name = bucket.store == .az ? "container" : "bucket"
        if head.status == 404 { error.code = .notFound }
        switch head.status {
        case 404 where refusal.code.hasPrefix("NoSuchKey") || refusal.code == "BlobNotFound" || client.choice.isSingle:
            error.message = "The \(name) '\(bucket.bucket)' has no object '\(bucket.key.visible)', or is missing"
        // Azure says so of a container that nobody may read without a signature.
        case 404 where bucket.store == .az:
            error.message =
                "There is no container '\(bucket.bucket)', or it needs a signature (AZURE_STORAGE_SAS_TOKEN)"
        case 404: error.message = "There is no \(name) '\(bucket.bucket)'"
        case 401 where bucket.store == .s3 && !isSigned, 403 where bucket.store == .s3 && !isSigned:
            error.message =
                "The bucket '\(bucket.bucket)' does not let everybody read it: " + credentialAdvice
            error.remedy = nil
        case 400...403 where refusal.code == "RequestTimeTooSkewed":
            error.message =
                "The server's clock and this machine's differ by more than the server accepts: set the clock of this machine"
        case 400...403 where ["SignatureDoesNotMatch", "InvalidAccessKeyId"].contains(refusal.code):
            error.message =
                "The server does not accept the credentials for the bucket '\(bucket.bucket)': the "
                + (refusal.code == "InvalidAccessKeyId" ? "access key is unknown there" : "secret key is wrong")
                + ". A public bucket may be read with --anonymous"
            error.remedy = nil
        case 401 where bucket.store == .s3, 403 where bucket.store == .s3:
            error.message =
                "The credentials do not allow reading the bucket '\(bucket.bucket)'. A public bucket may be read with --anonymous, "
                + "and one whose requester pays with AWS_REQUEST_PAYER=requester"
            error.remedy = nil
        case 401, 403:
            let variable = bucket.store == .gs ? "GOOGLE_OAUTH_ACCESS_TOKEN" : "AZURE_STORAGE_SAS_TOKEN"
            let isSet = BucketToken.isThere(bucket.store, client.environment)
            error.message =
                "The \(name) '\(bucket.bucket)' may not be read"
                + (isSet ? " with the token of \(variable)" : ": set \(variable)")
            error.remedy = nil
        default: error.message = String(error.message.dropLast())
        }
        error.message += "\(said)."
        error.url = server.base.masked
        return error
    }
}

/// The tokens of Google's and Azure's stores.
enum BucketToken {
    /// The field with Google's token: `GOOGLE_OAUTH_ACCESS_TOKEN` or `CLOUDSDK_AUTH_ACCESS_TOKEN`; nil without one.
    static func field(_ store: BucketPlace.Store, _ environment: [String: String]) -> HeaderField? {
        guard store == .gs else { return nil }
        let names = ["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"]
        let token = names.lazy.compactMap { environment[$0].flatMap(SourceSecret.token) }.first
        return token.map { HeaderField("Authorization", "Bearer \($0)") }
    }

    /// The URL with Azure's shared access signature (`AZURE_STORAGE_SAS_TOKEN`), if it is one of the container.
    static func url(_ url: String, _ server: BucketServer, _ environment: [String: String]) -> String {
        guard server.store == .az, let query = signature(environment) else { return url }
        return url + (url.contains("?") ? "&" : "?") + query
    }

    static func isThere(_ store: BucketPlace.Store, _ environment: [String: String]) -> Bool {
        store == .az ? signature(environment) != nil : field(store, environment) != nil
    }

    /// The query of the shared access signature; nil without one.
    static func signature(_ environment: [String: String]) -> String? {
        guard let text = environment["AZURE_STORAGE_SAS_TOKEN"].flatMap(SourceSecret.token) else { return nil }
        let query = text.hasPrefix("?") ? String(text.dropFirst()) : text
        return query.isEmpty || query.contains("#") ? nil : query
    }
}

extension SourceClient {
    /// True if the owner has credentials of AWS. Those of a server or a program are asked for.
    func hasAWSCredentials() async throws(DownloadError) -> Bool {
        try await AWSCredentialFinder(environment).renew(over: transport, connection)
    }
}
