import FKMiddleware
import Foundation

/// How the store writes JSON: dates as seconds since 1970 rounded to milliseconds, slashes as they are, members
/// by name.
package enum StoreJSON {
    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        // In one order, so that the same value is the same bytes in every process.
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

    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        do {
            return [UInt8](try encoder.encode(value))
        } catch {
            throw DownloadError(wrapping: error, code: .invalidArgument, message: "Cannot be written as JSON.")
        }
    }

    /// - Throws: `.corruptInfo` naming what did not fit.
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

    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
        try bytes.withUnsafeBytes { try decode(type, from: $0) }
    }
}
