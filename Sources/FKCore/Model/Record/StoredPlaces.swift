import FKMiddleware

/// A value of the store with places in it. All of them stand in `mapPlaces`, for both directions.
package protocol StoredPlaces {
    /// Replaces each place for which `change` returns another text.
    mutating func mapPlaces(_ change: (String) throws(DownloadError) -> String?) throws(DownloadError)
}

extension StoredPlaces {
    /// Makes the places those of the stored form.
    package mutating func store(by places: Places) {
        try? mapPlaces { (place) throws(DownloadError) in places.stored(place) }
    }

    /// Makes the places of a stored value absolute.
    ///
    /// - Throws: same as `Places.resolved`.
    package mutating func resolve(by places: Places) throws(DownloadError) { try mapPlaces(places.resolved) }
}

extension String? {
    fileprivate mutating func map(_ change: (String) throws(DownloadError) -> String?) throws(DownloadError) {
        if let place = self, let other = try change(place) { self = other }
    }
}

extension TaskRecord: StoredPlaces {
    /// True if there are more places than those that `JSONText` converts as it writes them.
    var hasNestedPlaces: Bool {
        own.setAside != nil || own.former != nil || own.adopted != nil || own.leftBehind != nil
            || own.task.optionsBox?.value.hasPaths == true
    }

    /// The pieces and the digests are beside the record, so no place is stored for them. The trace and the texts of errors and
    /// of the history keep the former paths.
    package mutating func mapPlaces(
        _ change: (String) throws(DownloadError) -> String?
    ) throws(DownloadError) {
        try own.mapPlaces(change)
    }
}

extension TaskRecord.Fields: StoredPlaces {
    mutating func mapPlaces(_ change: (String) throws(DownloadError) -> String?) throws(DownloadError) {
        try task.mapPlaces(change)
        try partFolder.map(change)
        try path.map(change)
        for index in (setAside ?? []).indices {
            if let file = setAside?[index], let other = try change(file.path) {
                setAside?[index] = SetAsideFile(path: other, written: file.written)
            }
        }
        if let file = adopted, let other = try change(file.path) { adopted?.path = other }
        if let file = former, let other = try change(file.path) { former?.path = other }
        for index in (leftBehind ?? []).indices {
            if let place = leftBehind?[index], let other = try change(place) { leftBehind?[index] = other }
        }
    }
}

extension TaskDescription: StoredPlaces {
    package mutating func mapPlaces(
        _ change: (String) throws(DownloadError) -> String?
    ) throws(DownloadError) {
        // A change of a shared description copies it.
        if let directory, let other = try change(directory) { self.directory = other }
        guard hasOptions else { return }
        var changed = options
        try changed.mapPlaces(change)
        if changed != options { options = changed }
    }
}

extension TaskOptions: StoredPlaces {
    fileprivate var hasPaths: Bool { (caPath ?? cookiePath ?? adoptPath ?? clientCertificate?.path) != nil }

    package mutating func mapPlaces(
        _ change: (String) throws(DownloadError) -> String?
    ) throws(DownloadError) {
        try caPath.map(change)
        try cookiePath.map(change)
        try adoptPath.map(change)
        guard var certificate = clientCertificate else { return }
        if let other = try change(certificate.path) { certificate.path = other }
        try certificate.keyPath.map(change)
        clientCertificate = certificate
    }
}

extension BarrelOptions: StoredPlaces {
    /// The stored settings with absolute places.
    ///
    /// - Throws: same as `resolve`.
    package func resolved(by places: Places) throws(DownloadError) -> Self {
        var copy = self
        try copy.resolve(by: places)
        return copy
    }

    package mutating func mapPlaces(
        _ change: (String) throws(DownloadError) -> String?
    ) throws(DownloadError) {
        try directory.map(change)
        try options?.mapPlaces(change)
    }
}

extension Places {
    /// The id of a task, which stays the same when a base moves. Two places have two ids, also where one base is inside of
    /// another and only one of them has moved.
    package func id(of task: TaskDescription) -> TaskID {
        guard let directory = task.directory, let former = former(directory) else { return task.id }
        return TaskID(url: task.url, destination: "\(former)/\(task.fileName ?? "")")
    }
}
