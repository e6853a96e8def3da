import Measuring

/// A kind of work that is measured, each in several sizes or with several numbers of peers.
enum Work: String, CaseIterable {
    case roundTrip = "round-trip"
    case packets
    case stream
    case bytes
    case beside
    case calls
    case callsAtOnce = "calls-at-once"
    case broadcast
    case connect
    case idle
    case found
    case files
    case forwarded
    case natsRoundTrip = "nats-round-trip"
    case natsStream = "nats-stream"

    /// A column of its table.
    struct Column: Hashable {
        var size: Int
        var peers: Int
    }

    func columns(_ options: Options) -> [Column] {
        switch self {
        case .roundTrip, .stream: sizes(options).map { Column(size: $0, peers: 1) }
        case .broadcast:
            (options.sizes ?? [1 << 10]).flatMap { size in
                options.peerCounts.map { Column(size: size, peers: $0) }
            }
        case .packets:
            (options.sizes ?? [64, 1_000]).filter { $0 <= 1_000 }.map { Column(size: $0, peers: 1) }
        case .bytes: [Column(size: options.sizes?.first ?? 64 << 10, peers: 1)]
        case .calls: (options.sizes ?? [64, 1 << 10]).map { Column(size: $0, peers: 1) }
        case .beside, .callsAtOnce: [Column(size: options.sizes?.first ?? 64, peers: 1)]
        case .connect: [Column(size: 16, peers: 1)]
        case .idle: [Column(size: 16, peers: 1_000)]
        case .found: [Column(size: 16, peers: 1)]
        case .files, .forwarded: [Column(size: options.fileSize, peers: 1)]
        case .natsRoundTrip, .natsStream:
            (options.sizes ?? [64, 1 << 10, 64 << 10]).map { Column(size: $0, peers: 1) }
        }
    }

    private func sizes(_ options: Options) -> [Int] {
        if let sizes = options.sizes { return sizes }
        guard options.isOverBluetooth else { return Options.allSizes }
        return self == .stream ? [1 << 10, 16 << 10, 64 << 10] : [32, 1_000]
    }

    func title(of column: Column) -> String {
        switch self {
        case .roundTrip, .packets, .stream, .bytes, .beside, .calls, .callsAtOnce, .files,
            .forwarded, .natsRoundTrip, .natsStream:
            Figures.size(column.size)
        case .broadcast: "\(Figures.size(column.size)) to \(Text.grouped(column.peers))"
        case .connect: "p50"
        case .idle, .found: ""
        }
    }

    /// The names of the last lines that server and client print.
    var lastResultNames: (server: String?, client: String) {
        switch self {
        case .roundTrip, .packets, .connect, .beside, .calls, .natsRoundTrip: (nil, "trips")
        case .stream, .bytes, .natsStream: ("nanoseconds", "processor")
        case .broadcast, .callsAtOnce: ("processor", "nanoseconds")
        case .idle: ("resident", "resident")
        case .found: (nil, "found")
        case .files, .forwarded: (nil, "nanoseconds")
        }
    }

    /// The work that the programs are started with. `Program.way` says how it differs for this work.
    var command: Work {
        switch self {
        case .bytes, .natsStream: .stream
        case .beside, .packets, .calls, .natsRoundTrip: .roundTrip
        default: self
        }
    }

    /// Whether all goes through a NATS server.
    var usesNATS: Bool { [.natsRoundTrip, .natsStream].contains(self) }

    /// Whether all programs run on one processor. The round trips then do not include the time to wake another one,
    /// which varies by a factor of two.
    var runsOnOneProcessor: Bool {
        [.roundTrip, .packets, .calls, .connect, .natsRoundTrip].contains(self)
    }

    /// Whether less is better, except of a metric that always is better when less.
    var measuresCost: Bool {
        ![.stream, .bytes, .callsAtOnce, .broadcast, .files, .forwarded, .natsStream].contains(self)
    }
}

/// A program that does the work.
struct Program: Hashable {
    let name: String
    /// The executable file.
    let executable: String
    /// The argument of `--way`.
    var way: String?
    /// The title in the tables.
    let title: String
    var works: Set<Work> = all
    /// Whether its traffic is encrypted. Encrypted programs are compared with each other.
    var isEncrypted = false

    /// The work of every messaging library.
    private static let all: Set<Work> = [.roundTrip, .stream, .broadcast, .connect, .idle]

