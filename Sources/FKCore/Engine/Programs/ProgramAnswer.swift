import FKMiddleware
import Foundation

/// The JSON object that a middleware program has written to its standard output. Without output it changes nothing.
struct ProgramAnswer: Sendable, Hashable {
    /// The new URL of the request in normal form; nil to keep it.
    var url: String?
    /// Header fields to set, by name; a nil value removes the field.
    var headers: [String: String?] = [:]
    /// The new place of the file, absolute; nil if it stays.
    var path: String?
    /// The attempt that it asks for; nil for none. For the stages head and failure.
    var retry: Retry?
    /// Why the task fails; nil if it need not. For the stages head and failure.
    var fail: String?

    /// Another attempt.
    struct Retry: Sendable, Hashable {
        /// In seconds, at least 0.
        var after = 0.0
        /// The new address of the file in normal form; nil for the present one. For the stage failure.
        var from: String?
    }

    /// The most bytes that are read.
    static let maxBytes = 1 << 20
    /// The most header fields that it may set.
    static let maxFields = 100

    /// Members of the question, which a program may repeat. Any other member is a mistake that should not pass.
    private static let known: Set<String> = [
        "stage", "id", "url", "headers", "attempt", "barrels", "attributes", "state", "error", "path", "digest",
        "status", "received", "retry", "fail",
    ]

    /// An answer that changes nothing.
    init() {}

    /// Parses an answer. Members that mean nothing to the stage are ignored.
    ///
    /// - Throws: a text that completes the sentence "The program …".
    init(_ bytes: [UInt8], _ stage: MiddlewareProgram.Stage) throws(Fault) {
        guard bytes.contains(where: { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }) else { return }
        guard let members = try? JSONDecoder().decode([String: Member].self, from: Data(bytes)) else {
            // The output is not quoted: it may be a secret.
            throw Fault("wrote \(bytes.count) bytes that are not a JSON object")
        }
        if let name = members.keys.filter({ !Self.known.contains($0) }).min() {
            throw Fault("wrote the unknown member \(Self.quoted(name))")
        }
        switch stage {
        case .request:
            url = try Self.url(members["url"])
            headers = try Self.headers(members["headers"])
        case .response: path = try Self.path(members["path"])
        case .head, .failure:
            retry = try Self.retry(members["retry"])
            fail = try Self.reason(members["fail"])
            if stage == .head, retry?.from != nil {
                throw Fault("wrote a retry with \"from\", which only the stage failure has")
            }
            if retry != nil, fail != nil { throw Fault("asks for a retry and for a failure") }
        case .download: break
        }
    }

    /// The reason why an answer cannot be used.
    struct Fault: Error, Hashable {
        var text: String
        init(_ text: String) { self.text = text }
    }

    // MARK: Members

    /// A member as far as it is of interest.
    private enum Member: Decodable {
        case null
        case text(String)
        case fields([String: String?])
        case retry(Retry)
        case other

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if value.decodeNil() {
                self = .null
            } else if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if let fields = try? value.decode([String: String?].self) {
                self = .fields(fields)
            } else if let retry = try? value.decode(Retry.self) {
                self = .retry(retry)
            } else {
                self = .other
            }
        }
    }

    private static func url(_ member: Member?) throws(Fault) -> String? {
        switch member {
        case nil, .null: return nil
        case .text(let text):
            do {
                let url = try text.normalizedURL()
                guard URL(string: url) != nil else { throw Fault("wrote a URL that cannot be used") }
                return url
            } catch let error as Fault {
                throw error
            } catch {
                let reason = (error as? DownloadError)?.message.prefix(300) ?? ""
                throw Fault("wrote a URL that cannot be used: \(reason.hasSuffix(".") ? reason.dropLast() : reason)")
            }
        case .fields, .retry, .other: throw Fault("wrote a url that is not a text")
        }
    }

    private static func headers(_ member: Member?) throws(Fault) -> [String: String?] {
        switch member {
        case nil, .null: return [:]
        case .fields(let fields):
            guard fields.count <= maxFields else { throw Fault("wrote more than \(maxFields) headers") }
            for (name, value) in fields {
                guard name.isFieldName else {
                    throw Fault("wrote the header \(quoted(name)), which is not a name")
                }
                if let value, !value.isFieldValue {
                    throw Fault("wrote a line end or a zero byte into the value of the header \(name)")
                }
            }
            return fields
        case .text, .retry, .other: throw Fault("wrote headers that are not an object of texts")
        }
    }

    private static func path(_ member: Member?) throws(Fault) -> String? {
        switch member {
        case nil, .null: return nil
        case .text(let path):
            guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
                throw Fault("wrote the path \(quoted(path)), which is not absolute")
            }
            return path
        case .fields, .retry, .other: throw Fault("wrote a path that is not a text")
        }
    }

    private static func retry(_ member: Member?) throws(Fault) -> Retry? {
        var retry = Retry()
        switch member {
        case nil, .null: return nil
        case .fields(let fields)
        where Set(fields.keys).isSubset(of: ["from", "after"]) && (fields["after"] ?? nil) == nil:
            retry.from = fields["from"] ?? nil
        case .retry(let given): retry = given
        case .text, .fields, .other: throw Fault("wrote a retry that is not an object with \"after\" and \"from\"")
        }
        guard (0...31_536_000).contains(retry.after) else {
            throw Fault("wrote a time that is not 0 to 31536000 seconds")
        }
        retry.from = try url(retry.from.map { .text($0) })
        return retry
    }

    private static func reason(_ member: Member?) throws(Fault) -> String? {
        switch member {
        case nil, .null: return nil
        case .text(let text): return ProgramReason.text(Array(text.utf8)) ?? "no reason given"
        case .fields, .retry, .other: throw Fault("wrote a fail that is not a text")
        }
    }

    // MARK: Text

    private static func quoted(_ text: String) -> String { "\"\(text.prefix(80).visible)\"" }
}

extension ProgramAnswer.Retry: Decodable {
    private enum CodingKeys: String, CodingKey { case after, from }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        let names = try decoder.singleValueContainer().decode([String: AnyValue].self).keys
        guard names.allSatisfy({ CodingKeys(stringValue: $0) != nil }) else {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "another member"))
        }
        after = try fields.decodeIfPresent(Double.self, forKey: .after) ?? 0
        from = try fields.decodeIfPresent(String.self, forKey: .from)
    }

    private struct AnyValue: Decodable { init(from decoder: any Decoder) {} }
}
