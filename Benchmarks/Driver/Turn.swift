import CBenchmark
import Glibc

/// One program that does one work once: a server, a client, and their results.
struct Turn {
    let program: Program
    let work: Work
    let column: Work.Column
    let options: Options

    /// How much longer than planned a turn may take: connecting a thousand peers takes time.
    private static let timeout: UInt64 = 40_000_000_000
    /// The time that making, copying and comparing a byte of a file may take.
    private static let timeoutPerByte: UInt64 = 60

    /// Runs the turn, and returns the measured values.
    func run() throws(RunError) -> [Metric: Double] {
        switch work {
        case .roundTrip, .packets, .connect, .beside, .calls, .natsRoundTrip:
            let (_, client) = try pair()
            return try [
                .median: number("p50", client), .high: number("p99", client),
                .highest: number("p99.9", client),
            ]
        case .stream, .bytes, .natsStream:
            let (server, client) = try pair()
            return try rates(receiver: server, sender: client)
        case .broadcast, .callsAtOnce:
            let (server, client) = try pair()
            return try rates(receiver: client, sender: server)
        case .found:
            let hosts = try Child([options.discovery, program.way ?? "", program.executable], processor: nil)
            try Child.waitForResults([(hosts, "found")], until: deadline)
            return try [.median: number("found", hosts)]
        case .files, .forwarded:
            let script = work == .files ? options.copying : options.forwarding
            let arguments = [program.way ?? "", program.executable, "\(column.size)", Self.source(column)]
            let copy = try Child([script] + arguments, processor: nil)
            try Child.waitForResults([(copy, "nanoseconds")], until: deadline)
            return try [
                .throughput: 1e9 / number("nanoseconds", copy), .sending: copy.number("sending"),
                .receiving: copy.number("receiving"),
            ].compactMapValues { $0 }
        case .idle:
            let (server, client) = try pair()
            let accepting = try number("resident", server)
            guard program.isOurs else {
                return try [.accepting: accepting, .calling: number("resident", client)]
            }
            // The other side of that was a thousand sessions. One session that calls a thousand is its mirror image.
            let (_, mirrored) = try pair(way: "mirrored")
            return try [.accepting: accepting, .calling: number("resident", mirrored)]
        }
    }

    private func rates(receiver: Child, sender: Child) throws(RunError) -> [Metric: Double] {
        let messages = try number("messages", receiver)
        let processor = try number("processor", receiver) + number("processor", sender)
        return try [
            .rate: messages / number("nanoseconds", receiver) * 1e9,
            .processor: processor / max(1, messages),
        ]
    }

    private func number(_ name: String, _ child: Child) throws(RunError) -> Double {
        guard let number = child.number(name) else { throw .failed("it did not report \"\(name)\"") }
        return number
    }

    private var deadline: UInt64 {
        let forFile = [.files, .forwarded].contains(work) ? UInt64(column.size) * Self.timeoutPerByte : 0
        return benchmark_now() + UInt64(options.seconds * 2e9) + Self.timeout + forFile
    }

    /// The file to be copied, in memory. The first turn makes it, and the driver removes it at the end.
    static func source(_ column: Work.Column) -> String { "/dev/shm/nigh-bench-\(getpid())-\(column.size)" }

    private func pair(way: String? = nil) throws(RunError) -> (server: Child, client: Child) {
        let deadline = deadline
        let last = work.lastResultNames
        let broker = work.usesNATS ? try broker(until: deadline) : nil
        let toBroker = ["broker", "authorities"].flatMap { name in
            broker?.results[name].map { ["--\(name)", $0] } ?? []
        }
        let server = try Child(arguments("serve", way: way) + toBroker, processor: processor(ofServer: true))
        try Child.waitForResults([(server, "port")], until: deadline)
        let client = try Child(
            arguments("connect", way: way) + toBroker + ["--port", server.results["port"] ?? ""],
            processor: processor(ofServer: false))
        let serverResult = last.server.map { [(child: server, name: $0)] } ?? []
        try Child.waitForResults([(client, last.client)] + serverResult, until: deadline)
        client.end()
        server.end()
        broker?.end()
        return (server, client)
    }

    /// Starts a NATS server of its own. Bytes of an encrypted program that is not ours go to it under TLS; a session
    /// encrypts them itself, from one end to the other.
    private func broker(until deadline: UInt64) throws(RunError) -> Child {
        let security = program.isEncrypted && !program.isOurs ? "tls" : "plain"
        let broker = try Child([options.nats, security], processor: processor(ofServer: true))
        try Child.waitForResults([(broker, "broker")], until: deadline)
        return broker
    }

    private func arguments(_ side: String, way: String?) -> [String] {
        let ways = [program.way, way].compactMap { $0 }.joined(separator: "-")
        return [
            program.executable, side, work.command.rawValue, "--size", "\(column.size)", "--peers",
            "\(column.peers)",
            "--seconds", "\(options.seconds)", "--warm-up", "\(options.seconds / 4)", "--count",
            "\(options.connections)",
        ] + (ways.isEmpty ? [] : ["--way", ways])
    }

    private func processor(ofServer isServer: Bool) -> Int? {
        let last = Int(benchmark_processors()) - 1
        switch options.pinning ?? (work.runsOnOneProcessor ? .one : .none) {
        case .none: return nil
        case .one: return last
        case .each: return isServer ? last : max(0, last - 1)
        }
    }
}

/// A measured value of a work.
enum Metric: String {
    case median = "p50"
    case high = "p99"
    case highest = "p99.9"
    case rate
    case processor
    case accepting
    case calling
    /// Files of the column's size that arrive per second.
    case throughput
    /// The most resident memory of either side.
    case sending
    case receiving

    /// Whether it is an amount of memory.
    var isMemory: Bool { [.accepting, .calling, .sending, .receiving].contains(self) }
}

extension Work {
    /// The metrics of the work, a table each. The targets are about the first.
    var metrics: [Metric] {
        switch self {
        case .roundTrip, .packets, .beside, .calls, .natsRoundTrip: [.median, .high, .highest]
        case .stream, .bytes, .broadcast, .callsAtOnce, .natsStream: [.rate, .processor]
        case .connect, .found: [.median]
        case .idle: [.accepting, .calling]
        case .files: [.throughput, .sending, .receiving]
        case .forwarded: [.throughput]
        }
    }
}
