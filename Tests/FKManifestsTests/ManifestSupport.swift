@testable import FKManifests

extension Manifest {
    /// Parses a text.
    init(
        _ text: String, as form: Form? = nil, fileName: String? = nil, base: String? = nil, skips: Bool? = nil
    ) throws(ManifestError) {
        var reading = Reading()
        reading.baseURL = base
        reading.skipsBadEntries = skips
        try self.init(parsing: Array(text.utf8), as: form, fileName: fileName, reading)
    }

    /// What parsing a text throws; empty when it does not.
    static func fault(in text: String, as form: Form? = nil, fileName: String? = nil) -> String {
        do {
            _ = try Manifest(text, as: form, fileName: fileName)
            return ""
        } catch {
            return error.description
        }
    }

    var names: [String] { entries.map { $0.name ?? "" } }
    var urls: [[String]] { entries.map { $0.sources.map(\.url) } }
}

/// Digests that are none of anything, one for each digit.
enum SampleDigest {
    static func hex(_ algorithm: Checksum.Algorithm, _ digit: Character = "a") -> String {
        String(repeating: digit, count: algorithm.byteCount * 2)
    }
    static let sha256 = hex(.sha256)
}
