import CUV
import NighCore
import NighUV

/// Dials all addresses of somebody in the manner of Happy Eyeballs (RFC 8305): one after another with a short
/// head start each, without waiting for those before to fail; the first that answers wins, the others are closed. Loop only.
///
/// `@unchecked Sendable`: confined to its loop.
final class ConnectionRace: @unchecked Sendable {
    /// How long an address may try alone before the next one joins.
    static let headStart = Moment.Span.milliseconds(250)
    /// Of more addresses than this the rest is not tried.
    static let addressLimit = 32

    private final class Attempt {
        let address: SocketAddress
        let pipe: TCPPipe
        init(_ address: SocketAddress, _ pipe: TCPPipe) {
            self.address = address
            self.pipe = pipe
        }
    }

    private let loop: UVEventLoop
    private let makePipe: (SocketAddress) throws(UVError) -> TCPPipe
    private let whenOver: (Result<TCPPipe, NighError>) -> Void
    private var left: ArraySlice<SocketAddress>
    private var running: [Attempt] = []
    private var failures: [NighError] = []
    private var nextStart: LoopTimer?
    private var isOver = false

    /// A race over `addresses` in this order. `whenOver` is called once, and never from inside `start` or `stop`, unless `stop`
    /// comes first.
    init(
        _ addresses: [SocketAddress], on loop: UVEventLoop,
        makePipe: @escaping (SocketAddress) throws(UVError) -> TCPPipe,
        whenOver: @escaping (Result<TCPPipe, NighError>) -> Void
    ) {
        self.loop = loop
        self.makePipe = makePipe
        self.whenOver = whenOver
        left = addresses.prefix(Self.addressLimit)
    }

    /// Begins. To be called from a turn of its own, not from inside a call of the session's.
    func start() { startNext() }

    /// Ends it: closes what is under way, and nothing is told.
    func stop() {
        isOver = true
        if let nextStart { loop.cancel(nextStart) }
        nextStart = nil
        for attempt in running { attempt.pipe.finish() }
        running = []
    }

    /// The time is over: what it has come to so far, as the failure of the whole.
    func failureOfTimeout() -> NighError {
        let silent = running.map { attempt in
            NighError(
                .connecting, .timedOut, peer: attempt.address.description,
                transport: TCPTransport.schemeName, advice: UVError.silenceAdvice(attempt.address.port))
        }
        var error = Self.summary(failures + silent)
        error.cause = .timedOut
        return error
    }

    private func startNext() {
        if let nextStart { loop.cancel(nextStart) }
        nextStart = nil
        while !isOver, let address = left.popFirst() {
            do throws(UVError) {
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

    /// What libuv hands back with the outcome.
    private final class Request {
        weak var race: ConnectionRace?
        let attempt: Attempt
        init(_ race: ConnectionRace, _ attempt: Attempt) {
            self.race = race
            self.attempt = attempt
        }
    }

    private func connect(to address: SocketAddress) throws(UVError) {
        let attempt = Attempt(address, try makePipe(address))
        let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
        request.pointee.data = Unmanaged.passRetained(Request(self, attempt)).toOpaque()
        let status = address.withSockaddr { socket, _ in
            uv_tcp_connect(request, attempt.pipe.tcp, socket) { request, status in
                guard let request, let data = request.pointee.data else { return }
                request.deallocate()
                let told = Unmanaged<Request>.fromOpaque(data).takeRetainedValue()
                told.race?.ended(told.attempt, status)
            }
        }
        guard status == 0 else {
            if let data = request.pointee.data { Unmanaged<Request>.fromOpaque(data).release() }
            request.deallocate()
            attempt.pipe.finish()
            throw UVError(code: status)
        }
        running.append(attempt)
    }

    private func ended(_ attempt: Attempt, _ status: Int32) {
        guard !isOver, let index = running.firstIndex(where: { $0 === attempt }) else { return }
        running.remove(at: index)
        // Closed by a loop that ends: nothing may be begun there any more, and there is nobody to tell.
        guard status != UV_ECANCELED.rawValue else { return isOver = true }
        if status == 0, attempt.pipe.ownAddress != attempt.pipe.otherAddress {
            attempt.pipe.becomeOpen()
            stop()
            return finish(.success(attempt.pipe))
        }
        // A socket can come to connect to itself, when nobody listens at a port that the system then chooses for this end.
        let error = status == 0 ? UVError(code: UV_ECONNREFUSED.rawValue) : UVError(code: status)
        attempt.pipe.finish()
        failures.append(error.dialError(attempt.address))
        if nextStart != nil || running.isEmpty { startNext() }
    }

    private func finish(_ result: Result<TCPPipe, NighError>) {
        isOver = true
        whenOver(result)
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
    /// In the order in which they are worth trying: the machine itself, then the two families in turn, IPv6 first, and
    /// link-local addresses behind the others of their family. None twice.
    var inOrderOfPromise: [SocketAddress] {
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

    /// None twice.
    var unique: [SocketAddress] {
        var seen: Set<SocketAddress> = []
        return filter { seen.insert($0).inserted }
    }
}
