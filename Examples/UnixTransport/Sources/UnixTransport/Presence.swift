// What one who advertises has in the folder: a socket that listens, and beside it what is advertised.
import Glibc
import NighCore
import NighUV

final class Presence {
    let address: TransportAddress
    private let folder: Folder
    private let id = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)  // Sixteen digits.
    private let lock: Int32
    private var listener: Int32 = -1
    private var watch: DescriptorWatch?

    /// Listens. `accepted` becomes the owner of each socket that came in.
    init(in folder: Folder, on loop: UVEventLoop, accepted: @escaping (Int32) -> Void) throws(NighError) {
        self.folder = folder
        address = TransportAddress(scheme: "unix", value: "\(folder.path)/\(id).socket")
        lock = openat(folder.descriptor, ".\(id).lock", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard flock(lock, LOCK_EX | LOCK_NB) == 0,
            let socket = UnixSocket.make(address.value, { bind($0, $1, $2) == 0 ? listen($0, 64) : -1 })
        else { throw SocketFault(errno).error(.advertising, transport: "unix") }
        listener = socket
        watch = try loop.watch(socket, for: [.readable]) { [weak self] _ in self?.accept(accepted) }
    }

    /// Once this is over, nobody is taken in any more, and nothing is left behind.
    deinit {
        watch?.cancel()
        folder.remove(id)
        close(listener)
        close(lock)
    }

    /// Lets others see `advertisement`, whole, instead of what they saw before.
    func show(_ advertisement: Advertisement) throws(NighError) {
        let (new, bytes) = (".\(id).new", advertisement.bytes)
        let file = openat(folder.descriptor, new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        defer { close(file) }
        guard write(file, bytes, bytes.count) == bytes.count,
            renameat(folder.descriptor, new, folder.descriptor, "\(id).about") == 0
        else { throw SocketFault(errno).error(.advertising, transport: "unix") }
    }

    /// Tries again to take in who waits, where there were no descriptors for that.
    func resume() { watch?.events = [.readable] }

    private func accept(_ accepted: (Int32) -> Void) {
        let descriptor = Glibc.accept(listener, nil, nil)
        if descriptor < 0 {
            if errno == EMFILE || errno == ENFILE { watch?.events = [] }  // It would be told for ever.
        } else if UnixSocket.isPeerTrusted(descriptor) {
            accepted(descriptor)
        } else {
            close(descriptor)
        }
    }
}
