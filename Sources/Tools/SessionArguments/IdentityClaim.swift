import Glibc

/// Makes sure that one program at a time uses the user's own identity, because two with the same identity are one peer
/// to everybody else.
public enum IdentityClaim {
    /// Non-blocking, because a pipe in the file's place would block the program for ever.
    private static let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY

    /// Claims the file, and returns true if no other program has claimed it. The claim lasts as long as the program.
    public static func take(_ path: String) -> Bool {
        let descriptor = open(path, flags)
        // The file was read just before, so another program is changing it now. The session reports the result.
        guard descriptor >= 0 else { return true }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        close(descriptor)
        return false
    }

    /// Returns whether a program has claimed the file now.
    public static func isTaken(_ path: String) -> Bool {
        let descriptor = open(path, flags)
        guard descriptor >= 0 else { return false }
        // This claims the file for a moment. A program that wants to claim it in this moment sees it as claimed.
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }
}
