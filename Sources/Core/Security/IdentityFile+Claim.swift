import Glibc

/// One program at a time may use an identity: two sessions of one identity are one peer to everybody else.
extension IdentityFile {
    /// Claims the file for this program, until it ends. Returns false if another program has claimed it.
    package func claim() -> Bool {
        guard let descriptor = open() else { return true }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        close(descriptor)
        return false
    }

    /// Whether a program has claimed the file.
    package var isClaimed: Bool {
        guard let descriptor = open() else { return false }
        // This claims the file for a moment. A program that wants to claim it in this moment takes that for another
        // claim.
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }

    /// Nil if the file cannot be opened. It was just read, so somebody is changing it; the session reports what is
    /// wrong with it.
    private func open() -> Int32? {
        // Not blocking, since a pipe in the file's place would block the program.
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        return descriptor >= 0 ? descriptor : nil
    }
}
