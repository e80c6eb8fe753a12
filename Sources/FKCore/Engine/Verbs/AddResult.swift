import FKMiddleware

/// The result of `add` for one task.
package struct AddResult: Codable, Sendable, Hashable {
    package var id: TaskID
    package var state: DownloadState
    /// False if the task existed before.
    package var isNew: Bool
    /// True if the task's list has another version of its file than before; nil otherwise.
    package var isChanged: Bool?
    /// True if the listing of a source has another version of the finished file, which stays; nil otherwise.
    package var isOutdated: Bool?
    /// True if somebody has changed the finished file, which stays; nil otherwise.
    package var isEdited: Bool?
    /// Set if this task could not be created.
    package var error: DownloadError?
    package init(id: TaskID, state: DownloadState, isNew: Bool, error: DownloadError? = nil) {
        self.id = id
        self.state = state
        self.isNew = isNew
        self.error = error
    }
}
