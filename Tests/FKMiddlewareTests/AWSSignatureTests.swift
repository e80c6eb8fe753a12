import TestSupport
import Testing

@testable import FKMiddleware

@Suite("AWS Signature Version 4")
struct AWSSignatureTests {
    private static let keys = AWSCredentials(
        accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    /// 2013-05-24T00:00:00Z
    private static let time = Date(timeIntervalSince1970: 1_369_353_600)

    private func signed(
        _ url: String, provider: String = "aws:amz", _ keys: AWSCredentials = keys
    ) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: url)))
        try AWSSignature(provider).sign(&request, keys, at: Self.time)
        return request
    }

    private func authorization(_ request: URLRequest) -> String {
        request.value(forHTTPHeaderField: "Authorization") ?? ""
    }

    /// The first two are AWS's own examples; the others are botocore's.
    @Test(
        "the signature is AWS's",
        arguments: [
            (
                "https://examplebucket.s3.amazonaws.com/?lifecycle", "",
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
            ),
            (
                "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", "",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
            ),
            (
                "https://examplebucket.s3.amazonaws.com:443?prefix=J&max-keys=2", "",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
            ),
            (
                "http://127.0.0.1:9000/bucket/a%20b+c%c3%a9/x~y?list-type=2&prefix=a/b&A", "",
                "841921c6fc5e6ae9b7b9b09e822636d25a62c40ad2a273c718a905447568f42e"
            ),
            (
                "https://examplebucket.s3.amazonaws.com/a", "Tok/en+=",
                "018a5ab6e12ee56603400383efe39d1560110dab82ed967671a923c39b28d0f8"
            ),
        ])
    func vector(url: String, token: String, signature: String) throws {
        var keys = Self.keys
        if !token.isEmpty { keys.sessionToken = token }
        let request = try signed(url, keys)
        let names = "host;x-amz-content-sha256;x-amz-date" + (token.isEmpty ? "" : ";x-amz-security-token")
        #expect(
            authorization(request)
                == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                + "SignedHeaders=\(names), Signature=\(signature)")
        #expect(request.value(forHTTPHeaderField: "x-amz-date") == "20130524T000000Z")
        #expect(request.value(forHTTPHeaderField: "x-amz-security-token") == (token.isEmpty ? nil : token))
    }

    @Test("the region is the provider's, the credentials', or that of the host's name")
    func region() throws {
        var keys = Self.keys
        let host = "https://b.s3.eu-west-1.amazonaws.com/a"
        #expect(authorization(try signed(host)).contains("/eu-west-1/s3/"))
        keys.region = "ap-south-1"
        #expect(authorization(try signed(host, keys)).contains("/ap-south-1/s3/"))
        let named = authorization(try signed(host, provider: "aws:amz:us-west-2:es", keys))
        #expect(named.contains("/us-west-2/es/aws4_request"))
        let other = try signed("https://h/a", provider: "Test:Try", keys)
        #expect(authorization(other).hasPrefix("TEST4-HMAC-SHA256 Credential="))
        #expect(authorization(other).contains("/test4_request") && other.value(forHTTPHeaderField: "x-try-date") != nil)
        for text in ["", ":amz", "aws:", "a:b:c:d:e", "aws:amz\r\n"] {
            #expect(throws: DownloadError.self) { try AWSSignature(text) }
        }
    }

    @Test("credentials are the variables', else those of the profile; without any the message names both places")
    func usual() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(
            Array(
                """
                # comment
                [default]
                aws_access_key_id = A
                aws_secret_access_key=B=
                [other]
                aws_access_key_id=C
                aws_secret_access_key=D
                aws_session_token = E
                region = eu-north-1
                """.utf8), to: "credentials")
        var variables = ["AWS_SHARED_CREDENTIALS_FILE": file.path, "HOME": folder.path]
        #expect(
            try AWSCredentials.usual(environment: variables)
                == AWSCredentials(accessKeyID: "A", secretAccessKey: "B="))
        variables["AWS_PROFILE"] = "other"
        let other = try AWSCredentials.usual(environment: variables)
        #expect(
            other == AWSCredentials(accessKeyID: "C", secretAccessKey: "D", sessionToken: "E", region: "eu-north-1"))
        variables.merge(["AWS_ACCESS_KEY_ID": "X", "AWS_SECRET_ACCESS_KEY": "Y", "AWS_REGION": "r-1"]) { $1 }
        #expect(
            try AWSCredentials.usual(environment: variables)
                == AWSCredentials(accessKeyID: "X", secretAccessKey: "Y", region: "r-1"))
        let error = #expect(throws: DownloadError.self) {
            try AWSCredentials.usual(environment: ["HOME": folder.path, "AWS_PROFILE": "p"])
        }
        #expect(error?.message.contains("AWS_ACCESS_KEY_ID") == true && error?.message.contains("[p]") == true)
    }

    @Test("the middleware signs each attempt, and keeps its fields from other origins")
    func middleware() async throws {
        let middleware = try AWSSignatureMiddleware { _ in Self.keys }
        let task = try context("https://h/a")
        let request = try await middleware.process(URLRequest(url: task.originalURL), for: task)
        #expect(authorization(request).contains("Signature="))
        #expect(middleware.secretHeaders == ["Authorization", "x-amz-security-token"])
    }
}
