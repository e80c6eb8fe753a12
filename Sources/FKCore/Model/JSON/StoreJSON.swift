import FKMiddleware
import Foundation

/// The store's JSON: dates as seconds since 1970 rounded to milliseconds, slashes without escapes, members sorted by
/// name.
package enum StoreJSON {
    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        // Sorted, so that the same value gives the same bytes in every process.
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(Double(JSONText.milliseconds(date)) / 1000)
        }
        return encoder
    }()

    private static let decoder: JSONDecoder = {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        return decoder
    }()

    /// Encodes a value.
    ///
    /// - Throws: `DownloadError` if JSON cannot represent the value.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        do {
            return [UInt8](try encoder.encode(value))
        } catch {
            throw DownloadError(wrapping: error, code: .invalidArgument, message: "Cannot be written as JSON.")
        }
    }

    /// Decodes a value.
    ///
    /// - Throws: `.corruptInfo` with the part that did not match.
    package static func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: UnsafeRawBufferPointer
    ) throws -> Value {
        guard let base = bytes.baseAddress else {
            throw DownloadError(.corruptInfo, "Not a \(type): it is empty.")
        }
        do {
            let data = Data(
                bytesNoCopy: UnsafeMutableRawPointer(mutating: base), count: bytes.count, deallocator: .none)
            return try decoder.decode(type, from: data)
        } catch {
            throw DownloadError(
                .corruptInfo, "Not a \(type) in a form this version understands.",
                underlying: String(String(describing: error).prefix(300)))
        }
    }

    /// Decodes a value.
    ///
    /// - Throws: same as `decode` of a buffer.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
        try bytes.withUnsafeBytes { try decode(type, from: $0) }
    }
}
