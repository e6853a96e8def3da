import CBenchmark
import NighLoop

/// A session that does the work of the peers in C, with the same command line. `--way` says how its program takes
/// messages.
///
/// It sets nothing that a program would not set: messages are reliable, acknowledged and resumable, and limits have
/// their defaults. There are two exceptions: the limits on the number of peers, and plaintext sessions for the
/// comparison with plaintext peers.
enum Program {
    /// How the program takes its messages.
    enum Reading: String {
        /// A handler on the loop.
        case handler
        /// A task on the loop that reads the inbox.
        case inbox
        /// A task of the global pool that reads the inbox.
        case pool
    }

    static func run() {
        let options = benchmark_begin(CommandLine.argc, CommandLine.unsafeArgv)
        let words = String(cString: options.way).split(separator: "-")
        if let unknown = words.first(where: { !isKnown($0, to: options.work) }) {
            benchmark_unsupported("bench-session has no way \"\(unknown)\"")
        }
        let reading = words.lazy.compactMap { Reading(rawValue: String($0)) }.first ?? .handler
        let setting = BenchmarkSetting(
            options: options, reading: reading, security: words.contains("tls") ? .encrypted : .none,
            isOverBluetooth: words.contains("bluetooth"), isOverNATS: words.contains("nats"),
            isBesideStream: words.contains("beside"),
            reliability: words.contains("packets") ? .unordered : .reliable, loop: UVEventLoop())
        if words.contains("channel") {
            let side = ChannelSide(setting)
            return options.serves ? side.serve() : side.call()
        }
        if words.contains("questions") || words.contains("actor") {
            let side = CallSide(setting, callsActor: words.contains("actor"))
            return options.serves ? side.serve() : side.call()
        }
        switch (options.work, options.serves) {
        case (BENCHMARK_STREAM, true) where words.contains("bytes"): BytesReceiver(setting).run()
        case (BENCHMARK_STREAM, false) where words.contains("bytes"): BytesSender(setting).run()
        case (BENCHMARK_STREAM, true), (BENCHMARK_BROADCAST, false): StreamReceiver(setting).run()
        case (BENCHMARK_STREAM, false), (BENCHMARK_BROADCAST, true): StreamSender(setting).run()
        case (BENCHMARK_ROUND_TRIP, false): RoundTripClient(setting).connect()
        case (BENCHMARK_CONNECT, false): Caller(setting).connect()
        case (BENCHMARK_FOUND, _): DiscoveryTime(setting).run()
        case (BENCHMARK_IDLE, _): IdlePeers(setting, isMirrored: words.contains("mirrored")).run()
        default: Echo(setting).serve()
        }
    }

    /// Whether the word of `--way` means something. If it does not, this program must not do something else instead.
    private static func isKnown(_ word: Substring, to work: benchmark_work) -> Bool {
        // There `--way` chooses the means of mDNS.
        if work == BENCHMARK_FOUND { return true }
        let others = [
            "tls", "bluetooth", "nats", "beside", "packets", "channel", "bytes", "mirrored", "questions",
            "actor",
        ]
        return Reading(rawValue: String(word)) != nil || others.contains(String(word))
    }
}

/// The settings that every kind of work needs.
struct BenchmarkSetting: @unchecked Sendable {
    // The options point into the command line, which nobody changes; hence `@unchecked Sendable`.
    let options: benchmark_options
    let reading: Program.Reading
    let security: SessionSecurity
    /// Whether it runs over Bluetooth, with the server on the adapter hci1 and the client on hci0; otherwise it uses
    /// TCP on loopback.
    let isOverBluetooth: Bool
    /// Whether it runs over the NATS server that the command line names.
    let isOverNATS: Bool
    /// Whether round trips are measured while a stream to the same peer is written as fast as possible.
    let isBesideStream: Bool
    /// How messages of round trips are sent. Unreliable ones travel as packets.
    let reliability: Reliability
    let loop: UVEventLoop

    var transport: String {
        if isOverBluetooth { return "bluetooth:adapter=hci\(options.serves ? 1 : 0)" }
        if isOverNATS { return "nats:server=\(String(cString: options.broker))" }
        // Work that measures discovery chooses the means of mDNS. All other work stays within this machine.
        return options.work == BENCHMARK_FOUND
            ? "tcp:mdns=\(String(cString: options.way))" : "tcp:interface=lo,mdns=off"
    }

    var size: Int { options.size }
    var peers: Int { Int(options.peers) }

