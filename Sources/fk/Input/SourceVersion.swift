import FKManifests
import FKMiddleware
import Foundation

/// The version of a file as its source lists it, which a task keeps. A later listing that says the same means the same file.
struct SourceVersion: Sendable, Hashable {
    /// The attribute of a task that has it.
    static let attribute = ListedVersion.attribute

    /// The attribute of a description that has the listed size. No record has it.
    static let sizeAttribute = "source-size"

    /// The text of the source, at most 1,000 bytes.
    let text: String

    /// The version in a listing; nil if the source says none.
    private init?(of facts: Manifest.FileFacts) {
        guard let text = facts.version, !text.isEmpty else { return nil }
        guard text.utf8.count > 1_000 else {
            self.text = text
            return
        }
        let digester = Digester(.sha256)
        Array(text.utf8).withUnsafeBytes { digester.update($0) }
        self.text = "sha-256 \(digester.hex())"
    }

    /// The version that a task has; nil if its source said none, or if it is of no source.
    init?(in attributes: [String: String]) {
        guard let text = attributes[Self.attribute], text != ListedVersion.unknown else { return nil }
        self.text = text
    }

    /// Records what a source says of a file. A task has the attribute also where the source says no version: it shows that the task is
    /// of a source.
    static func store(_ facts: Manifest.FileFacts, in attributes: inout [String: String]) {
        let text = Self(of: facts)?.text
        // An entity tag or a digest says it all.
        let isTime = facts.entityTag == nil && facts.digests.isEmpty
        attributes[Self.attribute] =
            text.flatMap { isTime && ListedTime($0)?.isTooNew(at: Date()) == true ? nil : $0 } ?? ListedVersion.unknown
    }

    /// True for a task that came from a source.
    static func isThere(_ attributes: [String: String]) -> Bool { attributes[Self.attribute] != nil }
}
