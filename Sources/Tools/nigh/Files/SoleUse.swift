import Glibc

/// Whether a file is open here and nowhere else, so that nobody else can have changed it.
///
/// It is a lease of the kernel's (fcntl(2), `F_SETLEASE`): taken only while nobody else has the file open, and broken by whoever opens it, by
/// whatever name. That process waits until ``holds()`` has seen it, so it has to be called from time to time, or until the file is closed.
final class SoleUse {
    private let file: OpenDescriptor
    private var isHeld: Bool

    /// The same for every processor; Glibc's header names them for C alone.
    private static let setLease: Int32 = 1_024
    private static let getLease: Int32 = 1_025

    /// The kernel announces whoever opens the file by a signal that would end the program.
    private static let ignoreSignal: Void = { _ = signal(SIGIO, SIG_IGN) }()

    /// Begins now. It holds nothing where somebody else has the file open, or the file system has no leases.
    init(of file: OpenDescriptor) {
        self.file = file
        Self.ignoreSignal
        isHeld = fcntl(file.number, Self.setLease, Int32(F_WRLCK)) == 0
    }

    /// Whether nobody else has opened the file since this was made. Lets them do so where they wait for it.
    func holds() -> Bool {
        if isHeld, fcntl(file.number, Self.getLease) != Int32(F_WRLCK) { end() }
        return isHeld
    }

    /// Nobody has to wait any more.
    func end() {
        guard isHeld else { return }
        _ = fcntl(file.number, Self.setLease, Int32(F_UNLCK))
        isHeld = false
    }
}
