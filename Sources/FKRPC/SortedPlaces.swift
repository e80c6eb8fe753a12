import FKMiddleware

/// Tasks in an order that changes one task at a time. A change copies at most the places behind it, 56 bytes each.
struct SortedPlaces: Sendable {
    /// The place of a task in an order. Smaller places come first.
    struct Place: Sendable, Hashable, Comparable {
        /// Decides first.
        var major: Int64
        /// Decides between places of the same `major`: the submission number.
        var minor: UInt64
        var id: TaskID
        /// The state of the task, so that a list of one state reads no rows.
        var state = DownloadState.idle

        static func < (one: Place, other: Place) -> Bool {
            (one.major, one.minor, one.id) < (other.major, other.minor, other.id)
        }
    }

    private(set) var places: [Place] = []

    var count: Int { places.count }

    /// The index of the first place that is not before this one.
    func index(of place: Place) -> Int {
        var low = 0
        var high = places.count
        while low < high {
            let middle = (low + high) / 2
            if places[middle] < place { low = middle + 1 } else { high = middle }
        }
        return low
    }

    mutating func insert(_ place: Place) {
        // Nearly all tasks join at the end.
        if let last = places.last, last < place { return places.append(place) }
        places.insert(place, at: index(of: place))
    }

    mutating func remove(_ place: Place) {
        let index = index(of: place)
        if index < places.count, places[index] == place { places.remove(at: index) }
    }

    /// A window as aria2's `offset` and `num` name it. A negative offset counts from the end, and the window is reversed.
    func window(offset: Int, count: Int) -> [TaskID] {
        if offset >= 0 {
            guard offset < places.count else { return [] }
            return places[offset..<min(places.count, offset + min(count, places.count))].map(\.id)
        }
        let last = places.count + max(offset, -places.count - 1)
        guard last >= 0 else { return [] }
        let first = max(0, last - min(count, places.count) + 1)
        return count > 0 ? places[first...last].reversed().map(\.id) : []
    }
}
