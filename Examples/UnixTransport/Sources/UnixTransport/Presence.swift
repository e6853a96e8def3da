// The files of a program that advertises: a socket that listens, and beside it the advertisement.
import Glibc
import NighTransport

final class Presence {
    let address: TransportAddress
    private let folder: Folder
    private let id = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)  // Sixteen digits.
    private let lock: Int32
    private var listener: SocketListener?  // Closes with this object.

    /// Listens. `opened` gets each accepted pipe; `failed` gets the reason while none can be accepted.
    init(
        in folder: Folder, on loop: UVEventLoop, opened: @escaping (SocketPipe) -> Void,
        failed: @escaping (NighError) -> Void
    ) throws(NighError) {
        self.folder = folder
        address = TransportAddress(scheme: "unix", value: "\(folder.path)/\(id).socket")
        lock = try folder.put(".\(id).lock", of: id) { flock($0, LOCK_EX | LOCK_NB) == 0 }
        listener = try UnixSocket.withAddress(address) { (bytes) throws(NighError) in
            try SocketListener(
                binding: UnixSocket.make(), to: bytes, scheme: "unix", on: loop, opened: opened,
                failed: failed)
        }
    }

    /// After this, no pipe is accepted any more, and no file is left behind.
    deinit {
        folder.remove(id)
        close(lock)
    }

    /// Shows `advertisement` to others, complete, in place of what they saw before.
    func show(_ advertisement: Advertisement) throws(NighError) {
        let bytes = advertisement.bytes
        close(try folder.put("\(id).about", of: id) { write($0, bytes, bytes.count) == bytes.count })
    }
}
