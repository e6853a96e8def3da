import Glibc

/// Tells whether a file is open in this process only, so that no other process can have changed it.
///
/// It uses a lease of the kernel (fcntl(2), `F_SETLEASE`). The kernel grants the lease only while no other process has
/// the file open, and breaks it when a process opens the file, under any name. That process waits until ``isHeld()``
/// has noticed it, so `isHeld()` must be called from time to time until the file is closed.
package final class FileLease {
    private let file: OpenDescriptor
    private var hasLease: Bool

    /// These numbers are the same for every processor; Glibc's header gives names for them to C only.
    private static let setLease: Int32 = 1_024
    private static let getLease: Int32 = 1_025

    /// The kernel announces a process that opens the file by a signal, which would end the program.
    private static let ignoreSignal: Void = { _ = signal(SIGIO, SIG_IGN) }()

    /// Takes the lease. There is none if another process has the file open, or if the file system has no leases.
    package init(of file: OpenDescriptor) {
        self.file = file
        Self.ignoreSignal
        hasLease = fcntl(file.number, Self.setLease, Int32(F_WRLCK)) == 0
    }

    /// Returns whether no other process has opened the file since this was created. Lets a process continue that waits
    /// to open it.
    package func isHeld() -> Bool {
        if hasLease, fcntl(file.number, Self.getLease) != Int32(F_WRLCK) { release() }
        return hasLease
    }

    /// Gives the lease up, so that no other process has to wait.
    package func release() {
        guard hasLease else { return }
        _ = fcntl(file.number, Self.setLease, Int32(F_UNLCK))
        hasLease = false
    }
}