    static let limit = "tcp"
    static let base = "libuv"
    static let encryptedBase = "tls"
    static let fileBase = "tls-file"
    static let forwardBase = "ssh"
    static let packetBase = "udp"
    static let encryptedPacketBase = "udp-sealed"
    static let callBase = "grpc"
    static let encryptedCallBase = "grpc-tls"
    static let bluetoothBase = "rfcomm"
    static let natsBase = "nats"
    static let encryptedNATSBase = "nats-tls"
    /// The programs to which the report has ratios.
    static let bases = [
        limit, base, bluetoothBase, fileBase, packetBase, callBase, forwardBase, natsBase, encryptedNATSBase,
    ]

    static func all(_ options: Options, ownIn own: String) -> [Program] {
        let (peers, session) = (options.peersFolder, "\(own)/bench-session")
        let system = "/usr/bin"
        if options.isOverBluetooth { return overBluetooth(peers, session) }
        return [
            Program(
                name: limit, executable: "\(peers)/peer-tcp", title: "raw sockets", works: all.union([.bytes])
            ),
            Program(
                name: base, executable: "\(peers)/peer-libuv", title: "libuv in C", works: all.union([.bytes])
            ),
            Program(name: "zeromq", executable: "\(peers)/peer-zeromq", title: "ZeroMQ"),
            Program(name: "nng", executable: "\(peers)/peer-nng", title: "NNG"),
            Program(name: "nanomsg", executable: "\(peers)/peer-nanomsg", title: "nanomsg"),
            Program(name: "enet", executable: "\(peers)/peer-enet", title: "ENet reliable"),
            Program(
                name: callBase, executable: "\(peers)/peer-grpc", way: "unary", title: "gRPC",
                works: [.calls, .callsAtOnce]),
            Program(
                name: "grpc-stream", executable: "\(peers)/peer-grpc", way: "stream",
                title: "gRPC, messages of one stream", works: [.calls]),
            Program(name: "ours", executable: session, way: "handler", title: "Nigh, handler"),
            // The programs differ in how messages are read, which does not affect connecting.
            Program(
                name: "ours-inbox", executable: session, way: "inbox", title: "Nigh, inbox on the loop",
                works: [.roundTrip, .stream]),
            Program(
                name: "ours-pool", executable: session, way: "pool", title: "Nigh, task of the global pool",
                works: [.roundTrip, .stream, .calls]),
            Program(
                name: "ours-questions", executable: session, way: "questions", title: "Nigh, questions",
                works: [.calls, .callsAtOnce]),
            Program(
                name: "ours-actor", executable: session, way: "actor", title: "Nigh, distributed actor",
                works: [.calls, .callsAtOnce]),
            Program(
                name: "ours-channel", executable: session, way: "channel", title: "Nigh, channel",
                works: [.roundTrip, .stream]),
            Program(
                name: "ours-bytes", executable: session, way: "pool-bytes", title: "Nigh", works: [.bytes]),
            Program(
                name: "ours-quiet", executable: session, way: "handler", title: "Nigh, without the stream",
                works: [.beside]),
            Program(
                name: "ours-beside", executable: session, way: "handler-beside", title: "Nigh",
                works: [.beside]),
            Program(
                name: encryptedBase, executable: "\(peers)/peer-tls", title: "OpenSSL over sockets",
                works: all.union([.bytes]), isEncrypted: true),
            Program(
                name: "zeromq-curve", executable: "\(peers)/peer-zeromq", way: "curve",
                title: "ZeroMQ with CURVE", isEncrypted: true),
            Program(
                name: "nng-tls", executable: "\(peers)/peer-nng", way: "tls", title: "NNG with TLS 1.2",
                works: [.roundTrip, .stream, .connect, .idle], isEncrypted: true),
            Program(
                name: encryptedCallBase, executable: "\(peers)/peer-grpc", way: "unary-tls",
                title: "gRPC with TLS", works: [.calls, .callsAtOnce], isEncrypted: true),
            Program(
                name: "grpc-tls-stream", executable: "\(peers)/peer-grpc", way: "stream-tls",
                title: "gRPC with TLS, messages of one stream", works: [.calls], isEncrypted: true),
            Program(
                name: "ours-tls", executable: session, way: "handler-tls", title: "Nigh under TLS, handler",
                isEncrypted: true),
            Program(
                name: "ours-tls-inbox", executable: session, way: "inbox-tls",
                title: "Nigh under TLS, inbox on the loop", works: [.roundTrip, .stream], isEncrypted: true),
            Program(
                name: "ours-tls-pool", executable: session, way: "pool-tls",
                title: "Nigh under TLS, task of the global pool", works: [.calls], isEncrypted: true),
            Program(
                name: "ours-tls-questions", executable: session, way: "questions-tls",
                title: "Nigh under TLS, questions", works: [.calls, .callsAtOnce], isEncrypted: true),
            Program(
                name: "ours-tls-actor", executable: session, way: "actor-tls",
                title: "Nigh under TLS, distributed actor", works: [.calls, .callsAtOnce], isEncrypted: true),
            Program(
                name: "ours-tls-bytes", executable: session, way: "pool-bytes-tls", title: "Nigh under TLS",
                works: [.bytes], isEncrypted: true),
            Program(
                name: "ours-tls-quiet", executable: session, way: "handler-tls",
                title: "Nigh under TLS, without the stream", works: [.beside], isEncrypted: true),
            Program(
                name: "ours-tls-beside", executable: session, way: "handler-beside-tls",
                title: "Nigh under TLS", works: [.beside], isEncrypted: true),
            Program(
                name: packetBase, executable: "\(peers)/peer-udp", way: "plain", title: "raw UDP sockets",
                works: [.packets]),
            Program(
                name: "enet-unreliable", executable: "\(peers)/peer-enet", way: "unreliable",
                title: "ENet unreliable", works: [.packets]),
            Program(
                name: "ours-packets", executable: session, way: "handler-packets", title: "Nigh, handler",
                works: [.packets]),
            Program(
                name: encryptedPacketBase, executable: "\(peers)/peer-udp", way: "sealed",
                title: "UDP sockets with AES-128-GCM", works: [.packets], isEncrypted: true),
            Program(
                name: "ours-tls-packets", executable: session, way: "handler-packets-tls",
                title: "Nigh under TLS, handler", works: [.packets], isEncrypted: true),
            Program(
                name: "avahi", executable: session, way: "avahi", title: "avahi-publish, avahi-browse",
                works: [.found]),
            Program(
                name: "ours-daemon", executable: session, way: "daemon", title: "Nigh with avahi-daemon",
                works: [.found]),
            Program(
                name: "ours-embedded", executable: session, way: "embedded", title: "Nigh without a daemon",
                works: [.found]),
            Program(
                name: fileBase, executable: "\(peers)/peer-file", way: "peer-file",
                title: "C program over OpenSSL", works: [.files], isEncrypted: true),
            Program(
                name: "scp", executable: "\(system)/scp", way: "scp", title: "scp", works: [.files],
                isEncrypted: true),
            Program(
                name: "socat", executable: "\(system)/socat", way: "socat", title: "socat OPENSSL",
                works: [.files], isEncrypted: true),
            Program(
                name: "ours-file", executable: "\(own)/nigh", way: "nigh", title: "nigh send, nigh receive",
                works: [.files], isEncrypted: true),
            Program(
                name: "iperf3", executable: "\(system)/iperf3", way: "iperf3",
                title: "iperf3, plaintext from memory to memory", works: [.files]),
            Program(
                name: forwardBase, executable: "\(system)/ssh", way: "ssh", title: "ssh -L",
                works: [.forwarded], isEncrypted: true),
            Program(
                name: "ours-forward", executable: "\(own)/nigh", way: "nigh",
                title: "nigh expose, nigh forward", works: [.forwarded], isEncrypted: true),
            Program(
                name: natsBase, executable: "\(peers)/peer-nats", title: "libnats",
                works: [.natsRoundTrip, .natsStream]),
            Program(
                name: "ours-nats", executable: session, way: "handler-nats", title: "Nigh over nats, handler",
                works: [.natsRoundTrip, .natsStream]),
            Program(
                name: encryptedNATSBase, executable: "\(peers)/peer-nats",
                title: "libnats, TLS to the server", works: [.natsRoundTrip, .natsStream], isEncrypted: true),
            Program(
                name: "ours-tls-nats", executable: session, way: "handler-nats-tls",
                title: "Nigh over nats under TLS, handler", works: [.natsRoundTrip, .natsStream],
                isEncrypted: true),
        ]
    }

    /// Returns the programs over Bluetooth. All are compared with bare sockets, since a radio is slower than any
    /// cipher.
    private static func overBluetooth(_ peers: String, _ session: String) -> [Program] {
        [
            Program(
                name: bluetoothBase, executable: "\(peers)/peer-rfcomm", title: "raw RFCOMM sockets",
                works: [.roundTrip, .stream, .connect]),
            Program(
                name: "bluetoothctl", executable: session, way: "bluetoothctl",
                title: "bluetoothctl lists the device", works: [.found]),
            Program(
                name: "sdptool", executable: session, way: "sdptool", title: "and sdptool has its records",
                works: [.found]),
            Program(
                name: "ours", executable: session, way: "handler-bluetooth", title: "Nigh",
                works: [.roundTrip, .stream, .connect, .found]),
            Program(
                name: "ours-tls", executable: session, way: "handler-bluetooth-tls", title: "Nigh under TLS",
                works: [.roundTrip, .stream, .connect]),
        ]
    }

    var isOurs: Bool { name.hasPrefix("ours") }
}
