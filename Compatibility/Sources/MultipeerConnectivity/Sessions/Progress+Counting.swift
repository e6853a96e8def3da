extension Progress {
    /// Held while a progress is made or counts. Foundation's has no lock of its own on Linux, and several resources may
    /// count for one parent.
    static let counting = NSLock()
}
