import FKMiddleware
import Foundation

/// One member of a barrel: enough to find its task and to export the barrel without reading any.
package struct BarrelMember: Codable, Sendable, Hashable {
    package var id: TaskID
    /// Percent-encoded, so without blanks, tabs and line feeds.
    package var url: String
    package init(id: TaskID, url: String) {
        self.id = id
        self.url = url
    }
}

/// The sums of a barrel when it was last saved: what is shown before its members are read.
package struct BarrelSums: Codable, Sendable, Hashable {
    package var complete = 0
    package var error = 0
    package var received: Int64 = 0
    /// nil while the length of some member is unknown.
    package var expected: Int64?
    package init(complete: Int = 0, error: Int = 0, received: Int64 = 0, expected: Int64? = nil) {
        self.complete = complete
        self.error = error
        self.received = received
        self.expected = expected
    }
}

/// A named, ordered group of tasks.
package struct BarrelRecord: Sendable, Hashable {
    package var name: String
    package var created: Date
    package var options: BarrelOptions
    /// In the order in which they were added; no id twice.
    package var members: [BarrelMember]
    package var sums: BarrelSums

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
