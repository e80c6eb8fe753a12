/// Decides which connection makes room for a new one. A client with the secret always finds a place: connections that have not
/// shown the secret end first, old ones before young ones, and among the old those without a whole request before the others. A
/// request does not protect a connection from a young one: clients without the secret could hold all places with refused requests.
package enum ConnectionRoom {
    /// A connection.
    package struct Place: Hashable, Sendable {
        /// Identifies it; numbers grow with time.
        package var number: UInt64
        /// The address of the client.
        package var client: String
        /// True once a call had the right secret, or if none is needed and a call was answered.
        package var isProven: Bool
        /// True once a whole request has arrived.
        package var hasRequest: Bool
        /// Nanoseconds since it began.
        package var age: Int64

        package init(number: UInt64, client: String, isProven: Bool, hasRequest: Bool, age: Int64) {
            self.number = number
            self.client = client
            self.isProven = isProven
            self.hasRequest = hasRequest
            self.age = age
        }
    }

    /// The answer to a new connection.
    package enum Decision: Hashable, Sendable {
        /// There is room.
        case keep
        /// This connection ends instead.
        case end(UInt64)
        /// All others have shown the secret: the new one ends.
        case refuse
    }

    /// A connection that is younger may be sending its request at this moment.
    private static let youth: Int64 = 1_000_000_000

    /// - Parameter most: the number of connections at the same time. Unproven ones of one client have at most half of them.
    package static func decide(_ new: Place, among others: [Place], most: Int) -> Decision {
        let unproven = others.filter { !$0.isProven }
        let own = unproven.filter { $0.client == new.client }
        if own.count >= max(1, most / 2) { return own.min(by: endsBefore).map { .end($0.number) } ?? .keep }
        guard others.count >= most else { return .keep }
        return unproven.min(by: endsBefore).map { .end($0.number) } ?? .refuse
    }

    private static func endsBefore(_ one: Place, _ other: Place) -> Bool {
        let isYoung = one.age < youth
        if isYoung != (other.age < youth) { return !isYoung }
        if one.hasRequest != other.hasRequest { return !one.hasRequest }
        return one.number < other.number
    }
}
