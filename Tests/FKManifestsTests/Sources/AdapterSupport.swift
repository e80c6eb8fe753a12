import TestSupport
import Testing

@testable import FKManifests

/// Answers of a store, a registry or an API, as they are recorded. Each has the form of its public documentation; the values are made up.
enum StoreAnswers {
    /// ListObjectsV2 of Amazon S3 with `encoding-type=url`.
    static let s3 = """
        <?xml version="1.0" encoding="UTF-8"?>
        <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix>data/</Prefix>\
        <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken><KeyCount>3</KeyCount>\
        <MaxKeys>3</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
        <Contents><Key>data/</Key><LastModified>2024-05-01T10:00:00.000Z</LastModified><ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag>\
        <Size>0</Size><StorageClass>STANDARD</StorageClass></Contents>\
        <Contents><Key>data/a+b%2Bc%25.bin</Key><LastModified>2024-05-01T10:00:01.000Z</LastModified>\
        <ETag>&quot;9b2cf535f27731c974343645a3985328-2&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><Size>10485760</Size>\
        <Owner><ID>75aa57f0</ID></Owner><StorageClass>STANDARD</StorageClass></Contents>\
        <Contents><Key>data/%C3%BC/x.txt</Key><LastModified>2024-05-01T10:00:02.000Z</LastModified><ETag>"e2"</ETag><Size>2</Size></Contents>\
        <CommonPrefixes><Prefix>data/photos/</Prefix></CommonPrefixes></ListBucketResult>
        """

    /// Google's XML API.
    static let google = """
        <?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'><Name>pub</Name>\
        <Prefix>p/</Prefix><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated><Contents><Key>p/a b.bin</Key>\
        <Generation>1714557600000000</Generation><MetaGeneration>1</MetaGeneration><LastModified>2024-05-01T10:00:00.000Z</LastModified>\
        <ETag>"d4dde5e419356896b5d3c4783c3fcfdd"</ETag><Size>13000</Size></Contents></ListBucketResult>
        """

    /// Azure's List Blobs.
    static let azure = """
        \u{feff}<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="https://acc.blob.core.windows.net/" \
        ContainerName="cont"><Prefix>p/</Prefix><MaxResults>3</MaxResults><Blobs><Blob><Name>p/x.bin</Name><Properties>\
        <Creation-Time>Wed, 01 May 2024 10:00:00 GMT</Creation-Time><Last-Modified>Wed, 01 May 2024 10:00:00 GMT</Last-Modified>\
        <Etag>0x8DC69C1B2A3D4E5</Etag><Content-Length>13000</Content-Length><Content-Type>application/octet-stream</Content-Type>\
        <Content-Encoding /><Content-MD5>1N3l5Bk1aJa108R4PD/P3Q==</Content-MD5><BlobType>BlockBlob</BlobType></Properties><OrMetadata />\
        </Blob><Blob><Name Encoded="true">p/%EF%BF%BE.bin</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>\
        <Blob><Name>p/dir</Name><Properties><ResourceType>directory</ResourceType><Content-Length>0</Content-Length></Properties></Blob>\
        </Blobs><NextMarker>2!76!MDAwMDE2</NextMarker></EnumerationResults>
        """

    /// A manifest of ORAS, an index of an image and a manifest of Ollama.
    static let artifact = """
        {"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.example",\
        "config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:\(hex("a"))","size":2},\
        "layers":[{"mediaType":"application/octet-stream","digest":"sha256:\(hex("b"))","size":3000000,\
        "annotations":{"org.opencontainers.image.title":"sub/model.bin"}},\
        {"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:\(hex("c"))","size":90,\
        "annotations":{"org.opencontainers.image.title":"data","io.deis.oras.content.unpack":"true"}}]}
        """
    static let index = """
        {"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[\
        {"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:\(hex("1"))","size":500,\
        "platform":{"architecture":"amd64","os":"linux"}},\
        {"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:\(hex("2"))","size":501,\
        "platform":{"architecture":"arm64","os":"linux","variant":"v8"}},\
        {"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:\(hex("3"))","size":502,\
        "platform":{"architecture":"arm","os":"linux","variant":"v7"}},\
        {"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:\(hex("4"))","size":503,\
        "platform":{"architecture":"unknown","os":"unknown"},"annotations":{"vnd.docker.reference.type":"attestation-manifest"}}]}
        """
    static let ollama = """
        {"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",\
        "config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:\(hex("a"))","size":485},\
        "layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:\(hex("b"))","size":1000},\
        {"mediaType":"application/vnd.ollama.image.license","digest":"sha256:\(hex("c"))","size":10},\
        {"mediaType":"application/vnd.ollama.image.license","digest":"sha256:\(hex("d"))","size":11},\
        {"mediaType":"application/vnd.ollama.image.params","digest":"sha256:\(hex("e"))","size":12}]}
        """

