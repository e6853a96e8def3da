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
    /// So many are taken in before those that are there are read.
    private static let share = 8

    let adapter: BluetoothAddress
    let channel: UInt8
    private let socket: BluetoothSocket
    private var watch: DescriptorWatch?

    /// Begins to listen. `accepted` is told each connection, `failed` when no more can be taken in; the listener is of no use then.
    init(
        on adapter: BluetoothAddress, loop: UVEventLoop, accepted: @escaping (BluetoothSocket) -> Void,
        failed: @escaping (BluetoothFault) -> Void
    ) throws(BluetoothFault) {
        self.adapter = adapter
        do throws(BluetoothSocket.Fault) {
            socket = try Self.boundSocket(on: adapter)
            try socket.listen(backlog: Self.backlog)
        } catch {
            throw .socket(error.number)
        }
        channel = socket.ownEnd?.channel ?? 0
        do throws(NighError) {
            watch = try loop.watch(socket.descriptor, for: .readable) { [weak self] _ in
                self?.takeIn(accepted, failed)
            }
        } catch {
            throw .socket(EMFILE)
        }
    }

    private static func boundSocket(on adapter: BluetoothAddress) throws(BluetoothSocket.Fault)
        -> BluetoothSocket
    {
        var taken = BluetoothSocket.Fault(number: EADDRINUSE)
        for channel in BluetoothDestination.channels.shuffled() {
            do throws(BluetoothSocket.Fault) {
                return try .stream(on: adapter, channel: channel)
            } catch {
                guard error.number == EADDRINUSE else { throw error }
                taken = error
            }
        }
        throw taken
    }

    private func takeIn(
        _ accepted: (BluetoothSocket) -> Void, _ failed: (BluetoothFault) -> Void
    ) {
        do throws(BluetoothSocket.Fault) {
            for _ in 0..<Self.share {
                guard watch != nil, let caller = try socket.accept() else { return }
                accepted(caller)
            }
        } catch {
            close()
            failed(.socket(error.number))
        }
    }

    /// Listens no more; pipes that came in stay.
    func close() {
        watch?.cancel()
        watch = nil
        socket.close()
    }

    deinit { close() }
}
