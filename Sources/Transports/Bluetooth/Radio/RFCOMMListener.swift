import Glibc
import NighCore
import NighUV

/// Accepts connections on a socket of its own, on one adapter.
///
/// It listens on a random channel. The kernel would choose the lowest free one. But two devices have at most one
/// connection on a channel, so a program that listens again on its old channel could not be reached by devices that
/// still have pipes to it. And a route from an earlier run of this program would lead to whichever program has the
/// channel now.
///
/// Loop only.
final class RFCOMMListener {
    /// The most connections that may wait to be accepted.
    private static let backlog: Int32 = 8

    let adapter: BluetoothAddress
    let channel: UInt8
    private let listener: SocketListener

    /// Begins to listen. `accepted` gets each connection. `failed` is called when no more can be accepted; the listener
    /// must then be closed.
    init(
        on adapter: BluetoothAddress, loop: UVEventLoop, accepted: @escaping (BluetoothSocket) -> Void,
        failed: @escaping (BluetoothFault) -> Void
    ) throws(BluetoothFault) {
        self.adapter = adapter
        do throws(SocketFault) {
            let socket = try Self.boundSocket(on: adapter)
            try socket.listen(backlog: Self.backlog)
            channel = socket.ownEnd?.channel ?? 0
            listener = try SocketListener(descriptor: socket.descriptor, on: loop) {
                accepted(BluetoothSocket($0))
            } failed: {
                failed(.socket($0.number))
            }
            socket.releaseDescriptor()
        } catch {
            throw .socket(error.number)
        }
    }

    private static func boundSocket(on adapter: BluetoothAddress) throws(SocketFault)
        -> BluetoothSocket
    {
        var taken = SocketFault(EADDRINUSE)
        for channel in BluetoothDestination.channels.shuffled() {
            do throws(SocketFault) {
                return try .stream(on: adapter, channel: channel)
            } catch {
                guard error.number == EADDRINUSE else { throw error }
                taken = error
            }
        }
        throw taken
    }

    /// Stops listening; accepted pipes stay open.
    func close() { listener.close() }
}