    /// A release of GitHub's API.
    static let release = """
        {"url":"https://api.github.com/repos/o/r/releases/1","tag_name":"v2.0","name":"2.0","draft":false,"prerelease":true,\
        "assets":[{"url":"https://api.github.com/repos/o/r/releases/assets/7","id":7,"name":"tool.tar.gz","label":null,"state":"uploaded",\
        "content_type":"application/gzip","size":14000,"digest":"sha256:\(hex("a"))","updated_at":"2024-05-01T10:00:00Z",\
        "browser_download_url":"https://github.com/o/r/releases/download/v2.0/tool.tar.gz"},\
        {"url":"https://api.github.com/repos/o/r/releases/assets/8","id":8,"name":"half.bin","state":"starter","size":0,"digest":null,\
        "browser_download_url":"https://github.com/o/r/releases/download/v2.0/half.bin"}],"body":"notes"}
        """
    /// The same of Gitea's.
    static let giteaRelease = """
        {"id":3,"tag_name":"v1","draft":false,"prerelease":false,"assets":[{"id":4,"name":"a.bin","size":5,"download_count":1,\
        "uuid":"x","browser_download_url":"https://git.example/o/r/releases/download/v1/a.bin"}]}
        """

    /// A file report of the European Nucleotide Archive.
    static let report =
        "run_accession\tfastq_ftp\tfastq_bytes\tfastq_md5\tsubmitted_ftp\tsubmitted_bytes\tsubmitted_md5\tsra_ftp\tsra_bytes\tsra_md5\n"
        + "ERR1\tftp.sra.ebi.ac.uk/vol1/fastq/ERR1/ERR1_1.fastq.gz;ftp.sra.ebi.ac.uk/vol1/fastq/ERR1/ERR1_2.fastq.gz\t10;20\t"
        + "\(String(repeating: "a", count: 32));\(String(repeating: "b", count: 32))\t\t\t\t\t\t\n"
        + "ERR2\t\t\t\tftp.sra.ebi.ac.uk/vol1/run/ERR2/s%231.bam\t7\t\(String(repeating: "c", count: 32))\t\t\t\n"
        + "ERR3\t\t\t\t\t\t\t\t\t\n"

    /// The metadata of an item of the Internet Archive.
    static let item = """
        {"created":1700000000,"d1":"ia800000.us.archive.org","dir":"/1/items/item1","files":[\
        {"name":"a b/x#1.mp3","source":"original","mtime":"1690000000","size":"14000","md5":"\(String(repeating: "a", count: 32))",\
        "crc32":"00000000","sha1":"\(String(repeating: "b", count: 40))","format":"VBR MP3","length":"12.3"},\
        {"name":"item1_files.xml","source":"original","format":"Metadata","md5":"\(String(repeating: "0", count: 32))"},\
        {"name":"only.txt","private":"true","size":"1"},{"name":"../evil","size":"3"}],\
        "item_last_updated":1700000001,"metadata":{"identifier":"item1","subject":["a","b"]}}
        """

    static func hex(_ digit: String) -> String { String(repeating: digit, count: 64) }
}

/// Lists a place over scripted answers.
struct AdapterBench {
    /// An answer by its status, fields and body.
    struct Answer: Sendable {
        var status = 200
        var fields: [HeaderField] = []
        var body: [UInt8]
        /// The URL after redirects; nil for that of the request.
        var url: String?

        init(_ status: Int = 200, _ body: String = "", _ fields: [HeaderField] = [], from url: String? = nil) {
            (self.status, self.fields, self.body, self.url) = (status, fields, Array(body.utf8), url)
        }
    }

    struct Listing {
        var files: [Manifest.FileFacts] = []
        var faults: [SourceFault] = []
        var leftOut: [String: Int] = [:]
        var notes: [String] = []
        var version: String?
        var orders: SourcePage.Orders?
        var error: DownloadError?
        /// What was asked: URLs with the values of Authorization.
        var asked: [(url: String, login: String?)] = []

        var names: [String] { files.map { $0.name ?? "" } }
    }

    static func list(
        _ text: String, in environment: [String: String] = [:], _ options: TaskOptions = TaskOptions(),
        _ change: (inout SourceChoice) -> Void = { _ in },
        _ answer: @escaping @Sendable (_ url: String, _ login: String?) -> Answer
    ) async throws -> Listing {
        let transport = ScriptedTransport { request, _ in
            let url = request.urlRequest.url?.absoluteString ?? ""
            let found = answer(url, request.urlRequest.value(forHTTPHeaderField: "Authorization"))
            let length = HeaderField("Content-Length", "\(found.body.count)")
            return .init([
                .head(ResponseHead(status: found.status, fields: found.fields + [length], url: found.url ?? url)),
                .bytes(found.body),
            ])
        }
        defer { transport.shutdown() }
        // No files of this machine.
        var environment = environment
        environment["HOME"] = environment["HOME"] ?? "/nonexistent"
        environment["AWS_EC2_METADATA_DISABLED"] = environment["AWS_EC2_METADATA_DISABLED"] ?? "true"
        var listing = Listing()
        var choice = SourceChoice()
        change(&choice)
        do {
            guard let (source, place) = try SourceRegistry().find(text, in: environment) else { return listing }
            let pages = SourceListing(source, place, choice, options, environment, over: transport).pages
            for try await page in pages {
                listing.files += page.files
                listing.faults += page.faults
                listing.leftOut.merge(page.leftOut, uniquingKeysWith: +)
                listing.notes += page.notes
                listing.version = page.version ?? listing.version
                listing.orders = page.orders ?? listing.orders
            }
        } catch let error as DownloadError {
            listing.error = error
        }
        listing.asked = transport.requests.map { request in
            (
                request.urlRequest.url?.absoluteString ?? "",
                request.urlRequest.value(forHTTPHeaderField: "Authorization")
            )
        }
        return listing
    }
}
