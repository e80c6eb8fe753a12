/// What the record of a task in memory says, and the one on disk does not.
struct UnsavedChanges {
    /// True if the record has changed since the last write.
    var isDirty = false
    /// True if the record was repaired only in memory (`TaskBook.recover`).
    var isRecovered = false
    /// True if ranges were added, dropped or restarted since the last write.
    var rangesChanged = false
    /// True if no live counter was ever written to the info file, so the record needs none.
    var hasCleanCounters: Bool
}

/// The files of a task that stay when it is forgotten.
struct KeptFiles {
    /// True for its finished file.
    var hasFinished = false
    /// True for the finished file that a refresh or repair was to replace.
    var hasRenewed = false
}
