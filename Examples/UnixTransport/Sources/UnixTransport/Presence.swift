// What one who advertises has in the folder: a socket that listens, and beside it what is advertised.
import Glibc
import NighCore
import NighUV

final class Presence {
    let address: TransportAddress
    private let folder: Folder
    private let id: String
    private let accepted: (Int32) -> Void
    private var listener: Int32
    private var watch: DescriptorWatch?
    /// What is advertised, open and locked for as long as it is.
    private var file: Int32 = -1

    /// Listens. `accepted` becomes the owner of each socket that came in.
    init(in folder: Folder, on loop: UVEventLoop, accepted: @escaping (Int32) -> Void) throws(NighError) {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        id = String(repeating: "0", count: 16 - digits.count) + digits
        (self.folder, self.accepted) = (folder, accepted)
        address = TransportAddress(scheme: "unix", value: "\(folder.path)/\(Folder.socket(of: id))")
        listener = try UnixSocket.listen(at: address.value)
        watch = try loop.watch(listener, for: [.readable]) { [weak self] _ in self?.accept() }
    }

    deinit { end() }

    /// Lets others see `advertisement` instead of what they saw before: whole, and locked from the first.
    func show(_ advertisement: Advertisement) throws(NighError) {
        let (new, about, bytes) = (Folder.new(of: id), Folder.about(of: id), advertisement.bytes)
        let next = openat(folder.descriptor, new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard next >= 0, flock(next, LOCK_EX | LOCK_NB) == 0, write(next, bytes, bytes.count) == bytes.count,
            renameat(folder.descriptor, new, folder.descriptor, about) == 0
        else {
            defer { close(next) }
            throw SocketFault(errno).error(.advertising, transport: "unix", peer: "\(folder.path)/\(about)")
        }
        close(file)
        file = next
    }

    /// Whether what others come by still lies in the folder.
    var isWhole: Bool {
        folder.status(of: Folder.socket(of: id)) != nil && folder.status(of: Folder.about(of: id)) != nil
    }

    /// Takes in nobody any more, and leaves nothing behind.
    func end() {
        guard listener >= 0 else { return }
        watch?.cancel()
        folder.remove(id)
        close(listener)
        close(file)
        listener = -1
    }

    /// Tries again to take in who waits, after there were no descriptors for that.
    func resume() { watch?.events = [.readable] }

    /// Takes in some of those who wait; the rest is told again. Whoever is handed one may end all of this.
    private func accept() {
        for _ in 0..<16 where listener >= 0 {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                // Where there are no descriptors, the loop would never sleep again.
                if errno == EMFILE || errno == ENFILE { watch?.events = [] }
                return
            }
            if UnixSocket.isPeerTrusted(descriptor) { accepted(descriptor) } else { close(descriptor) }
        }
    }
}
