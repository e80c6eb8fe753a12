import FKMiddleware
import Foundation

/// A page of the objects of a bucket: the answer to S3's ListObjectsV2, which Google's XML API has as well, or to Azure's List
/// Blobs.
struct BucketPage: Sendable {
    struct Object: Sendable, Hashable {
        /// The whole key, decoded.
        var key = ""
        /// The length in bytes; nil if the listing has none.
        var size: Int64?
        /// The entity tag in quotes, as the object's own answer has it; nil if the listing has none.
        var entityTag: String?
        /// When it was last written, in seconds since 1970; nil if the listing does not say.
        var modified: Int64?
        /// The digests that the store has of it. An entity tag is none: it is an MD5 for some objects only.
        var digests: [Checksum] = []
        /// True for a folder of a store with folders.
        var isFolder = false
    }

    /// The objects in the order of the listing, without markers of folders.
    private(set) var objects: [Object] = []
    /// The text that asks for the next page; nil on the last one.
    private(set) var next: String?
    /// The number of markers of folders.
    private(set) var folderCount = 0

    /// The most objects of a page: five times the 1,000 of S3 and Google, and Azure's 5,000.
    static let maxObjects = 5_000

    init(_ bytes: [UInt8]) throws(AnswerFault) {
        var page = Draft()
        do {
            try XMLElements.read(bytes) { name in
                page.isAzure = name == "EnumerationResults"
                return page.isAzure || name == "ListBucketResult"
            } _: { element in
                try page.parse(element)
            }
        } catch let fault as AnswerFault {
            throw fault
        } catch let fault as XMLReader.Fault {
            throw AnswerFault("\(fault.reason), at byte \(fault.offset)")
        } catch {
            throw AnswerFault("it cannot be read")
        }
        next = try page.nextPage()
        (objects, folderCount) = (page.objects, page.folderCount)
    }

    /// The values so far, while a page is read.
    private struct Draft {
        var isAzure = false
        var objects: [Object] = []
        var folderCount = 0
        private var object = Object()
        private var isTruncated = false
        private var token = ""
        private var isEncoded = false

        mutating func parse(_ element: XMLElements.Element) throws(AnswerFault) {
            switch element.path.count {
            case 1: try parseOwn(element)
            case 2 where !isAzure && element.path[0] == "Contents": try parseS3(element)
            case 2 where isAzure && element.path == ["Blobs", "Blob"]: try end()
            case 3 where isAzure && element.path[..<2] == ["Blobs", "Blob"]: try parseAzure(element)
            case 4 where isAzure && element.path[..<3] == ["Blobs", "Blob", "Properties"]: try parseProperty(element)
            default: break
            }
        }

        private mutating func parseOwn(_ element: XMLElements.Element) throws(AnswerFault) {
            switch element.path[0] {
            case "EncodingType": isEncoded = element.text == "url"
            case "IsTruncated": isTruncated = element.text == "true"
            case "NextContinuationToken", "NextMarker": token = element.text
            case "Contents" where !isAzure: try end()
            default: break
            }
        }

        private mutating func parseS3(_ element: XMLElements.Element) throws(AnswerFault) {
            switch element.path[1] {
            case "Key": object.key = element.text
            case "Size": object.size = try BucketPage.size(element.text)
            case "ETag": object.entityTag = BucketPage.quoted(element.text)
            case "LastModified": object.modified = BucketPage.time(element.text)
            default: break
            }
        }

        private mutating func parseAzure(_ element: XMLElements.Element) throws(AnswerFault) {
            guard element.path[2] == "Name" else { return }
            let isEncoded = element.attributes.contains { $0.name == "Encoded" && $0.value == "true" }
            object.key = isEncoded ? try BucketPage.decoded(element.text, plus: false) : element.text
        }

        private mutating func parseProperty(_ element: XMLElements.Element) throws(AnswerFault) {
            switch element.path[3] {
            case "Content-Length": object.size = try BucketPage.size(element.text)
            case "Etag": object.entityTag = BucketPage.quoted(element.text)
            case "Last-Modified": object.modified = BucketPage.time(element.text)
            case "Content-MD5":
                if let bytes = Data(base64Encoded: element.text), bytes.count == 16,
                    let digest = Checksum(listed: .md5, hex: Digester.hex(Array(bytes)))
                {
                    object.digests = [digest]
                }
            case "ResourceType": if element.text == "directory" { object.isFolder = true }
            default: break
            }
        }

        /// Ends an object. The type of encoding may stand behind the objects, so keys are decoded with the page.
        private mutating func end() throws(AnswerFault) {
            defer { object = Object() }
            guard !object.key.isEmpty else { throw AnswerFault("an object has no key") }
            guard objects.count + folderCount < BucketPage.maxObjects else {
                throw AnswerFault("it has more than \(BucketPage.maxObjects) objects on a page")
            }
            if object.isFolder || object.key.utf8.last == UInt8(ascii: "/") {
                folderCount += 1
            } else {
                objects.append(object)
            }
        }

        /// Decodes the keys, and returns the text for the next page.
        mutating func nextPage() throws(AnswerFault) -> String? {
            if isEncoded, !isAzure {
                for index in objects.indices {
                    objects[index].key = try BucketPage.decoded(objects[index].key, plus: true)
                }
                // The encoded form of a slash at the end.
                let count = objects.count
                objects.removeAll { $0.key.utf8.last == UInt8(ascii: "/") }
                folderCount += count - objects.count
            }
            if isAzure { return token.isEmpty ? nil : token }
            guard isTruncated else { return nil }
            guard !token.isEmpty else {
                throw AnswerFault("more pages follow, and the name of the next one (NextContinuationToken) is missing")
            }
            return token
        }
    }

    // MARK: Values

    private static func size(_ text: String) throws(AnswerFault) -> Int64 {
        guard let size = Int64(text), size >= 0 else { throw AnswerFault("a size is no whole number of bytes") }
        return size
    }

    /// The tag as the header field `ETag` has it. Azure's listing leaves the quotes out.
    static func quoted(_ text: String) -> String? {
        let isVisible = text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
        guard !text.isEmpty, text.utf8.count <= 1_024, isVisible else { return nil }
        return text.hasPrefix("\"") || text.hasPrefix("W/") ? text : "\"\(text)\""
    }

    private static func time(_ text: String) -> Int64? {
        Timestamps.date(text).map { Int64($0.timeIntervalSince1970) }
    }

    /// - Parameter plus: true reads `+` as a blank, as in S3's keys.
    private static func decoded(_ text: String, plus: Bool) throws(AnswerFault) -> String {
        let bytes = plus ? text.utf8.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 } : Array(text.utf8)
        guard let key = String(validating: bytes[...].percentDecoded, as: UTF8.self) else {
            throw AnswerFault("the key '\(text.prefix(80))' is not UTF-8")
        }
        return key
    }
}
