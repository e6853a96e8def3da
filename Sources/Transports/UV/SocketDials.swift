import Glibc
import NighCore

/// The dials of a transport that uses stream sockets of any kind.
public typealias SocketDials = Dials<SocketPipe>

extension Dials where Opened == SocketPipe {
    /// Begins to connect `descriptor`, a new stream socket, to `address`, the bytes of a `sockaddr`. The dial owns the
    /// descriptor from now on. If there is no descriptor because the system had none, the reason is taken from `errno`.
    public func dial(
        _ dial: DialID, with descriptor: Int32, to address: UnsafeRawBufferPointer,
        remoteAddress: TransportAddress? = nil, timeout: Duration
    ) {
        guard descriptor >= 0 else { return refuse(dial, error(SocketFault(errno))) }
        let connecting = ConnectingSocket(descriptor, to: address, timeout: timeout, on: loop) {
            [weak self] in
            self?.decided(dial, descriptor, $0, remoteAddress)
        }
        begin(dial)
        follow(
            dial,
            stop: {
                connecting.cancel()
                close(descriptor)
            })
    }

    private func decided(
        _ dial: DialID, _ descriptor: Int32, _ outcome: Result<Void, SocketFault>,
        _ remoteAddress: TransportAddress?
    ) {
        do throws(NighError) {
            if case .failure(let fault) = outcome { throw error(fault) }
            let pipe = try SocketPipe(
                descriptor: descriptor, scheme: scheme, remoteAddress: remoteAddress, on: loop)
            end(dial, .success(pipe))
        } catch {
            end(dial, .failure(error))
        }
    }

    private func error(_ fault: SocketFault) -> NighError {
        // If the path does not exist, nobody listens there.
        let meant = fault.number == ENOENT ? SocketFault(ECONNREFUSED) : fault
        return meant.error(.connecting, transport: scheme)
    }
}
