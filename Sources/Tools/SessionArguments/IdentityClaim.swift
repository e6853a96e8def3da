import Glibc

/// Who may be the user's own identity: one program at a time, since two of one identity are one peer to everybody else.
public enum IdentityClaim {
    /// Not blocking, or a pipe in the file's place would hold up the program for ever.
    private static let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY

    /// True where no other program has claimed the file. The claim lasts as long as the program.
    public static func take(_ path: String) -> Bool {
        let descriptor = open(path, flags)
        // What cannot be opened was just read, so somebody changes it at this moment; the session tells what comes of it.
        guard descriptor >= 0 else { return true }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
        close(descriptor)
        return false
    }

    /// Whether a program has claimed the file now.
    public static func isTaken(_ path: String) -> Bool {
        let descriptor = open(path, flags)
        guard descriptor >= 0 else { return false }
        // A claim of a moment: what another program makes of it, if it comes in between, is that somebody is there.
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }
}
