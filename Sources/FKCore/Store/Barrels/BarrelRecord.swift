import FKMiddleware
import Foundation

/// One member of a barrel: enough to find its task, and to export the barrel without reading info files.
package struct BarrelMember: Codable, Sendable, Hashable {
    package var id: TaskID
    /// The URL, percent-encoded, so it contains no spaces, tabs or line feeds.
    package var url: String
    package init(id: TaskID, url: String) {
        self.id = id
        self.url = url
    }
}

/// A named, ordered group of tasks. Its `Codable` form is the description line of a barrel file, without the members.
package struct BarrelRecord: Codable, Sendable, Hashable {
    /// The barrel's name, unique in the work path.
    package var name: String
    package var created: Date
    /// The defaults for its new members.
    package var options: BarrelOptions
    /// The members in the order in which they joined, without duplicates.
    package var members: [BarrelMember] = []

    private enum CodingKeys: String, CodingKey {
        case name, created, options
    }

    /// Creates a barrel; the default has no options and no members.
    package init(
        name: String, created: Date, options: BarrelOptions = .init(), members: [BarrelMember] = []
    ) {
        self.name = name
        self.created = created
        self.options = options
        self.members = members
    }
}
