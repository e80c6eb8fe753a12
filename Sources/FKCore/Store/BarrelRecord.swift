import FKMiddleware
import Foundation

/// One member of a barrel: enough to find its task, and to export the barrel without reading info files.
package struct BarrelMember: Codable, Sendable, Hashable {
    /// The task's id.
    package var id: TaskID
    /// The URL, percent-encoded, so it contains no spaces, tabs or line feeds.
    package var url: String
    /// Creates a member.
    package init(id: TaskID, url: String) {
        self.id = id
        self.url = url
    }
}

/// The sums of a barrel when it was last saved, shown before its members are read.
package struct BarrelSums: Codable, Sendable, Hashable {
    /// The number of complete members.
    package var complete = 0
    /// The number of failed members.
    package var error = 0
    /// The received bytes of all members.
    package var received: Int64 = 0
    /// The length of all members in bytes; nil while the length of a member is unknown.
    package var expected: Int64?
    /// Creates sums; the default is an empty barrel of unknown length.
    package init(complete: Int = 0, error: Int = 0, received: Int64 = 0, expected: Int64? = nil) {
        self.complete = complete
        self.error = error
        self.received = received
        self.expected = expected
    }
}

/// A named, ordered group of tasks. Its `Codable` form is the description line of a barrel file, without the members.
package struct BarrelRecord: Codable, Sendable, Hashable {
    /// The barrel's name, unique in the work path.
    package var name: String
    /// When the barrel was created.
    package var created: Date
    /// The defaults for its new members.
    package var options: BarrelOptions
    /// The members in the order in which they joined, without duplicates.
    package var members: [BarrelMember] = []
    /// The sums at the last save.
    package var sums: BarrelSums

    private enum CodingKeys: String, CodingKey {
        case name, created, options, sums
    }

    /// Creates a barrel; the default has no options and no members.
    package init(
        name: String, created: Date, options: BarrelOptions = .init(), members: [BarrelMember] = [],
        sums: BarrelSums = .init()
    ) {
        self.name = name
        self.created = created
        self.options = options
        self.members = members
        self.sums = sums
    }
}
