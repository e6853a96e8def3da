import Glibc
import NighCore

/// The dials of a transport whose wire is a stream socket of any kind: each ends once, with a pipe or an error, or is cancelled and
/// nothing is told of it.
///
/// To be used on its loop only; hence `@unchecked Sendable`.
public final class SocketDials: @unchecked Sendable {
    private enum Dial {
        case connecting(ConnectingSocket, descriptor: Int32)
        /// Failed already, which is told in the next turn.
        case refused
    }

    private let scheme: String
    private let loop: UVEventLoop
    private let ended: (DialID, Result<SocketPipe, NighError>) -> Void
    private var dials: [DialID: Dial] = [:]

    /// How many are under way.
    public var count: Int { dials.count }

    /// None so far. `ended` is told the outcome of each, on the loop and never from inside a call; the pipe is to be started in the same
    /// turn, as pipes are.
    ///
    /// - Parameter scheme: the transport's, for errors.
    public init(
        scheme: String, on loop: UVEventLoop,
        ended: @escaping (DialID, Result<SocketPipe, NighError>) -> Void
    ) {
        self.scheme = scheme
        self.loop = loop
        self.ended = ended
    }

    deinit { cancelAll() }

    /// Begins to connect `descriptor`, a new stream socket that this owns from here on, to `address`, the bytes of a `sockaddr`. Where there
    /// is no descriptor, since the system had none, the reason is taken from `errno`.
    public func dial(
        _ dial: DialID, with descriptor: Int32, to address: UnsafeRawBufferPointer,
        remoteAddress: TransportAddress? = nil, timeout: Duration
    ) {
        guard descriptor >= 0 else { return refuse(dial, error(SocketFault(errno))) }
        let connecting = ConnectingSocket(descriptor, to: address, timeout: timeout, on: loop) {
            [weak self] in
            self?.decided(dial, $0, remoteAddress)
        }
        dials[dial] = .connecting(connecting, descriptor: descriptor)
    }

    /// Has a dial fail that cannot even begin, such as one of an address that is none.
    public func refuse(_ dial: DialID, _ error: NighError) {
        dials[dial] = .refused
        loop.execute { [weak self] in self?.end(dial, .failure(error)) }
    }

    /// Gives a dial up, of which nothing is told then. Ignored when it is not under way.
    public func cancel(_ dial: DialID) {
        guard case .connecting(let connecting, let descriptor)? = dials.removeValue(forKey: dial) else {
            return
        }
        connecting.cancel()
        close(descriptor)
    }

    /// Gives all up.
    public func cancelAll() { for dial in Array(dials.keys) { cancel(dial) } }

    private func decided(
        _ dial: DialID, _ outcome: Result<Void, SocketFault>, _ remoteAddress: TransportAddress?
    ) {
        guard case .connecting(_, let descriptor)? = dials[dial] else { return }
        do throws(NighError) {
            if case .failure(let fault) = outcome { throw error(fault) }
            let pipe = try SocketPipe(
                descriptor: descriptor, scheme: scheme, remoteAddress: remoteAddress, on: loop)
            end(dial, .success(pipe))
        } catch {
            close(descriptor)
            end(dial, .failure(error))
        }
    }

    private func end(_ dial: DialID, _ outcome: Result<SocketPipe, NighError>) {
        if dials.removeValue(forKey: dial) != nil { ended(dial, outcome) }
    }

    private func error(_ fault: SocketFault) -> NighError {
        // At a path where nothing is nobody listens.
        let meant = fault.number == ENOENT ? SocketFault(ECONNREFUSED) : fault
        return meant.error(.connecting, transport: scheme)
    }
}
