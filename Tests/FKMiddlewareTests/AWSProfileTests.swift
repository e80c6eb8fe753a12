import TestSupport
import Testing

@testable import FKMiddleware

@Suite("Profiles of AWS's files") struct AWSProfileTests {
    @Test("the file of credentials counts before the configuration, and groups are left out") func files() throws {
        let folder = try TemporaryFolder()
        let credentials = try folder.write(
            Array("[lab]\naws_access_key_id=A\naws_secret_access_key = B\nregion=r-2\n".utf8), to: "credentials")
        let config = try folder.write(
            Array(
                """
                [default]
                region = r-0
                [lab]
                region = wrong
                [profile lab]
                region = r-1
                s3 =
                  region = inner
                  max_concurrent_requests = 2
                credential_process = "/opt/p" --x y
                """.utf8), to: "config")
        var variables = [
            "AWS_SHARED_CREDENTIALS_FILE": credentials.path, "AWS_CONFIG_FILE": config.path, "AWS_PROFILE": "lab",
        ]
        let profile = try AWSProfile(in: variables)
        #expect(profile.values["region"] == "r-2" && profile.values["credential_process"] == "\"/opt/p\" --x y")
        #expect(profile.values["max_concurrent_requests"] == nil)
        #expect(profile.keys == AWSCredentials(accessKeyID: "A", secretAccessKey: "B", region: "r-2"))
        variables["AWS_REGION"] = "r-9"
        #expect(try AWSCredentials.region(variables) == "r-9" && AWSProfile(in: variables).keys?.region == "r-9")
        variables["AWS_PROFILE"] = "default"
        #expect(try AWSProfile(in: variables).values == ["region": "r-0"])
        #expect(throws: DownloadError.self) { try AWSProfile(in: ["AWS_CONFIG_FILE": "/nonexistent/x"]) }
    }

    @Test("fields of the store's own are signed too") func ownFields() throws {
        let keys = AWSCredentials(accessKeyID: "A", secretAccessKey: "B")
        var request = URLRequest(url: try #require(URL(string: "https://b.s3.amazonaws.com/k")))
        request.setValue("requester", forHTTPHeaderField: "x-amz-request-payer")
        let fields = try AWSSignature("aws:amz").fields(
            for: request, keys, at: Date(timeIntervalSince1970: 1_369_353_600))
        let login = fields.first { $0.name == "Authorization" }?.value ?? ""
        #expect(login.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-request-payer,"))
        #expect(
            !fields.contains { $0.name.lowercased() == "x-amz-request-payer" }, "it is a field of the request already")
    }
}
