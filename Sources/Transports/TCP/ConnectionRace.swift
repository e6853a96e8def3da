import Glibc
import NighCore
import NighUV

/// Dials all addresses of a peer in the manner of Happy Eyeballs (RFC 8305). Each address gets a short head start, and
/// the next one joins without waiting for those before to fail. The first that connects wins, and the others are
/// closed. Loop only.
final class ConnectionRace {
    /// How long an address is tried alone before the next one joins.
    static let headStart = Moment.Span.milliseconds(250)
    /// The most addresses that are tried. The rest is ignored.
    static let addressLimit = 32

    /// A socket that is being connected. Releasing the attempt closes the socket, unless the descriptor was taken.
    private final class Attempt {
        let address: SocketAddress
        var connecting: ConnectingSocket?
        private(set) var descriptor: Int32

        init(_ address: SocketAddress, by interface: String?) throws(SocketFault) {
            self.address = address
            descriptor = try TCPSocket.make(family: address.family, interface: interface)
        }

        deinit {
            connecting?.cancel()
            if descriptor >= 0 { close(descriptor) }
        }

        func take() -> Int32 {
            defer { descriptor = -1 }
            return descriptor
        }
    }

    private let loop: UVEventLoop
    private let interface: String?
    private let completion: (Result<TCPConnection, NighError>) -> Void
    private var left: ArraySlice<SocketAddress>
    private var running: [Attempt] = []
    private var failures: [NighError] = []
    private var nextStart: LoopTimer?
    private var isOver = false

    /// Creates a race over `addresses` in this order, through `interface` if one is named. `completion` is called once,
    /// unless `stop` comes first.
    init(
        _ addresses: [SocketAddress], by interface: String?, on loop: UVEventLoop,
        completion: @escaping (Result<TCPConnection, NighError>) -> Void
    ) {
        self.loop = loop
        self.interface = interface
        self.completion = completion
        left = addresses.prefix(Self.addressLimit)
    }

    /// Begins. Call it in a turn of its own, not from inside a call of the session.
    func start() { startNext() }

    /// Ends the race: closes all connections in progress, and reports nothing.
    func stop() {
        isOver = true
        if let nextStart { loop.cancel(nextStart) }
        nextStart = nil
        running = []
    }

    /// Returns the error of a race whose time is over: the results so far, as the failure of the whole.
    func failureOfTimeout() -> NighError {
        let silent = running.map { attempt in
            NighError(
                .connecting, .timedOut, peer: attempt.address.description,
                transport: TCPTransport.schemeName, advice: SocketFault.silenceAdvice(attempt.address.port))
        }
        var error = Self.summary(failures + silent)
        error.cause = .timedOut
        return error
    }

    private func startNext() {
        if let nextStart { loop.cancel(nextStart) }
        nextStart = nil
        while !isOver, let address = left.popFirst() {
            do throws(SocketFault) {
                try connect(to: address)
                guard !left.isEmpty else { return }
                nextStart = loop.schedule(at: loop.now + Self.headStart) { [weak self] in
                    self?.nextStart = nil
                    self?.startNext()
                }
                return
            } catch {
                failures.append(error.dialError(address))
            }
        }
        guard !isOver, running.isEmpty else { return }
        finish(.failure(Self.summary(failures)))
    }

    private func connect(to address: SocketAddress) throws(SocketFault) {
        let attempt = try Attempt(address, by: interface)
        let status = address.withSockaddr { Glibc.connect(attempt.descriptor, $0, $1) }
        guard status == 0 || errno == EINPROGRESS else { throw SocketFault(errno) }
        // The race holds its attempts, which report nothing once they are released.
        attempt.connecting = try ConnectingSocket(connecting: attempt.descriptor, on: loop) {
            [unowned self, unowned attempt] in
            ended(attempt, $0)
        }
        running.append(attempt)
    }

    private func ended(_ attempt: Attempt, _ result: Result<Void, SocketFault>) {
        guard !isOver, let index = running.firstIndex(where: { $0 === attempt }) else { return }
        running.remove(at: index)
        do throws(SocketFault) {
            try result.get()
            let descriptor = attempt.descriptor
            // A socket can connect to itself: if nobody listens at a port, the system may choose that port for this
            // end.
            let (own, other) = TCPSocket.ends(of: descriptor)
            guard own != other else { throw SocketFault(ECONNREFUSED) }
            stop()
            finish(
                Result { () throws(NighError) in
                    try TCPConnection(attempt.take(), from: own, to: other, by: interface, on: loop)
                })
        } catch {
            failures.append(error.dialError(attempt.address))
            if nextStart != nil || running.isEmpty { startNext() }
        }
    }

    private func finish(_ result: Result<TCPConnection, NighError>) {
        isOver = true
        completion(result)
    }

    private static func summary(_ failures: [NighError]) -> NighError {
        guard failures.count != 1 else { return failures[0] }
        let causes = Set(failures.map(\.cause))
        return NighError(
            .connecting, causes.count == 1 ? failures[0].cause : .allFailed,
            transport: TCPTransport.schemeName,
            advice: failures.isEmpty ? "no address of it is known" : nil, attempts: failures)
    }
}

extension [SocketAddress] {
    /// The addresses in the order in which they are worth trying, without duplicates: the machine itself, then the two
    /// families in turn, IPv6 first, and link-local addresses behind the others of their family.
    var inDialOrder: [SocketAddress] {
        let unique = unique
        func ranked(_ family: [SocketAddress]) -> [SocketAddress] {
            family.filter { !$0.isLinkLocal } + family.filter(\.isLinkLocal)
        }
        let loopback = unique.filter(\.isLoopback)
        let others = unique.filter { !$0.isLoopback }
        let six = ranked(others.filter(\.isIPv6))
        let four = ranked(others.filter { !$0.isIPv6 })
        var ordered = loopback
        for index in 0..<Swift.max(six.count, four.count) {
            if index < six.count { ordered.append(six[index]) }
            if index < four.count { ordered.append(four[index]) }
        }
        return ordered
    }

    /// The addresses without duplicates.
    var unique: [SocketAddress] {
        var seen: Set<SocketAddress> = []
        return filter { seen.insert($0).inserted }
    }
}
