import FKMiddleware
import Foundation

/// Sends Google's token, or Azure's shared access signature, with requests for the objects of a bucket. They are added to each request and
/// never stored.
package struct BucketMiddleware: RequestMiddleware {
    package let name: String
    private let store: BucketPlace.Store
    private let environment: [String: String]
    /// The origin of the store; nil for Azure's accounts, which have hosts of their own.
    private let origin: URLOrigin?

    package static func all(_ environment: [String: String]) -> [BucketMiddleware] {
        var all: [BucketMiddleware] = []
        if BucketToken.field(.gs, environment) != nil {
            all += [Self("google-token", .gs, environment)].compactMap(\.self)
        }
        if BucketToken.signature(environment) != nil {
            all += [Self("azure-token", .az, environment)].compactMap(\.self)
        }
        return all
    }

    private init?(_ name: String, _ store: BucketPlace.Store, _ environment: [String: String]) {
        guard let place = try? BucketPlace(parsing: store == .gs ? "gs://bucket" : "az://account/container"),
            let server = try? BucketServer(place, in: environment)
        else { return nil }
        self.name = name
        self.store = store
        self.environment = environment
        let isUsual = store == .az && (environment["AZURE_STORAGE_SERVICE_ENDPOINT"] ?? "").isEmpty
        origin = isUsual ? nil : URLOrigin(server.base)
    }

    /// Only tasks of a bucket that the owner has named come to it.
    package var scope: MiddlewareScope {
        .matching { [store] in $0.attributes[SourcePage.Orders.tokenAttribute] == store.rawValue }
    }

    package var secretHeaders: [String] { ["Authorization"] }

    /// Adds the token to a request to the store that has none.
    package func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard let url = request.url?.absoluteString, isStore(url),
            URLOrigin(url) == URLOrigin(task.originalURL.absoluteString)
        else { return request }
        var request = request
        if let field = BucketToken.field(store, environment) {
            if request.value(forHTTPHeaderField: field.name) == nil {
                request.setValue(field.value, forHTTPHeaderField: field.name)
            }
        } else if let query = BucketToken.signature(environment), URLParts(url).query?.contains("sig=") != true,
            let signed = URL(string: url + (url.contains("?") ? "&" : "?") + query)
        {
            request.url = signed
        }
        return request
    }

    private func isStore(_ url: String) -> Bool {
        guard let target = URLOrigin(url) else { return false }
        if let origin { return target == origin }
        return target.scheme == "https" && target.host.hasSuffix(".blob.core.windows.net")
    }
}

/// Refuses to sign a request for an object of S3 at another server than the one that the environment's credentials are for. The keys of one
/// run may be others than those of the run that has listed the bucket.
package struct BucketServerMiddleware: RequestMiddleware {
    package let name = "bucket-server"
    /// The server that the environment names; nil for Amazon's.
    private let endpoint: URLOrigin?

    package init(_ environment: [String: String]) {
        // A bucket cannot be listed at an endpoint that is no URL.
        endpoint = (try? BucketServer.endpointOfS3(in: environment)).flatMap { URLOrigin($0) }
    }

    /// Only signed tasks of a bucket come to it.
    package var scope: MiddlewareScope {
        .matching { $0.isSigned && $0.attributes[SourcePage.Orders.tokenAttribute] == BucketPlace.Store.s3.rawValue }
    }

    /// Leaves the request as it is.
    package func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard let url = request.url?.absoluteString, let origin = URLOrigin(url) else { return request }
        guard endpoint.map({ $0 == origin }) ?? origin.isAmazon else {
            throw DownloadError(
                .invalidArgument,
                "The credentials of process \(getpid()), which runs the downloads, are not for \(origin.scheme)://\(URLParts(url).hostPort): "
                    + "its AWS_ENDPOINT_URL names another server, or none. Start that process with the variable as it was when the "
                    + "bucket was listed.")
        }
        return request
    }
}