    func session(_ role: SessionRole) -> LowLevelSession {
        var configuration = SessionConfiguration(
            service: "bench", name: DisplayName(fitting: "bench"), role: role)
        configuration.security = security
        configuration.limits.peers = max(configuration.limits.peers, peers)
        configuration.limits.knownPeers = max(configuration.limits.knownPeers, peers)
        configuration.limits.unauthenticatedPipes = max(configuration.limits.unauthenticatedPipes, peers)
        let transports = Self.demand { () throws(NighError) in
            try TransportRegistry.standard.makeAll(transport)
        }
        return LowLevelSession(configuration, identity: .ephemeral(), transports: transports, loop: loop)
    }

    /// Returns the address of the server number `index`.
    func address(_ index: Int = 0) -> TransportAddress {
        if isOverBluetooth {
            return TransportAddress(scheme: "bluetooth", value: String(cString: options.port))
        }
        if isOverNATS { return TransportAddress(scheme: "nats", value: String(cString: options.port)) }
        let ports = String(cString: options.port).split(separator: ",")
        return TransportAddress(scheme: "tcp", value: "127.0.0.1:\(ports[index])")
    }

    /// Starts a session that accepts every caller. `listening` gets its port once.
    func accept(
        with session: LowLevelSession, onMessage: MessageHandler?,
        listening: @escaping @Sendable (String) -> Void = { benchmark_report_port($0) },
        connected: @escaping @Sendable (PeerID) -> Void = { _ in },
        streamOpened: @escaping @Sendable (ByteStream) -> Void = Self.drain
    ) {
        let isPortReported = Once()
        session.start(
            onEvent: { event in
                switch event {
                case .listening(_, let addresses):
                    guard let address = addresses.first?.value, isPortReported.isFirst() else { return }
                    listening(
                        isOverBluetooth || isOverNATS
                            ? address : String(address.split(separator: ":").last ?? ""))
                case .invited(let invitation): invitation.accept()
                case .connected(let peer), .reconnected(let peer): connected(peer.id)
                case .reconnecting(_, let cause), .disconnected(_, let cause): Self.fail(unlessLeaving: cause)
                case .streamOpened(let stream): streamOpened(stream)
                case .problem(let error): Self.fail("\(error)")
                default: break
                }
            }, onMessage: onMessage)
    }

    /// Starts a session that calls the server number `index`.
    func call(
        with session: LowLevelSession, index: Int = 0, onMessage: MessageHandler?,
        connected: @escaping @Sendable (PeerID) -> Void
    ) {
        session.start(
            onEvent: { event in
                switch event {
                case .reconnecting(_, let cause), .disconnected(_, let cause): Self.fail(unlessLeaving: cause)
                default: break
                }
            }, onMessage: onMessage)
        session.invite(at: address(index)) { result in
            connected(Self.demand { () throws(NighError) in try result.get() })
        }
    }

    /// Reads the inbox in the chosen way, unless the handler takes the messages.
    func read(
        _ session: LowLevelSession, _ handle: @escaping @Sendable (PeerID, UnsafeRawBufferPointer) -> Void
    ) {
        let messages = session.session.messages
        switch reading {
        case .handler: break
        case .inbox:
            Task(executorPreference: loop) {
                while let message = await messages.next() {
                    message.withBuffer { handle(message.sender, $0) }
                }
            }
        case .pool:
            Task {
                while let message = await messages.next() {
                    message.withBuffer { handle(message.sender, $0) }
                }
            }
        }
    }

    /// Ends the program if the conversation ended for any other reason, because then nothing was measured.
    static func fail(unlessLeaving error: NighError) {
        switch error.cause {
        case .left, .peerLeft, .closed, .linkLost, .reset: break
        default: fail("\(error)")
        }
    }

    static func fail(_ reason: String) -> Never { benchmark_fail("bench-session", reason) }

    @inline(__always)
    static func demand<Value>(_ call: () throws(NighError) -> Value) -> Value {
        do throws(NighError) { return try call() } catch { fail("\(error)") }
    }
}

/// Returns true on the first call only. `@unchecked Sendable`: called on one loop only.
final class Once: @unchecked Sendable {
    private var wasCalled = false

    func isFirst() -> Bool {
        defer { wasCalled = true }
        return !wasCalled
    }
}

extension Message {
    /// Calls `body` with the content in place, as C wants it.
    @inline(__always)
    func withBuffer(_ body: (UnsafeRawBufferPointer) -> Void) {
        withBytes { bytes in bytes.withUnsafeBytes(body) }
    }
}
