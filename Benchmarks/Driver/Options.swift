import Arguments

/// The command-line options.
struct Options: Sendable {
    static let allSizes = [16, 64, 1 << 10, 16 << 10, 64 << 10, 1 << 20]

    /// Whether it runs between two adapters, inside a machine of the Bluetooth lab; otherwise on loopback.
    let isOverBluetooth: Bool
    let works: [Work]
    /// The message sizes; nil takes those that suit each work.
    let sizes: [Int]?
    /// The names of the programs; nil means all.
    let programs: [String]?
    /// The numbers of peers for the broadcasts.
    let peerCounts: [Int]
    /// The size of the file that is copied.
    let fileSize: Int
    let rounds: Int
    let seconds: Double
    let pinning: Pinning?
    let peersFolder: String
    let discovery: String
    let copying: String
    /// The script that sends bytes through a forwarded port.
    let forwarding: String
    /// The script that runs a NATS server.
    let nats: String
    let resultsFolder: String
    /// The results of an earlier run to compare with.
    let comparedFile: String?

    /// How often a connection is made where that is measured.
    var connections: Int { isOverBluetooth ? 20 : 50 }

    /// Which processors the two programs run on.
    enum Pinning: String, CaseIterable {
        /// Both on one processor.
        case one
        /// Each on its own processor.
        case each
        /// On any processor.
        case none
    }

    static let program = Arguments.Program(
        Command(
            "bench", "Runs the same work with Nigh and with other libraries in turn, and prints the ratios",
            text:
                "On loopback, or with --bluetooth Nigh and bare sockets between the adapters hci1 and hci0.",
            Option(
                flag: "bluetooth",
                "run where there are two adapters that hear each other (make bench-bluetooth)"),
            what, how, files
        ) { isOverBluetooth, what, how, files in
            let options = Options(
                isOverBluetooth: isOverBluetooth,
                works: what.works
                    ?? (isOverBluetooth ? [.roundTrip, .stream, .connect, .found] : Work.allCases),
                sizes: what.sizes, programs: what.programs, peerCounts: what.peerCounts,
                fileSize: what.fileSize, rounds: how.rounds,
                seconds: how.span.map { $0 / .seconds(1) } ?? (isOverBluetooth ? 1 : 0.33),
                pinning: how.pinning, peersFolder: files.peers,
                discovery: files.discovery
                    ?? "Benchmarks/\(isOverBluetooth ? "BluetoothDiscovery" : "Discovery")",
                copying: files.copying, forwarding: files.forwarding,
                nats: files.nats, resultsFolder: files.results, comparedFile: files.compared)
            let known = Program.all(options, ownIn: "").map(\.name)
            for name in options.programs ?? [] where !known.contains(name) {
                throw UsageError("no program \"\(name)\"; there are \(known.joined(separator: ", "))")
            }
            return options
        })

    private static let what = OptionGroup(
        "What is measured",
        Option("only", .list(of: .choice(of: Work.self), atMost: 8), "the works to run (found needs root)"),
        Option(
            "sizes", .list(of: .size("SIZES", in: 16...(16 << 20)), atMost: 64),
            "message sizes, such as 64,64K,1M; by default those that suit each work"),
        Option(
            "peers", .list(of: .text("NAMES"), atMost: 64),
            """
            tcp, libuv, zeromq, nng, nanomsg, enet, ours, ours-inbox, ours-pool, ours-channel; encrypted tls, zeromq-curve, nng-tls, \
            ours-tls, ours-tls-inbox; for packets udp, enet-unreliable, ours-packets, udp-sealed, ours-tls-packets; for bytes also ours-bytes, ours-tls-bytes; for beside ours-quiet, ours-beside, \
            ours-tls-quiet, ours-tls-beside; for calls grpc, grpc-stream, ours-pool, ours-questions, ours-actor, encrypted \
            grpc-tls, grpc-tls-stream, ours-tls-pool, ours-tls-questions, ours-tls-actor; for found avahi, ours-daemon, ours-embedded; for files tls-file, scp, socat, \
            ours-file, iperf3; for forwarded ssh, ours-forward; for NATS nats, ours-nats, nats-tls, \
            ours-tls-nats; over Bluetooth rfcomm, bluetoothctl, \
            sdptool, ours, ours-tls; by default all
            """),
        Option(
            "crowds", .list(of: .integer("COUNTS", in: 1...4_000), atMost: 64), default: [8, 100, 1_000],
            "the numbers of peers that receive a broadcast"),
        Option(
            "file-size", .size(in: (1 << 20)...(1 << 40)), default: 1 << 30,
            "the size of the file that is copied from memory to memory; there must be room for two of them")
    ) { works, sizes, programs, peerCounts, fileSize in
        (works: works, sizes: sizes, programs: programs, peerCounts: peerCounts, fileSize: fileSize)
    }

    private static let how = OptionGroup(
        "How",
        Option(
            "rounds", .integer(in: 1...100), default: 3,
            "how many turns each program has; the order is reversed each time"),
        Option(
            "seconds", .seconds(in: .milliseconds(1) ... .seconds(600)),
            "how long a turn is measured, after a warm-up; by default 0.33, and 1 over Bluetooth"),
        Option(
            "pin", .choice(of: Pinning.self),
            """
            both programs on one processor, one on each, or on any (none); by default one for round trip (of NATS, too), \
            packets, calls and connect, none for the rest
            """)
    ) { rounds, span, pinning in (rounds: rounds, span: span, pinning: pinning) }

    private static let files = OptionGroup(
        "Files",
        Option("programs", .directory(), default: ".build/bench", "where the peers were built"),
        Option("discovery", .file(), "the script that makes two hosts, in Benchmarks"),
        Option("copying", .file(), default: "Benchmarks/Files", "the script that copies files"),
        Option(
            "forwarding", .file(), default: "Benchmarks/Forwarding",
            "the script that sends bytes through a forwarded port"),
        Option("nats", .file(), default: "Benchmarks/NATS", "the script that runs a NATS server"),
        Option(
            "results", .directory(), default: ".build/bench", "where results.json and results.md go"),
        Option(
            "compare", .file(),
            "a results.json of an earlier run; every row of both runs is printed as before, after and ratio")
    ) { peers, discovery, copying, forwarding, nats, results, compared in
        (
            peers: peers, discovery: discovery, copying: copying, forwarding: forwarding, nats: nats,
            results: results, compared: compared
        )
    }
}
