import Glibc
import NighCore
import NighUV

/// Waits until a socket that has begun to connect is connected, or will never be. Confined to its loop.
final class ConnectingSocket {
    private let socket: BluetoothSocket
    private var watch: DescriptorWatch?

    /// Tells once how it went, never from inside this call; nothing after `stop`.
    init(
        _ socket: BluetoothSocket, on loop: UVEventLoop,
        then decided: @escaping (Result<BluetoothSocket, BluetoothFault>) -> Void
    ) throws(BluetoothFault) {
        self.socket = socket
        do throws(NighError) {
            watch = try loop.watch(socket.descriptor, for: .writable) { [weak self] _ in self?.look(decided) }
        } catch {
            throw .socket(EMFILE)
        }
    }

    /// Gives it up. The socket is closed when whoever else holds it lets go of it.
    func stop() {
        watch?.cancel()
        watch = nil
    }

    private func look(_ decided: (Result<BluetoothSocket, BluetoothFault>) -> Void) {
        guard watch != nil else { return }
        do throws(BluetoothSocket.Fault) {
            guard try socket.isConnected() else {
                watch?.resume()
                return
            }
            stop()
            decided(.success(socket))
        } catch {
            stop()
            decided(.failure(.socket(error.number)))
        }
    }
}
