import NighCore
import NighForwarding
import NighTestKit
import Testing

/// A program's end of a forwarded connection, in memory. The test is the program.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
final class Program: LocalConnection, @unchecked Sendable {
    private let loop: VirtualEventLoop
    private var handler: (any LocalConnectionHandler)?
    private var isReading = false
    private var hasToldEnd = false
    private var hasToldClosed = false
    private var isTurnDue = false
    private var owesRoom = false

    /// The bytes that the program sends and the connection has not read.
    private(set) var unsent: [UInt8] = []
    private var hasFinished = false
    /// Whether the program sends without end.
    var sendsForever = false { didSet { tellLater() } }
    /// The bytes that were read from the program.
    private(set) var taken = 0
    /// The bytes that the program was sent.
    private(set) var received: [UInt8] = []
    private(set) var receivedCount = 0
    /// How many bytes the program reads of what it is sent; the others wait, up to 64 KiB.
    var reads = Int.max { didSet { tellLater() } }
    /// Whether what comes is kept, and not only counted.
    var keeps = true
    private(set) var hasEnd = false
    private(set) var wasReset = false
    private var hasCrashed = false

    init(on loop: VirtualEventLoop) { self.loop = loop }

    // MARK: The program

    func send(_ bytes: [UInt8]) {
        unsent += bytes
        tellLater()
    }

    func finish() {
        hasFinished = true
        tellLater()
    }

    /// The program is killed with unread bytes, so its connection is reset.
    func crash() {
        hasCrashed = true
        tellLater()
    }

    // MARK: The connection

    private static let mostWaiting = 64 << 10

    var writableBytes: Int { Self.mostWaiting - waiting }

    /// The bytes that were sent to the program and that it has not read.
    private var waiting: Int { max(0, receivedCount - reads) }

    func start(handler: any LocalConnectionHandler) {
        self.handler = handler
        resumeReading()
    }

    func write(_ queue: inout ByteQueue) {
        #expect(!hasEnd && !wasReset)
        receivedCount += queue.byteCount
        if keeps { received += queue.bytes }
        queue.removeAll()
        if writableBytes <= 0 { owesRoom = true }
    }

    func finishWriting() {
        hasEnd = true
        tellLater()
    }

    func pauseReading() { isReading = false }

    func resumeReading() {
        isReading = true
        tellLater()
    }

    func reset() {
        wasReset = true
        handler = nil
    }

    private func tellLater() {
        guard !isTurnDue else { return }
        isTurnDue = true
        loop.execute { [self] in
            isTurnDue = false
            tell()
        }
    }

    private func tell() {
        guard let handler, !hasToldClosed else { return }
        if hasCrashed {
            hasToldClosed = true
            self.handler = nil
            return handler.closed(NighError(.conversing, .reset))
        }
        if owesRoom, writableBytes > 0 {
            owesRoom = false
            handler.becameWritable()
        }
        if isReading, sendsForever || !unsent.isEmpty {
            let piece = sendsForever ? [UInt8](repeating: 7, count: 16 << 10) : Array(unsent.prefix(16 << 10))
            if !sendsForever { unsent.removeFirst(piece.count) }
            taken += piece.count
            handler.received(ByteSlice(piece))
            tellLater()
        } else if isReading, hasFinished, !hasToldEnd {
            hasToldEnd = true
            handler.ended()
        }
        if hasToldEnd, hasEnd, !hasToldClosed {
            hasToldClosed = true
            handler.closed(nil)
        }
    }
}

/// The programs that listen on ports of one device.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
final class Ports: LocalDialler, @unchecked Sendable {
    private let loop: VirtualEventLoop
    /// The ports on which programs listen.
    var listening: Set<UInt16> = []
    private(set) var accepted: [Program] = []
    /// The ports to which somebody wanted a connection.
    private(set) var asked: [UInt16] = []

    init(on loop: VirtualEventLoop) { self.loop = loop }

    func connect(
        to port: UInt16,
        completion: @escaping @Sendable (Result<any LocalConnection, ForwardingRefusal>) -> Void
    ) {
        asked.append(port)
        loop.execute { [self] in
            guard listening.contains(port) else { return completion(.failure(.nobodyListens)) }
            let program = Program(on: loop)
            accepted.append(program)
            completion(.success(program))
        }
    }
}

/// Two connected sessions in virtual time: Puma's programs connect to ports of Lynx.
final class ForwardingPair {
    /// The outcome of one connection at Puma.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    final class Outcome: @unchecked Sendable {
        var grace: Duration?
        var isClosed = false
        var error: NighError?
    }

    private let sessions: VirtualPair<ExposedPorts>
    let client: ForwardingClient
    let ports: Ports

    init(
        _ policy: ForwardingPolicy = ForwardingPolicy(ports: [22]),
        limits: ForwardingLimits = ForwardingLimits(), isPaired: Bool = true, lynxExposes: Bool = true,
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) throws {
        let loop = VirtualEventLoop(workLimit: 20_000_000)
        let ports = Ports(on: loop)
        self.ports = ports
        ports.listening = [22]
        sessions = try VirtualPair(
            on: loop, lynxHasLayer: lynxExposes, configure: configure
        ) {
            ExposedPorts(policy, limits: limits, dialling: ports)
        }
        client = ForwardingClient(sessions.puma.session)
        if isPaired { lynx.session.trust.pair(puma.session.id, name: DisplayName(fitting: "puma")) }
    }

    var puma: VirtualPair<ExposedPorts>.Member { sessions.puma }
    var lynx: VirtualPair<ExposedPorts>.Member { sessions.lynx }
    var members: [VirtualPair<ExposedPorts>.Member] { [puma, lynx] }
    /// The connections that each side has open.
    var openCounts: [Int] { [client.counts.open, lynx.layer.counts.open] }

    /// A program of Puma's connects to a port of Lynx.
    func connect(to port: UInt16 = 22) -> (Program, Outcome) {
        let program = Program(on: sessions.loop)
        let outcome = Outcome()
        client.carry(
            program, to: port, at: lynx.session.id, opened: { outcome.grace = $0 },
            closed: { _, _, error in
                outcome.isClosed = true
                outcome.error = error
            })
        return (program, outcome)
    }

    /// Both ends of a connection that is open.
    func open() throws -> (puma: Program, lynx: Program, Outcome) {
        let (program, outcome) = connect()
        try run(.milliseconds(200))
        #expect(outcome.grace != nil && outcome.error == nil)
        return (program, try #require(ports.accepted.last), outcome)
    }

    func run(_ time: Duration = .seconds(2)) throws {
        try sessions.run(time)
        for member in members { #expect(member.session.inconsistencies == []) }
    }

    /// Breaks the link, and lets no other one be made.
    func loseLink() {
        for member in members {
            member.faults.block(dials: .refuse)
            member.faults.cut()
        }
    }

    /// Has every new link take 25 ms each way, and this many bytes in a second.
    func delayLinks(bytesPerSecond: Int? = nil) {
        for member in members {
            member.faults.plan.delay = .milliseconds(25)
            member.faults.plan.bytesPerSecond = bytesPerSecond
            member.faults.plan.direction = .outgoing
            member.faults.cut()
        }
    }

    /// Closes both sessions, after which nothing may be left.
    func close() throws {
        try sessions.close()
        #expect(openCounts == [0, 0])
        #expect(client.heldByteCount == 0 && lynx.layer.heldByteCount == 0)
    }
}

/// Bytes that differ everywhere.
func pattern(_ count: Int, _ seed: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 31 &+ ($0 &+ seed) >> 8) }
}
