import Glibc
import NighCore
import NighUV

/// Where pipes come in: a socket of our own on one adapter. Confined to its loop; hence `@unchecked Sendable`.
///
/// Its channel is drawn. The kernel would give the lowest that nobody listens on; but two devices have one connection at most on a
/// channel, so who listens anew on the old one could not be reached by those with pipes from before, and a route from an
/// earlier life of this program would lead to whoever has the channel now.
final class RFCOMMListener: @unchecked Sendable {
    /// So many may wait to be accepted.
    private static let backlog: Int32 = 8

    let adapter: BluetoothAddress
    let channel: UInt8
    private let listener: SocketListener

    /// Begins to listen. `accepted` is told each connection, `failed` when no more can be taken in; the listener is to be closed then.
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
            socket.giveAway()
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

    /// Listens no more; pipes that came in stay.
    func close() { listener.close() }
}
