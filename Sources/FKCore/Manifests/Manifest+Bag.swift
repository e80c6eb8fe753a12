import FKMiddleware

extension Manifest {
    /// Combines the files of a bag (RFC 8493).
    ///
    /// An entry that is not in `fetch.txt` is a file of the bag itself, with digests and without URLs. An entry in
    /// `fetch.txt` must be in every manifest (section 2.2.3).
    ///
    /// - Parameter files: `bagit.txt`, every `manifest-ALG.txt` and, if there is one, `fetch.txt`, with their names.
    ///   Other files, such as tag manifests, are ignored.
    /// - Throws: `ManifestError` if the files are not a bag, or the bag has a later version.
    public static func bag(
        _ files: [(name: String, bytes: [UInt8])], _ reading: Reading = Reading()
    ) throws(ManifestError) -> Manifest {
        guard let declaration = files.first(where: { $0.name == "bagit.txt" }) else {
            throw ManifestError(form: .bagit, "a folder is a list only if it is a bag, and bagit.txt is missing")
        }
        let encodesPercent = try version(declaration.bytes, reading)
        var parts: [(name: String, manifest: Manifest)] = []
        for file in files where BagParser.algorithm(file.name) != nil || file.name == "fetch.txt" {
            var lines = LineParser(.bagit, BagParser(file.name, encodesPercent: encodesPercent, reading))
            try lines.parse(file.bytes)
            parts.append((file.name, try lines.finish()))
        }
        let manifests = parts.filter { $0.name != "fetch.txt" }.map(\.manifest)
        let known = manifests.filter { $0.passedOver.isEmpty }
        guard !manifests.isEmpty else { throw ManifestError(form: .bagit, "the bag has no manifest-ALG.txt") }
        guard !known.isEmpty else {
            throw ManifestError(
                form: .bagit, "no manifest of the bag is of an algorithm that is known here, such as sha256 or sha512")
        }
        var collector = ManifestCollector(.bagit, reading)
        for part in parts { collector.absorb(part.manifest) }
        var merged = merge(known)
        let fetch = parts.first { $0.name == "fetch.txt" }?.manifest.entries ?? []
        // Since version 1.0 every manifest lists every file (section 2.1.3).
        try addSources(fetch, to: &merged, encodesPercent ? known.count : 1, &collector)
        for entry in merged.entries where entry.line > 0 { try collector.append(entry) }
        return collector.manifest
    }

    /// The content of the manifests. Line 0 marks an entry that is left out.
    private struct Merged {
        var entries: [Entry] = []
        var positions = ExactText.Map<Int>()
    }

    /// Reads the version. Returns true if percent signs in names are encoded.
    private static func version(_ bytes: [UInt8], _ reading: Reading) throws(ManifestError) -> Bool {
        var parser = BagParser("bagit.txt", reading)
        var number = 0
        for line in bytes.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
            number += 1
            try parser.parse(number == 1 && line.starts(with: [0xef, 0xbb, 0xbf]) ? line.dropFirst(3) : line, number)
        }
        _ = try parser.finish()
        return parser.version?.hasPrefix("0.") == false
    }

    private static func merge(_ manifests: [Manifest]) -> Merged {
        var merged = Merged()
        for manifest in manifests {
            for entry in manifest.entries {
                guard let name = entry.name else { continue }
                if let position = merged.positions[name] {
                    for digest in entry.digests { _ = merged.entries[position].digests.add(digest) }
                } else {
                    merged.positions[name] = merged.entries.count
                    merged.entries.append(entry)
                }
            }
        }
        return merged
    }

    private static func addSources(
        _ fetch: [Entry], to merged: inout Merged, _ manifests: Int, _ collector: inout ManifestCollector
    ) throws(ManifestError) {
        for entry in fetch {
            guard let name = entry.name else { continue }
            guard let position = merged.positions[name] else {
                try collector.leaveOut(
                    ManifestError(
                        form: .bagit, file: "fetch.txt", line: entry.line,
                        "'\(name)' is in no manifest: its bytes could not be checked"))
                continue
            }
            guard merged.entries[position].digests.count >= manifests else {
                merged.entries[position].line = 0
                try collector.leaveOut(
                    ManifestError(
                        form: .bagit, file: "fetch.txt", line: entry.line,
                        "'\(name)' is not in every manifest of the bag"))
                continue
            }
            merged.entries[position].sources = entry.sources
            merged.entries[position].size = entry.size
            merged.entries[position].line = entry.line
        }
    }
}
